"""REST of this server's session, and its routes."""

from __future__ import annotations

import os
from http import HTTPStatus
from typing import Any

import aiohttp
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web
from yarl import URL

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.callers import RefusedError
from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.messages import msg

from .address import session_address

# `<base_url>/pai/session`: when this notebook server is to end, and that it be kept.

_PATIENCE = aiohttp.ClientTimeout(total=30)


class SessionService:
    """The service at an address (empty: there is none), asked with the user's own token."""

    def __init__(self, address: str, token: str) -> None:
        self._address = address
        self._http = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {token}"},
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def ask(self, method: str, path: str, language: str) -> dict[str, Any]:
        """Ask the service; RefusedError."""
        if not self._address:
            raise RefusedError(HTTPStatus.NOT_FOUND, msg("Nobody watches over this notebook server."))
        try:
            async with self._http.request(
                method,
                URL(self._address + path, encoded=True),
                headers={"Accept-Language": language},
                timeout=_PATIENCE,
                allow_redirects=False,
            ) as answer:
                is_json = answer.content_type == "application/json"
                said = await answer.json() if is_json else {}
                status = answer.status
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            raise RefusedError(HTTPStatus.BAD_GATEWAY, _AWAY) from error
        if status >= HTTPStatus.BAD_REQUEST and is_json and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise RefusedError(status, str(said.get("message", status)))
        if status != HTTPStatus.OK or not isinstance(said, dict):
            raise RefusedError(HTTPStatus.BAD_GATEWAY, _AWAY)
        return said


_AWAY = msg("What watches over notebook servers does not answer. This server runs on; try again later.")


class _SessionHandler(PAIHandler, APIHandler):
    # that a page asks when its server is to end must not keep that server alive
    _track_activity = False

    def initialize(self, service: SessionService) -> None:
        """Take whom to ask."""
        self._service = service

    async def _tell(self, method: str, path: str) -> None:
        self.finish(await self._service.ask(method, path, self.request.headers.get("Accept-Language", "en")))


class ServerSessionHandler(_SessionHandler):
    """Tells how this server's session stands."""

    @web.authenticated
    @authorized
    async def get(self) -> None:
        """Answer with when it ends, and why."""
        await self._tell("GET", "")


class KeepServerHandler(_SessionHandler):
    """Puts the end off."""

    @web.authenticated
    @authorized
    async def post(self) -> None:
        """Keep the session, where that is possible."""
        await self._tell("POST", "/keep")


# The routes to what the Hub's service `pai-sessions` says of this notebook server.


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and the way to the service behind them."""
    service = SessionService(session_address(os.environ), settings.token)
    given = {"service": service}
    return RouteGroup(
        [(r"/pai/session", ServerSessionHandler, given), (r"/pai/session/keep", KeepServerHandler, given)],
        service.close,
    )
