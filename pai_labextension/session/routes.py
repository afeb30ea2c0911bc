"""The routes to what the Hub's service `pai-sessions` says of this notebook server."""

from __future__ import annotations

import os

from pai_labextension.late_routes import RouteGroup, RouteSettings

from .address import session_address
from .handlers import KeepHandler, SessionHandler, SessionService


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and the way to the service behind them."""
    service = SessionService(session_address(os.environ), settings.token)
    given = {"service": service}
    return RouteGroup(
        [(r"/pai/session", SessionHandler, given), (r"/pai/session/keep", KeepHandler, given)],
        service.close,
    )
