"""The routes about kernels that are jobs."""

from __future__ import annotations

from ..late_routes import RouteGroup, RouteSettings
from .handlers import ID_PATTERN, KeepHandler, KernelsHandler


def make_part(settings: RouteSettings) -> RouteGroup:  # noqa: ARG001 - the kernels have theirs
    """Make the routes; what is behind them belongs to the server's kernels."""

    async def close() -> None:
        pass

    return RouteGroup(
        [(r"/pai/kernels", KernelsHandler, {}), (rf"/pai/kernels/{ID_PATTERN}/keep", KeepHandler, {})], close
    )
