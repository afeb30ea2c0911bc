"""Base of the server extension's handlers: who may ask, in which language, how a request is refused."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import ensure_async
from tornado import web

from pai_scheduler.i18n import Message, choose_locale

from .messages import msg

#: The job contract's names for what is refused here already.
_CODES = {
    HTTPStatus.BAD_REQUEST: "InvalidParametersError",
    HTTPStatus.UNAUTHORIZED: "UnauthorizedUserError",
    HTTPStatus.FORBIDDEN: "ForbiddenUserError",
    HTTPStatus.NOT_FOUND: "NoApiError",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowedError",
    HTTPStatus.BAD_GATEWAY: "SchedulerUnreachable",
}


class RefusedError(web.HTTPError):
    """A request that is not done, with a sentence in the reader's language; `again`: it may be soon."""

    def __init__(
        self,
        status: int,
        message: Message | str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        again: bool = False,
    ) -> None:
        super().__init__(status)
        self.message, self.again = message, again
        self.headers = headers

    def sentence(self, locale: str) -> str:
        """Return why it is not done."""
        return self.message.in_locale(locale) if isinstance(self.message, Message) else self.message


class PAIHandler(JupyterHandler):
    """Asks the server's authorizer about `pai`, and refuses with `{"code", "message"}`."""

    auth_resource = "pai"

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

    @property
    def locale_asked(self) -> str:
        """Return the language of the request."""
        return choose_locale(self.request.headers.get("Accept-Language", ""))

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

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Return what is wrong as the API does."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        status = HTTPStatus(status_code) if status_code in set(HTTPStatus) else HTTPStatus.BAD_GATEWAY
        # Tornado closes the connection of a request that it has not read through. Unless the Hub's proxy is
        # told, it sends the next request there, and that one fails.
        self.set_header("Connection", "close")
        if isinstance(error, RefusedError):
            message = error.sentence(self.locale_asked)
            for name, value in error.headers.items():
                self.set_header(name, value)
        else:
            message = getattr(error, "log_message", None) or status.phrase
        self.finish_error(status, message, again=isinstance(error, RefusedError) and error.again)

    def finish_error(self, status: HTTPStatus, message: str, *, again: bool) -> None:  # noqa: ARG002
        """Write a refusal; `again`: asking again may help."""
        self.set_header("Content-Type", "application/json")
        self.finish({"code": _CODES.get(status, "UnknownError"), "message": message})


class NoHandler(PAIHandler):
    """Answers where no route is, and where one cannot be loaded: with `status`."""

    def initialize(self, status: int = HTTPStatus.NOT_FOUND) -> None:
        """Take what it answers."""
        self._status = status

    async def prepare(self, **options: Any) -> None:
        """Refuse."""
        await super().prepare(**options)
        raise web.HTTPError(self._status)
