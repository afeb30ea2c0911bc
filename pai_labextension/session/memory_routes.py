"""The route of this server's own memory."""

from __future__ import annotations

from pai_labextension.late_routes import RouteGroup, RouteSettings

from .memory_handlers import MemoryHandler


def make_part(settings: RouteSettings) -> RouteGroup:  # noqa: ARG001 - nobody is asked
    """Make the route."""
    return RouteGroup([(r"/pai/memory", MemoryHandler, {})], _close_nothing)


async def _close_nothing() -> None:
    """Nothing is open."""
