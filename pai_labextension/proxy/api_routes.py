"""The routes to the scheduler's API and to the storage."""

from __future__ import annotations

from pai_labextension.late_routes import RouteGroup, RouteSettings

from .handlers import ForwardHandler
from .storage_handlers import StorageHandler
from .upstream import Upstream


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
