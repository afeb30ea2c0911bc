"""The notebook server's way to the scheduler: `<base_url>/pai/api/v1/…`, `…/webhdfs/v1/…`, `…/stream`."""

from __future__ import annotations

from typing import Any

from jupyter_server.base.handlers import APIHandler
from jupyter_server.base.websocket import WebSocketMixin

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.lazy_routes import RouteGroup, RouteSettings

from .forwarding import Forwarding, StorageForwarding, Upstream
from .stream import FollowingSocket, JoinedStreams


class ForwardHandler(Forwarding, PAIHandler, APIHandler):
    """Forwards one request to the API, with the user's own token."""

    # the status bar asks every few seconds; that must not keep an idle notebook server alive
    _track_activity = False

    def initialize(self, upstream: Upstream, token: str) -> None:
        """Take the way to the scheduler."""
        self._upstream, self.caller_token = upstream, token


class StorageHandler(StorageForwarding, ForwardHandler):
    """Forwards one request to the storage."""


class StreamSocket(WebSocketMixin, FollowingSocket, PAIHandler):
    """Follows what the user's own token may see, through one connection of a page."""

    def initialize(self, streams: JoinedStreams, token: str) -> None:
        """Take what is followed."""
        self._streams, self.caller_token = streams, token

    async def get(self, *args: str) -> None:
        """Refuse, or become a WebSocket."""
        await self.check_permission("read")
        await super().get(*args)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin."""
        super().open(*args, **kwargs)
        self.begin()

    def on_message(self, message: str | bytes) -> None:
        """Do what a message says."""
        self.take(message)

    def on_close(self) -> None:
        """Follow no more."""
        self.end()


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and the way to the scheduler behind them."""
    upstream = Upstream(settings.api_url)
    streams = JoinedStreams(upstream)
    given = {"upstream": upstream, "token": settings.token}

    async def close() -> None:
        await streams.close()
        await upstream.close()

    return RouteGroup(
        [
            (r"/pai/api/v1/(.*)", ForwardHandler, given),
            (r"/pai/webhdfs/v1/(.*)", StorageHandler, given),
            (r"/pai/stream", StreamSocket, {"streams": streams, "token": settings.token}),
        ],
        close,
    )
