"""The notebook server's ways into tasks: terminals, *Connect*, and ports behind JupyterLab's address."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from html import escape
from http import HTTPStatus
from typing import Any, NoReturn

import aiohttp
import asyncssh
from asyncssh import OPEN_CONNECT_FAILED
from jupyter_server.base.handlers import APIHandler, JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler
from yarl import URL

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.callers import RefusedError
from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.messages import msg
from pai_labextension.proxy.streaming import BodyPipe, StreamingProxy, raw_headers
from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError, UnreachableGatewayError

from .connect import CallerConnections, CheckHandler, CodeServerHandler, DescribeHandler
from .connections import PerCaller
from .ports import Ports
from .rewriting import HtmlRewriter, PortPrefix, request_headers, request_query, response_headers
from .terminals import (
    NAME_PATTERN,
    TASK_PATTERN,
    TaskHandler,
    TerminalHandler,
    TerminalsHandler,
    TerminalSocket,
    reason_of,
)


class _ServerHandler(TaskHandler, PAIHandler):
    """Asks with this server's token, whoever may use the server."""

    def initialize(self, people: PerCaller[Any], token: str = "") -> None:
        """Take the ways into tasks."""
        super().initialize(people)
        self.caller_token = token


# Why there is nothing behind a port: a sentence, and the page that shows it.

#: Seconds after which a page that waits for an application looks again.
AGAIN_SECONDS = 2
ERROR_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"),
    ("X-Content-Type-Options", "nosniff"),
)
_PAGE = """<!DOCTYPE html>
<html lang="{lang}"><head><meta charset="utf-8"><title>{title}</title>{again}
<style>body {{font: 16px/1.5 sans-serif; max-width: 40em; margin: 15vh auto; padding: 0 1em}}
@media (prefers-color-scheme: dark) {{body {{background: #111; color: #ddd}}}}</style></head>
<body><h1>{title}</h1><p role="status">{sentence}</p></body></html>
"""


def refusal_of(error: Exception, label: str, task: str) -> web.HTTPError | None:
    """Return the refusal for what happened on the way to a port of a task; None: that must not happen."""
    waiting = HTTPStatus.SERVICE_UNAVAILABLE
    match error:
        case web.HTTPError():
            return error
        case ApiError():
            return RefusedError(error.status, reason_of(error))
        case UnreachableGatewayError() | UnreachableError():
            return RefusedError(waiting, reason_of(error), again=True)
        case RemoteError():
            return RefusedError(waiting, reason_of(error))
        case asyncssh.ChannelOpenError() if error.code == OPEN_CONNECT_FAILED:
            sentence = msg(
                "Nothing listens on the port “{label}” of {task} yet. This page looks again by itself.",
                label=label,
                task=task,
            )
            return RefusedError(waiting, sentence, again=True)
        case asyncssh.ChannelOpenError():
            return RefusedError(HTTPStatus.FORBIDDEN, reason_of(error))
        case aiohttp.WSServerHandshakeError():
            return web.HTTPError(error.status)
        case aiohttp.ClientError() | asyncssh.Error() | OSError():
            sentence = msg(
                "What listens on the port “{label}” of {task} gave no HTTP answer: {reason}.",
                label=label,
                task=task,
                reason=str(error) or type(error).__name__,
            )
            return RefusedError(HTTPStatus.BAD_GATEWAY, sentence)
    return None


def page(sentence: str, locale: str, *, again: bool) -> str:
    """Make the page; one that looks again does so by itself."""
    title = msg("Waiting for the application") if again else msg("There is nothing to show")
    return _PAGE.format(
        lang=locale.replace("_", "-"),
        title=escape(title.in_locale(locale)),
        again=f'<meta http-equiv="refresh" content="{AGAIN_SECONDS}">' if again else "",
        sentence=escape(sentence),
    )


# `<base_url>/pai/ports/<user>/<job>/<role>-<index>/<label>/…`: a port of a task, HTTP and WebSocket.
#
# `…/pai/ports-absolute/…` does the same for applications that were started with their whole prefix as base
# URL: the path reaches them as it is.
#
# Not jupyter-server-proxy's handlers: those read whole bodies and answers into memory, pass the notebook
# server's token and the Hub's cookies on, and do not ask where a request comes from; installed, they open
# every port of the notebook server.

#: Bytes that may be sent to an application at once, and of one message of a WebSocket.
_LARGEST_BODY, _LARGEST_MESSAGE = 1 << 40, 128 << 20
#: How many parts of a path, after the base URL's, name a port: pai/ports/user/job/task/label.
_PARTS = 6


class PortHandler(StreamingProxy, WebSocketMixin, WebSocketHandler, _ServerHandler):
    """Hands one request on to an application in a task, or becomes a WebSocket to it."""

    SUPPORTED_METHODS = ("GET", "HEAD", "POST", "DELETE", "PATCH", "PUT", "OPTIONS")
    max_message_size = _LARGEST_MESSAGE
    broken = (aiohttp.ClientError, asyncssh.Error, OSError)
    _remote: aiohttp.ClientWebSocketResponse | None = None

    def initialize(self, people: PerCaller[Any], token: str = "", absolute: bool = False) -> None:
        """Take the way to ports; `absolute`: applications know their prefix."""
        super().initialize(people, token)
        self._absolute = absolute
        self._is_socket = self.request.headers.get("Upgrade", "").lower() == "websocket"

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse what may not pass (host, login, origin, permission, owner, port); begin with the rest."""
        await JupyterHandler.prepare(self, _redirect_to_login=not self._is_socket)
        if not self._finished and not self._is_socket:
            # sends a person who reads to the login page, refuses others
            web.authenticated(lambda _handler: None)(self)
        if self._finished:
            return
        self.check_xsrf_cookie()
        await self.check_permission("execute")
        self.settings["last_activity_times"]["pai_ports"] = datetime.now(UTC)
        if self._is_socket:
            return
        method = str(self.request.method)
        if self._raw_rest() is None:
            if method not in ("GET", "HEAD"):
                raise web.HTTPError(HTTPStatus.NOT_FOUND)
            query = f"?{self.request.query}" if self.request.query else ""
            self.redirect(f"{self.request.path}/{query}")
            return
        if self.request.connection is not None:
            self.request.connection.set_max_body_size(_LARGEST_BODY)  # type: ignore[attr-defined]
        self.begin()

    def check_xsrf_cookie(self) -> None:
        """Refuse what a page of another origin sent, in place of asking for this server's XSRF token.

        An application's pages do not know that one. A link from elsewhere may be followed. Browsers say where
        a request comes from; a program that does not say it shows a token.
        """
        if not hasattr(self, "_jupyter_current_user"):
            # Tornado asks before anybody knows who that is; `prepare` asks again
            return
        headers = self.request.headers
        link = (
            self.request.method in ("GET", "HEAD")
            and headers.get("Sec-Fetch-Mode") == "navigate"
            and headers.get("Sec-Fetch-Dest") == "document"
        )
        elsewhere = headers.get("Sec-Fetch-Site") in ("cross-site", "same-site")
        if (elsewhere and not link) or not JupyterHandler.check_origin(self):
            raise web.HTTPError(HTTPStatus.FORBIDDEN)
        told = self.token_authenticated or "Sec-Fetch-Site" in headers or "Origin" in headers
        # over plain HTTP to another machine a browser sends neither when it reads, but its own page's address
        if not told and (self._is_socket or not self.check_referer()):
            sentence = msg(
                "This request does not say which page it comes from. A page that was opened over plain http "
                "opens again by itself; programs show a token."
            )
            reads = self.request.method in ("GET", "HEAD") and not self._is_socket
            raise RefusedError(HTTPStatus.FORBIDDEN, sentence, again=reads)

    async def get(self, *args: str) -> None:
        """Read something, or become a WebSocket."""
        if not self._is_socket:
            await self.complete()
            return
        try:
            self._remote = await self._connected()
        except Exception as error:
            self._give_up(error)
        await super().get(*args)

    head = post = delete = patch = put = options = StreamingProxy.complete

    async def ask(self, body: BodyPipe | None) -> aiohttp.ClientResponse:
        """Ask the application."""
        try:
            http = await self._find()
            return await http.request(
                str(self.request.method),
                self._url(),
                headers=self._request_headers(),
                data=body,
                allow_redirects=False,
            )
        except Exception as error:
            self._give_up(error)

    def dress(self, answer: aiohttp.ClientResponse) -> HtmlRewriter | None:
        """Set the headers of an answer; a page's addresses are changed on its way."""
        kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        plain = answer.headers.get("Content-Encoding", "identity") == "identity"
        rewriter = HtmlRewriter(self._place) if kind == "text/html" and plain and not self._absolute else None
        self._clear_headers()
        for name, value in response_headers(self._place, raw_headers(answer), self._own_cookie()):
            if rewriter is None or name.lower() not in ("content-length", "etag", "accept-ranges"):
                self.add_header(name, value)
        # beside the application's own, if it has one: nobody else may put its pages into theirs
        self.add_header("Content-Security-Policy", "frame-ancestors 'self'")
        return rewriter

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Return what is wrong, with nothing of an answer that had begun."""
        self._clear_headers()
        for name, value in ERROR_HEADERS:
            self.set_header(name, value)
        super().write_error(status_code, **kwargs)

    def finish_error(self, status: HTTPStatus, message: str, *, again: bool) -> None:
        """Write a page for a person, JSON for a program."""
        if again:
            self.set_header("Retry-After", str(AGAIN_SECONDS))
        if not _wants_html(self.request.headers.get("Accept", "")):
            super().finish_error(status, message, again=again)
            return
        self.set_header("Content-Type", "text/html; charset=utf-8")
        self.finish(page(message, self.locale_asked, again=again))

    def select_subprotocol(self, subprotocols: list[str]) -> str | None:  # noqa: ARG002
        """Choose what the application chose."""
        return self._remote.protocol if self._remote is not None else None

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to hand on what the application says."""
        super().open(*args, **kwargs)
        if self._remote is not None:
            self._exchange = asyncio.create_task(self._listen(self._remote))

    async def on_message(self, message: str | bytes) -> None:
        """Hand on what the browser says; the next message is read when there is room for it."""
        self.settings["last_activity_times"]["pai_ports"] = datetime.now(UTC)
        if self._remote is None:
            return
        try:
            if isinstance(message, str):
                await self._remote.send_str(message)
            else:
                await self._remote.send_bytes(message)
        except (ConnectionError, aiohttp.ClientError, asyncssh.Error):
            self.close()

    def on_close(self) -> None:
        """The browser's end of the WebSocket is closed: close the other one, for the same reason."""
        if self._exchange is not None:
            self._exchange.cancel()
        if self._remote is not None and not self._remote.closed:
            code = self.close_code if _may_be_sent(self.close_code) else aiohttp.WSCloseCode.GOING_AWAY
            reason = (self.close_reason or "").encode()
            self._closing = asyncio.ensure_future(self._remote.close(code=code or 1001, message=reason))

    async def _listen(self, remote: aiohttp.ClientWebSocketResponse) -> None:
        try:
            while True:
                message = await remote.receive()
                if message.type == aiohttp.WSMsgType.TEXT:
                    await self.write_message(message.data)
                elif message.type == aiohttp.WSMsgType.BINARY:
                    await self.write_message(message.data, binary=True)
                else:
                    break
        except (WebSocketClosedError, StreamClosedError):
            return
        code = remote.close_code
        reason = message.extra if message.type == aiohttp.WSMsgType.CLOSE else None
        self.close(code if _may_be_sent(code) else None, reason or None)

    async def _connected(self) -> aiohttp.ClientWebSocketResponse:
        http = await self._find()
        asked = self.request.headers.get("Sec-WebSocket-Protocol", "")
        return await http.ws_connect(
            self._url(),
            protocols=[name.strip() for name in asked.split(",") if name.strip()],
            headers=self._request_headers(),
            max_msg_size=_LARGEST_MESSAGE,
            autoclose=True,
            autoping=True,
        )

    async def _find(self) -> aiohttp.ClientSession:
        """Find where the request goes."""
        ports: Ports = self._people.of(self.caller).ports
        port, http = await ports.find(self.task(), str(self.path_args[3]))
        scheme = self.request.headers.get("X-Forwarded-Proto", self.request.protocol).split(",")[0].strip()
        origin = f"{'https' if scheme == 'https' else 'http'}://{self.request.host}"
        self._place = PortPrefix(self._prefix(), origin, port, self._absolute)
        return http

    def _clear_headers(self) -> None:
        for name in list(self._headers):
            self.clear_header(name)

    def _own_parts(self) -> list[str]:
        below = self.request.path.removeprefix(str(self.base_url).rstrip("/")).lstrip("/")
        return below.split("/", _PARTS)

    def _prefix(self) -> str:
        return "/".join((str(self.base_url).rstrip("/"), *self._own_parts()[:_PARTS]))

    def _raw_rest(self) -> str | None:
        """Return the path below the port as the browser wrote it; None where the slash is missing."""
        parts = self._own_parts()
        return parts[_PARTS] if len(parts) > _PARTS else None

    def _url(self) -> URL:
        path = self.request.path if self._absolute else f"/{self._raw_rest() or ''}"
        query = request_query(self.request.query, without_token=self.token_authenticated)
        return URL(f"{self._place.local}{path}" + (f"?{query}" if query else ""), encoded=True)

    def _request_headers(self) -> list[tuple[str, str]]:
        given = self.request.headers
        if _wants_html(given.get("Accept", "")):
            # a page is read here, and packed again on its way out
            given = given.copy()
            given["Accept-Encoding"] = "identity"
        pairs = request_headers(self._place, given.get_all(), self._own_cookie(), str(self.request.remote_ip))
        # tornado reads bytes as Latin-1, aiohttp writes UTF-8
        return [
            (name, value.encode("latin-1", "replace").decode("utf-8", "replace")) for name, value in pairs
        ]

    def _own_cookie(self) -> str:
        name = getattr(self.identity_provider, "get_cookie_name", None)
        return str(name(self)) if name is not None else ""

    def _give_up(self, error: Exception) -> NoReturn:
        """Return why there is nothing to hand on."""
        refusal = refusal_of(error, str(self.path_args[3]), str(self.path_args[2]))
        if refusal is None:
            raise error
        if isinstance(error, aiohttp.ClientError | asyncssh.Error | OSError):
            self._people.of(self.caller).ports.forget(self.task())
        raise refusal from error


def _wants_html(accept: str) -> bool:
    return "text/html" in accept.lower()


def _may_be_sent(code: int | None) -> bool:
    """Return whether a close code may stand in a message (RFC 6455, 7.4)."""
    return code is not None and (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999)


# Terminals and *Connect*: `<base_url>/pai/terminals/…`, `<base_url>/pai/connect/…`.


class _Terminals(_ServerHandler, TerminalsHandler, APIHandler):
    pass


class _Terminal(_ServerHandler, TerminalHandler, APIHandler):
    pass


class _Describe(_ServerHandler, DescribeHandler, APIHandler):
    pass


class _Check(_ServerHandler, CheckHandler, APIHandler):
    pass


class _CodeServer(_ServerHandler, CodeServerHandler, APIHandler):
    pass


class _Socket(WebSocketMixin, TerminalSocket, _ServerHandler):
    """A terminal's WebSocket, as long as somebody looks."""

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to show it."""
        super().open(*args, **kwargs)
        self.begin()

    async def on_message(self, message: str | bytes) -> None:
        """Hand on what is typed; this server is not idle while somebody types."""
        self.settings["last_activity_times"]["pai_terminals"] = datetime.now(UTC)
        await self.receive(message)

    def on_close(self) -> None:
        """Look no more."""
        self.end()


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and the connections behind them."""
    ports_url = f"{settings.base_url}pai/ports/"
    people = PerCaller(lambda caller: CallerConnections(settings.api_url, caller.token, ports_url))
    given = {"people": people, "token": settings.token}
    terminals, connect = rf"/pai/terminals/{TASK_PATTERN}", rf"/pai/connect/{TASK_PATTERN}"
    port = rf"{TASK_PATTERN}/([^/]+)(/.*)?"
    return RouteGroup(
        [
            (rf"{terminals}/api/terminals", _Terminals, given),
            (rf"{terminals}/api/terminals/({NAME_PATTERN})", _Terminal, given),
            (rf"{terminals}/terminals/websocket/({NAME_PATTERN})", _Socket, given),
            (connect, _Describe, given),
            (rf"{connect}/check", _Check, given),
            (rf"{connect}/code-server", _CodeServer, given),
            (rf"/pai/ports/{port}", PortHandler, {**given, "absolute": False}),
            (rf"/pai/ports-absolute/{port}", PortHandler, {**given, "absolute": True}),
        ],
        people.close,
    )
