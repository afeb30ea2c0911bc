"""The route of the service that opens in this server."""

from __future__ import annotations

from pai_labextension.late_routes import RouteGroup, RouteSettings

from .handlers import ServiceStateHandler


def make_part(settings: RouteSettings) -> RouteGroup:  # noqa: ARG001 - nobody is asked
    """Make the route."""
    return RouteGroup([(r"/pai/service", ServiceStateHandler, {})], _close_nothing)


async def _close_nothing() -> None:
    """Nothing is open; the server ends the program itself."""
