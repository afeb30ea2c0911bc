"""The routes of files that run as jobs."""

from __future__ import annotations

from pathlib import Path

from ..late_routes import RouteGroup, RouteSettings
from .handlers import RunFileHandler, RunPlanHandler
from .running import FileRunner


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and who runs files."""
    given = {"runner": FileRunner(settings.api_url, settings.token, Path(settings.root_dir))}
    return RouteGroup(
        [(r"/pai/run-plan", RunPlanHandler, given), (r"/pai/run-file", RunFileHandler, given)],
        _close_nothing,
    )


async def _close_nothing() -> None:
    """A run opens and closes its own connections."""
