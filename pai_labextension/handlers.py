"""`<base_url>/pai/api/v1/…`: the scheduler's API for the browser, asked with the user's own token."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NoReturn

from jupyter_server.auth.decorator import authorized
from jupyter_server.auth.utils import HTTP_METHOD_TO_AUTH_ACTION
from jupyter_server.base.handlers import APIHandler
from jupyter_server.utils import ensure_async
from tornado import web
from tornado.iostream import StreamClosedError

from pai_scheduler.job.messages import Message, choose_locale

from .messages import msg
from .resources import MethodError, NoResourceError, ParameterError, RequestTarget, target
from .upstream import BodyPipe, SchedulerAnswer, SchedulerUnreachableError, Upstream

AUTH_RESOURCE = "pai"

#: The job contract's names for what is refused here already.
_CODES = {
    HTTPStatus.BAD_REQUEST: "InvalidParametersError",
    HTTPStatus.UNAUTHORIZED: "UnauthorizedUserError",
    HTTPStatus.FORBIDDEN: "ForbiddenUserError",
    HTTPStatus.NOT_FOUND: "NoApiError",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowedError",
    HTTPStatus.BAD_GATEWAY: "SchedulerUnreachable",
}


@web.stream_request_body
class ForwardHandler(APIHandler):
    """Forwards one request and its answer, both while they come, until the browser or the scheduler hangs up.

    The body of a request reaches `data_received` before `post` or `put` are called, so everything that may
    refuse the request stands in `prepare`.
    """

    auth_resource = AUTH_RESOURCE
    # the status bar asks every few seconds; that must not keep an idle notebook server alive
    _track_activity = False

    def initialize(self, upstream: Upstream) -> None:
        """Take the way to the scheduler."""
        self._upstream = upstream
        self._body: BodyPipe | None = None
        self._received = asyncio.Event()
        self._exchange: asyncio.Task[None] | None = None

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse what may not pass (origin, XSRF, login, permission, resource); begin to forward the rest."""
        await super().prepare()
        method = str(self.request.method)
        if method == "OPTIONS":
            return
        await self._check_permission(method)
        goal = self._target(method)
        if not self._upstream.has_token:
            self._refuse(
                HTTPStatus.UNAUTHORIZED,
                msg("No token for the scheduler. Start this notebook server from the Hub, or set PAI_TOKEN."),
            )
        headers = self.request.headers
        if "Transfer-Encoding" in headers or headers.get("Content-Length", "0") != "0":
            self._body = BodyPipe()
        self._exchange = asyncio.create_task(self._forward(method, goal))

    async def data_received(self, chunk: bytes) -> None:
        """Hand a piece of the request's body on."""
        if self._body is not None:
            await self._body.put(chunk)

    @web.authenticated
    @authorized
    async def get(self, _path: str) -> None:
        """Read something."""
        await self._complete()

    @web.authenticated
    @authorized
    async def post(self, _path: str) -> None:
        """Submit or validate a job; write on at a file's end."""
        await self._complete()

    @web.authenticated
    @authorized
    async def put(self, _path: str) -> None:
        """Stop a job; change a virtual cluster; write a file."""
        await self._complete()

    @web.authenticated
    @authorized
    async def delete(self, _path: str) -> None:
        """Delete a job, a virtual cluster or a file."""
        await self._complete()

    def on_connection_close(self) -> None:
        """The browser went away: so do we, upstream."""
        super().on_connection_close()
        if self._exchange is not None:
            self._exchange.cancel()

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write the API's shape of an error, in the reader's language where the sentence is ours."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        # Tornado closes the connection of a request that is refused before it was read through. Unless the
        # Hub's proxy is told, it sends the next request there, and that one fails.
        self.set_header("Connection", "close")
        status = HTTPStatus(status_code)
        if isinstance(error, _RefusedError):
            message = error.message.in_locale(choose_locale(self.request.headers.get("Accept-Language", "")))
            for name, value in error.headers.items():
                self.set_header(name, value)
        else:
            message = getattr(error, "log_message", None) or status.phrase
        self.finish({"code": _CODES.get(status, "UnknownError"), "message": message})

    async def _check_permission(self, method: str) -> None:
        user = self.current_user
        action = HTTP_METHOD_TO_AUTH_ACTION.get(method)
        if user is None or action is None:
            raise web.HTTPError(HTTPStatus.FORBIDDEN)
        if not await ensure_async(self.authorizer.is_authorized(self, user, action, self.auth_resource)):
            self._refuse(
                HTTPStatus.FORBIDDEN, msg("You may not use the scheduler from this notebook server.")
            )

    def find(self, method: str, path: str, query: str) -> RequestTarget:
        """Find where a request goes; NoResourceError, MethodError or ParameterError where it may not pass."""
        return target(method, path, query)

    def unknown(self, path: str) -> Message:
        """Return a sentence that says that there can be nothing at a path."""
        return msg("The scheduler's API has no “{path}”.", path=path)

    def dress(self, answer: SchedulerAnswer) -> None:
        """Set the headers of an answer that is about to be handed on."""
        self.clear_header("Content-Type")
        for name, value in answer.headers:
            self.set_header(name, value)
        self.set_header("X-Content-Type-Options", "nosniff")

    def _target(self, method: str) -> RequestTarget:
        path = self.path_args[0] or ""
        try:
            return self.find(method, path, self.request.query)
        except NoResourceError:
            self._refuse(HTTPStatus.NOT_FOUND, self.unknown(path))
        except MethodError as error:
            self._refuse(
                HTTPStatus.METHOD_NOT_ALLOWED,
                msg(
                    "“{path}” does not take {method}, only {allowed}.",
                    path=path,
                    method=method,
                    allowed=str(error),
                ),
                {"Allow": str(error)},
            )
        except ParameterError as error:
            self._refuse(
                HTTPStatus.BAD_REQUEST, msg("“{path}” has no parameter “{name}”.", path=path, name=error.name)
            )

    async def _complete(self) -> None:
        """The whole request is here; wait until the whole answer is through."""
        if self._exchange is None:
            raise web.HTTPError(HTTPStatus.FORBIDDEN)
        if self._body is not None:
            await self._body.end()
        self._received.set()
        # not awaited itself: when the browser goes, the exchange is cancelled and this method just ends
        await asyncio.wait([self._exchange])
        if not self._exchange.cancelled():
            self._exchange.result()

    async def _forward(self, method: str, goal: RequestTarget) -> None:
        try:
            answer = await self._upstream.send(method, goal, self.request.headers, self._body)
        except SchedulerUnreachableError as error:
            self._refuse(
                HTTPStatus.BAD_GATEWAY,
                msg(
                    "The scheduler at {url} does not answer ({reason}). Running jobs go on; try again later.",
                    url=self._upstream.url,
                    reason=str(error),
                ),
            )
        finally:
            if self._body is not None:
                self._body.drop()
        try:
            await self._received.wait()
            await self._relay(answer)
        finally:
            await answer.close()

    async def _relay(self, answer: SchedulerAnswer) -> None:
        self.set_status(answer.status)
        self.dress(answer)
        try:
            await self.flush()
            async for piece in answer.pieces():
                self.write(piece)
                await self.flush()
        except SchedulerUnreachableError:
            # an answer that breaks off must not look like a complete one
            self.detach().close()
        except StreamClosedError:
            pass

    def _refuse(
        self, status: HTTPStatus, message: Message, headers: Mapping[str, str] = MappingProxyType({})
    ) -> NoReturn:
        raise _RefusedError(status, message, headers)


class _RefusedError(web.HTTPError):
    """A refusal of ours, in whichever language the reader has."""

    def __init__(self, status: HTTPStatus, message: Message, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.message = message
        self.headers = headers
