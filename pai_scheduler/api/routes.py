"""The addresses below `/api/v1`, and the handler of each."""

from __future__ import annotations

from . import account, cluster, events, jobs, logs, monitoring, queue, schedules, ssh
from .base import Route

ROUTES: tuple[Route, ...] = tuple(
    route
    for part in (
        # (who asks for the first is answered soonest)
        jobs,
        account,
        schedules,
        ssh,
        queue,
        events,
        logs,
        monitoring,
        cluster,
    )
    for route in part.ROUTES
)
