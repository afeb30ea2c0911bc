"""The addresses below `/api/v1`, and the handler of each."""

from __future__ import annotations

from . import (
    account,
    changes,
    cluster,
    events,
    jobs,
    logs,
    maintenance,
    monitoring,
    openapi_handlers,
    public_keys,
    queue,
    schedules,
    ssh_access,
    task_ports,
)
from .base_handlers import Route

ROUTES: tuple[Route, ...] = tuple(
    route
    for part in (
        # (who asks for the first is answered soonest)
        jobs,
        account,
        openapi_handlers,
        schedules,
        ssh_access,
        task_ports,
        public_keys,
        queue,
        events,
        changes,
        logs,
        monitoring,
        cluster,
        maintenance,
    )
    for route in part.ROUTES
)
