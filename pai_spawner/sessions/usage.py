"""Asks the scheduler what a session's task uses, and remembers when it was used last."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.models import TaskMetrics
from pai_scheduler.rest.sessions import SessionUse

from ..server_job import ROLE
from .policy import Settings

_SERIES = ("cpuPercent", "memoryMB", "gpuPercent", "gpuMemoryMB")


@dataclass(slots=True)
class Usage:
    """What is known of one job; `seen`: up to when its points were read (ms since the epoch)."""

    seen: int = 0
    gpu_used: datetime | None = None
    cpu_used: datetime | None = None
    _latest: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(_SERIES))

    @property
    def latest(self) -> SessionUse:
        """Return what was used last."""
        cpu, memory, gpu, gpu_memory = (self._latest[name] for name in _SERIES)
        return {"cpuPercent": cpu, "memoryMB": memory, "gpuPercent": gpu, "gpuMemoryMB": gpu_memory}

    def take(self, metrics: TaskMetrics, settings: Settings) -> None:
        """Read new points: what is used now, and when that was last as much as the settings ask for."""
        for name in _SERIES:
            points = metrics["series"].get(name) or []
            if points:
                self._latest[name] = points[-1][1]
                self.seen = max(self.seen, points[-1][0])
        self.gpu_used = _last_use(metrics, "gpuPercent", settings.gpu_below) or self.gpu_used
        self.cpu_used = _last_use(metrics, "cpuPercent", settings.cpu_below) or self.cpu_used


class UsageReader:
    """Reads what jobs use; each point once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._jobs: dict[tuple[str, str], Usage] = {}

    def known(self, user: str, job: str) -> Usage:
        """Return what was read of a job so far."""
        return self._jobs.setdefault((user, job), Usage())

    async def read(self, user: str, job: str, settings: Settings) -> Usage | None:
        """Read on; None where the scheduler does not tell."""
        usage = self.known(user, job)
        try:
            usage.take(await self._client.task_metrics(user, job, ROLE, 0, after=usage.seen), settings)
        except (UnreachableError, ApiError):
            return None
        return usage

    def forget_others(self, running: set[tuple[str, str]]) -> None:
        """Forget the jobs that do not run any more; each is given with its user."""
        for gone in self._jobs.keys() - running:
            del self._jobs[gone]


def _last_use(metrics: TaskMetrics, name: str, at_least: float | None) -> datetime | None:
    if at_least is None:
        return None
    times = [time for time, value in metrics["series"].get(name) or [] if value >= at_least]
    return datetime.fromtimestamp(max(times) / 1000, UTC) if times else None
