"""The routes of submit with code."""

from __future__ import annotations

from pathlib import Path

from pai_labextension.late_routes import RouteGroup, RouteSettings

from .code import CodeSubmitter
from .code_handlers import PlanHandler, SubmitHandler


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes, and who submits."""
    submitter = CodeSubmitter(settings.api_url, settings.token, Path(settings.root_dir))
    return RouteGroup(
        [
            (r"/pai/code-plan", PlanHandler, {"submitter": submitter}),
            (r"/pai/submit-with-code", SubmitHandler, {"submitter": submitter}),
        ],
        _close_nothing,
    )


async def _close_nothing() -> None:
    """A submit opens and closes its own connections."""
