"""Routes whose handlers are loaded when they are first asked for; until then they cost a server nothing."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from importlib import import_module
from typing import Any, ClassVar

from tornado.httputil import (
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.routing import PathMatches, Router, Rule, RuleRouter
from tornado.web import Application, RequestHandler

_log = logging.getLogger(__name__)

#: A pattern below the base URL, what answers there, and what that is given.
Route = tuple[str, type[RequestHandler], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class RouteSettings:
    """Settings for the routes of every part; `root_dir`: the file browser's folder."""

    api_url: str
    token: str
    root_dir: str
    base_url: str


@dataclass(frozen=True, slots=True)
class RouteGroup:
    """Some routes, and how to close what they have opened."""

    routes: Sequence[Route]
    close: Callable[[], Awaitable[None]]


class LateRoutes(Router):
    """Stands where the routes of a part will be: loads the part's module in a thread, then hands requests on.

    The module is a relative name in this package and has `make_part(settings: Settings) -> Part`.
    """

    #: jupyter_server looks at each route's target for methods that ask for no login; the handlers see to that
    SUPPORTED_METHODS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, application: Application, module: str, settings: RouteSettings) -> None:
        self._application, self._module, self._settings = application, module, settings
        self._turn = asyncio.Lock()
        self._part: RouteGroup | None = None
        self._router = RuleRouter()

    def find_handler(self, request: HTTPServerRequest, **_kwargs: Any) -> HTTPMessageDelegate:
        """Take a request, for as long as its handler is being loaded."""
        return _Waiting(self, request)

    async def handler_of(self, request: HTTPServerRequest) -> HTTPMessageDelegate:
        """Return what handles a request; load it first if need be."""
        try:
            await self._load()
        except Exception:
            # the next request tries again: somebody may be installing another version just now
            _log.exception("%s cannot be loaded", self._module)
            return self._none(request, HTTPStatus.INTERNAL_SERVER_ERROR)
        return self._router.find_handler(request) or self._none(request, HTTPStatus.NOT_FOUND)

    def _none(self, request: HTTPServerRequest, status: int) -> HTTPMessageDelegate:
        from .base_handlers import NoHandler  # a server that starts needs none of this

        return self._application.get_handler_delegate(request, NoHandler, {"status": status})

    async def close(self) -> None:
        """Close what the part has opened."""
        if self._part is not None:
            await self._part.close()

    async def _load(self) -> None:
        async with self._turn:
            if self._part is not None:
                return
            # a third of a second for some: meanwhile the server goes on with everything else
            module = await asyncio.to_thread(import_module, self._module, __package__)
            self._part = module.make_part(self._settings)
            base = re.escape(self._settings.base_url.rstrip("/"))
            self._router.add_rules(
                [
                    Rule(PathMatches(base + pattern), _Handler(self._application, handler, arguments))
                    for pattern, handler, arguments in self._part.routes
                ]
            )


class _Handler(Router):
    """Ends a route: gives a request to a handler of the application's own kind."""

    def __init__(
        self, application: Application, handler: type[RequestHandler], arguments: dict[str, Any]
    ) -> None:
        self._application, self._handler, self._arguments = application, handler, arguments

    def find_handler(self, request: HTTPServerRequest, **matched: Any) -> HTTPMessageDelegate:
        return self._application.get_handler_delegate(request, self._handler, self._arguments, **matched)


class _Waiting(HTTPMessageDelegate):
    """A request whose body is not read before its handler is there."""

    def __init__(self, routes: LateRoutes, request: HTTPServerRequest) -> None:
        self._routes, self._request = routes, request
        self._handler: HTTPMessageDelegate | None = None

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None]:
        return self._begin(start_line, headers)

    async def _begin(self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders) -> None:
        self._handler = await self._routes.handler_of(self._request)
        ready = self._handler.headers_received(start_line, headers)
        if ready is not None:
            await ready

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        return self._handler.data_received(chunk) if self._handler is not None else None

    def finish(self) -> None:
        if self._handler is not None:
            self._handler.finish()

    def on_connection_close(self) -> None:
        if self._handler is not None:
            self._handler.on_connection_close()
