"""Base of the server extension's handlers: who may ask a notebook server."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import ensure_async
from tornado import web

from .callers import PersonHandler, RefusedError
from .messages import msg


class PAIHandler(PersonHandler, JupyterHandler):
    """Asks the server's authorizer about `pai`."""

    auth_resource = "pai"
    #: the user's own; a handler that asks the scheduler has it
    caller_token = ""

    async def prepare(self, **options: Any) -> None:
        """Refuse whoever is not logged in (403) before anything else is said about the request.

        A browser asks without credentials whether it may (OPTIONS); that says nothing about what is here.
        """
        try:
            await super().prepare(**options)
        finally:
            if self.request.method != "OPTIONS" and not self._is_known:
                raise RefusedError(HTTPStatus.FORBIDDEN, msg("Log in to this notebook server first."))

    @property
    def _is_known(self) -> bool:
        # (`current_user` would ask again, in a way that jupyter_server gave up)
        return self._finished or getattr(self, "_jupyter_current_user", None) is not None

    async def check_permission(self, action: str | None) -> None:
        """Refuse who is not logged in, or whom the server's authorizer does not allow it."""
        person = self.current_user
        if (
            not person
            or action is None
            or not await ensure_async(self.authorizer.is_authorized(self, person, action, self.auth_resource))
        ):
            raise RefusedError(
                HTTPStatus.FORBIDDEN, msg("You may not use the scheduler from this notebook server.")
            )


class NoHandler(PAIHandler):
    """Answers where no route is, and where one cannot be loaded: with `status`."""

    def initialize(self, status: int = HTTPStatus.NOT_FOUND) -> None:
        """Take what it answers."""
        self._status = status

    async def prepare(self, **options: Any) -> None:
        """Refuse."""
        await super().prepare(**options)
        raise web.HTTPError(self._status)
