"""The route of the job editor."""

from __future__ import annotations

from ..late_routes import RouteGroup, RouteSettings
from .handlers import JobEditorHandler


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the route."""
    arguments = {"api_url": settings.api_url, "token": settings.token}
    return RouteGroup([(r"/pai/job-editor", JobEditorHandler, arguments)], _close_nothing)


async def _close_nothing() -> None:
    """Nothing is open between two requests."""
