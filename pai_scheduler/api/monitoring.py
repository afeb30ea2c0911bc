"""For monitoring of the scheduler: alive, ready, its metrics for Prometheus, and what a task has used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client.exposition import choose_encoder

from pai_scheduler.i18n import msg
from pai_scheduler.monitoring.recorder import Recording
from pai_scheduler.rest.errors import forbidden
from pai_scheduler.rest.models import Count, TaskMetrics
from pai_scheduler.service.health import Status

from .auth import bearer_token
from .base import ApiHandler, Route, routes
from .operations import ATTEMPT, NO_JOB, Answer, operation, query

#: Series that count bytes; the others are shares and MB, of which more digits say nothing.
_WHOLE = frozenset({"netRxBytes", "netTxBytes"})


class _WatchedHandler(ApiHandler):
    """Opens to the token for monitoring, besides those who may read it as users."""

    async def prepare(self) -> None:
        """Look for the token for monitoring first: it works without the Hub."""
        token = self.context.monitoring_token
        header = self.request.headers.get("Authorization", "")
        if not (self.request.method == "GET" and token and header and token.matches(bearer_token(header))):
            await super().prepare()


class ReadyHandler(_WatchedHandler):
    """`/readyz`: requests can be served, or why not."""

    async def get(self) -> None:
        """Show."""
        readiness = await self.service.health.look()
        reasons = [self.in_words(reason) for reason in readiness.reasons]
        status = 200 if readiness.status is Status.READY else 503
        self.answer({"status": readiness.status.value, "reasons": reasons}, status)


class MetricsHandler(_WatchedHandler):
    """`/metrics`, as Prometheus reads it; for administrators and the token for monitoring."""

    async def get(self) -> None:
        """Show."""
        if self.identified is not None and not self.identified.admin:
            raise forbidden(msg("Only an administrator may read the scheduler's metrics."))
        encode, content_type = choose_encoder(self.request.headers.get("Accept", ""))
        self.set_header("Content-Type", content_type)
        self.finish(encode(self.service.monitor.registry))


class TaskMetricsHandler(ApiHandler):
    """`…/taskRoles/:R/tasks/:I/metrics`: what a task has used over time."""

    @operation(
        "GET /user/{user}/jobs/{job}/taskRoles/{role}/tasks/{index}/metrics",
        "taskMetrics",
        "watching",
        "What a task has used over time",
        {
            200: Answer(
                "The points of each series, the oldest first; the older ones are further apart.", TaskMetrics
            )
        },
        parameters=[
            ATTEMPT,
            query("after", Count, "Only points later than this (ms since the epoch)", 0),
        ],
        refusals=[NO_JOB],
    )
    async def get(self, user: str, name: str, role: str, index: str) -> None:
        """Show; `after` (ms since the epoch) leaves out what was asked for before."""
        attempt, after = self.query_int("attempt", least=0), self.query_int("after", 0, least=0)
        task = await self.service.tasks.find(self.principal, user, name, role, int(index), attempt)
        recording = await self.service.tasks.usage(task, after or 0)
        self.answer(_usage(recording, self.service.tasks.gpu_memory_mb(task)))


def _usage(recording: Recording, gpu_memory_mb: int | None) -> Mapping[str, Any]:
    return {
        "interval": recording.interval,
        "gpuMemoryTotalMB": gpu_memory_mb,
        "series": {
            name: [[time, int(value) if name in _WHOLE else round(value, 2)] for time, value in points]
            for name, points in recording.series.items()
        },
    }


ROUTES: list[Route] = routes(TaskMetricsHandler)
#: beside the API, not below it
INNER_ROUTES: list[Route] = [
    (r"readyz", ReadyHandler),
    (r"metrics", MetricsHandler),
]
