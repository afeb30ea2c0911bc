"""The only place where time, threads and the pure parts meet: takes requests and engine events, one at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .cluster.node import Node
from .core.model import Attempt, Job, StoryEntry
from .engine.logs import TaskLog
from .job.messages import Message
from .job.validate import SpecError


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a user of the Hub or of the tokens file, or a service that acts for users."""

    name: str
    admin: bool = False
    groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Story:
    """A story entry as stored: with its increasing id and whose job it is about."""

    id: int
    user: str
    job: str
    entry: StoryEntry


@dataclass(frozen=True, slots=True)
class Forecast:
    """What submitting a job would do. `fits`: now, later, never."""

    errors: Sequence[SpecError]
    fits: str
    reason: Message | None
    borrows: bool = False


@dataclass(frozen=True, slots=True)
class NodeUse:
    """A node and what is taken of it; `gpu_jobs` gives the job (user, name) that holds a GPU index."""

    node: Node
    cpus: int
    memory_mb: int
    storage_gb: int
    gpu_jobs: Mapping[int, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class VirtualClusterUse:
    """A virtual cluster and what its jobs hold. Capacities in per cent; memory in MB."""

    name: str
    capacity: float
    max_capacity: float
    used_capacity: float
    active_jobs: int
    pending_jobs: int
    total_jobs: int
    used: tuple[int, int, int]  # memory MB, CPUs, GPUs
    total: tuple[int, int, int]
    nodes: tuple[str, ...]


class Service:
    """The scheduler. Every method checks what its caller may do; refusals are `errors.RequestError`."""

    async def start(self) -> None:
        """Take up what the store knows and what the engine runs, then schedule."""
        ...

    async def close(self) -> None:
        """Stop scheduling; tasks run on."""
        ...

    async def submit(self, caller: Caller, owner: str, config: Mapping[str, Any]) -> str:
        """Accept a job durably; give its name. Refuses: invalid, name taken, no such virtual cluster, not the owner."""
        ...

    async def stop_job(self, caller: Caller, owner: str, name: str) -> None:
        """Stop a job; no change where it has ended."""
        ...

    async def delete_job(self, caller: Caller, owner: str, name: str) -> None:
        """Forget a job and its logs, stopping it first."""
        ...

    async def jobs(self, caller: Caller, owner: str | None = None) -> list[Job]:
        """List jobs, newest first: the caller's own, or (admins) everybody's or `owner`'s."""
        ...

    async def job(self, caller: Caller, owner: str, name: str) -> Job:
        """Give a job with its last attempt."""
        ...

    def waiting_reason(self, job: Job) -> Message | None:
        """Say why a job waits now; None where it does not."""
        ...

    async def config(self, caller: Caller, owner: str, name: str) -> dict[str, Any]:
        """Give the job JSON as submitted."""
        ...

    async def attempts(self, caller: Caller, owner: str, name: str) -> list[Attempt]:
        """Give all attempts, oldest first."""
        ...

    async def story(
        self, caller: Caller, owner: str | None, name: str | None, after: int = 0, limit: int = 10_000
    ) -> list[Story]:
        """Give what happened to a job (or to all jobs the caller may see) after story id `after`."""
        ...

    def follow(
        self, caller: Caller, owner: str | None, name: str | None, after: int = 0
    ) -> AsyncIterator[Story]:
        """Give the story from `after` on, and go on as it happens; of one job: until that job has ended."""
        ...

    async def task_log(
        self, caller: Caller, owner: str, name: str, role: str, index: int, attempt: int | None = None
    ) -> TaskLog:
        """Find a task's log (attempt None: the last)."""
        ...

    async def task_ended(
        self, caller: Caller, owner: str, name: str, role: str, index: int, attempt: int | None = None
    ) -> bool:
        """Tell whether a task will write no more."""
        ...

    async def validate(self, caller: Caller, config: object) -> Forecast:
        """Say what submitting this would do."""
        ...

    def nodes(self) -> list[NodeUse]:
        """List the nodes and what is taken of them."""
        ...

    def virtual_clusters(self) -> list[VirtualClusterUse]:
        """List the virtual clusters."""
        ...

    @property
    def front_door_url(self) -> str | None:
        """Give the address under which containers reach the Hub's public proxy; None: tasks are local processes."""
        ...
