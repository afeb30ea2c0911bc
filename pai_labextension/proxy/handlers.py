"""Handlers that hand requests on to the scheduler's API and storage, with the user's own token."""

from __future__ import annotations

from http import HTTPStatus
from urllib.parse import quote

import aiohttp
from jupyter_server.auth.utils import HTTP_METHOD_TO_AUTH_ACTION
from jupyter_server.base.handlers import APIHandler

from pai_labextension.base_handlers import PAIHandler, RefusedError
from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.messages import msg
from pai_scheduler.i18n import Message

from .streaming import BodyPipe, Rewriter, StreamingProxy
from .upstream import (
    CONTENTS,
    MethodError,
    NoResourceError,
    ParameterError,
    RequestTarget,
    SchedulerUnreachableError,
    StorageTarget,
    Upstream,
    answer_headers,
    storage_target,
    target,
)

# `<base_url>/pai/api/v1/…`: the scheduler's API for the browser, asked with the user's own token.


class ForwardHandler(StreamingProxy, PAIHandler, APIHandler):
    """Forwards one request that is known, with the user's own token."""

    # the status bar asks every few seconds; that must not keep an idle notebook server alive
    _track_activity = False

    def initialize(self, upstream: Upstream) -> None:
        """Take the way to the scheduler."""
        self._upstream = upstream

    async def prepare(self) -> None:  # type: ignore[override]
        """Refuse what may not pass (origin, XSRF, login, permission, resource); begin to forward the rest."""
        await super().prepare()
        method = str(self.request.method)
        if method == "OPTIONS":
            return
        await self.check_permission(HTTP_METHOD_TO_AUTH_ACTION.get(method))
        self._target = self._find_target(method)
        if not self._upstream.has_token:
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED,
                msg("No token for the scheduler. Start this notebook server from the Hub, or set PAI_TOKEN."),
            )
        self.begin()

    # who may do it was asked in `prepare`, before the body came
    get = post = put = delete = StreamingProxy.complete

    async def ask(self, body: BodyPipe | None) -> aiohttp.ClientResponse:
        """Ask the scheduler."""
        method = str(self.request.method)
        try:
            return await self._upstream.ask(method, self._target, self.request.headers, body)
        except SchedulerUnreachableError as error:
            raise RefusedError(
                HTTPStatus.BAD_GATEWAY,
                msg(
                    "The scheduler at {url} does not answer ({reason}). Running jobs go on; try again later.",
                    url=self._upstream.url,
                    reason=str(error),
                ),
            ) from error

    def find(self, method: str, path: str, query: str) -> RequestTarget:
        """Find where a request goes; NoResourceError, MethodError or ParameterError where it may not pass."""
        return target(method, path, query)

    def unknown(self, path: str) -> Message:
        """Return a sentence that says that there can be nothing at a path."""
        return msg("The scheduler's API has no “{path}”.", path=path)

    def dress(self, answer: aiohttp.ClientResponse) -> Rewriter | None:
        """Set the headers of an answer that is about to be handed on."""
        self.clear_header("Content-Type")
        for name, value in answer_headers(answer):
            self.set_header(name, value)
        self.set_header("X-Content-Type-Options", "nosniff")
        return None

    def _find_target(self, method: str) -> RequestTarget:
        path = self.path_args[0] or ""
        try:
            return self.find(method, path, self.request.query)
        except NoResourceError:
            raise RefusedError(HTTPStatus.NOT_FOUND, self.unknown(path)) from None
        except MethodError as error:
            allowed = str(error)
            message = msg(
                "“{path}” does not take {method}, only {allowed}.", path=path, method=method, allowed=allowed
            )
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, message, headers={"Allow": allowed}) from None
        except ParameterError as error:
            message = msg("“{path}” has no parameter “{name}”.", path=path, name=error.name)
            raise RefusedError(HTTPStatus.BAD_REQUEST, message) from None


# `<base_url>/pai/webhdfs/v1/…`: the cluster's storage for the browser, asked with the user's own token.
#
# What is in a file was written by anybody: it is only ever handed over as a download, so that none of it
# runs as a page of the notebook server.


class StorageHandler(ForwardHandler):
    """Forwards one request to the storage, and its answer, both while they come."""

    _target: StorageTarget

    def find(self, method: str, path: str, query: str) -> RequestTarget:
        """Find where a request goes."""
        return storage_target(method, path, query)

    def unknown(self, path: str) -> Message:
        """Return a sentence that says that there can be nothing at a path."""
        return msg("“{path}” is no path of the storage.", path=path)

    def dress(self, answer: aiohttp.ClientResponse) -> None:
        """Set the headers; those of contents make a download of them, in a page without rights."""
        super().dress(answer)
        goal = self._target
        if goal.operation in CONTENTS and answer.status == HTTPStatus.OK:
            archive = goal.operation == "ARCHIVE"
            name = f"{goal.name or 'storage'}.zip" if archive else goal.name
            self.set_header("Content-Type", "application/zip" if archive else "application/octet-stream")
            self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}")
            self.set_header("Content-Security-Policy", "sandbox; default-src 'none'")


# The routes to the scheduler's API and to the storage.


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and the way to the scheduler behind them."""
    upstream = Upstream(settings.api_url, settings.token)
    return RouteGroup(
        [
            (r"/pai/api/v1/(.*)", ForwardHandler, {"upstream": upstream}),
            (r"/pai/webhdfs/v1/(.*)", StorageHandler, {"upstream": upstream}),
        ],
        upstream.close,
    )
