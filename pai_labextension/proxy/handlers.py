"""The notebook server's way to the scheduler: `<base_url>/pai/api/v1/…` and `<base_url>/pai/webhdfs/v1/…`."""

from __future__ import annotations

from jupyter_server.base.handlers import APIHandler

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.lazy_routes import RouteGroup, RouteSettings

from .forwarding import Forwarding, StorageForwarding, Upstream


class ForwardHandler(Forwarding, PAIHandler, APIHandler):
    """Forwards one request to the API, with the user's own token."""

    # the status bar asks every few seconds; that must not keep an idle notebook server alive
    _track_activity = False

    def initialize(self, upstream: Upstream, token: str) -> None:
        """Take the way to the scheduler."""
        self._upstream, self.caller_token = upstream, token


class StorageHandler(StorageForwarding, ForwardHandler):
    """Forwards one request to the storage."""


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and the way to the scheduler behind them."""
    upstream = Upstream(settings.api_url)
    given = {"upstream": upstream, "token": settings.token}
    return RouteGroup(
        [
            (r"/pai/api/v1/(.*)", ForwardHandler, given),
            (r"/pai/webhdfs/v1/(.*)", StorageHandler, given),
        ],
        upstream.close,
    )
