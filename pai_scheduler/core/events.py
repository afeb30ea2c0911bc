"""Events that `Core.handle` takes: all that can happen to a job. Times are ms since the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Node
from pai_scheduler.i18n import Message
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef

from .dependencies import Dependency
from .states import State


class EndCause(StrEnum):
    """Cause of a task's end."""

    EXITED = "exited"  # the command ended by itself or by a signal; `exit_code` is set
    OOM = "oom"  # the kernel ended it for its memory limit; `exit_code` is set
    DISK = "disk"  # ended because it wrote more than its storageGB; `exit_code` is set
    KILLED = "killed"  # ended because the scheduler asked for it; `exit_code` may be None (never started)
    LAUNCH_FAILED = "launch-failed"  # it never ran, another try may work; `reason` says why
    PORT_CONFLICT = "port-conflict"  # it never ran: one of its ports is taken by another program
    REFUSED = "refused"  # it never ran and never will unless the user changes the job (no such image …)
    LOST = "lost"  # it ran, and how it ended cannot be known (its supervisor was killed …)
    NODE_LOST = "node-lost"  # its node is gone, or has not answered for too long; it may have run or not


@dataclass(frozen=True, slots=True)
class Started:
    """A task's command runs."""

    task: TaskRef
    time: int
    address: str
    #: Docker's container id, or the process id: what a person would look for.
    container_id: str


@dataclass(frozen=True, slots=True)
class HeldAfterFailure:
    """The command of a task launched with `hold_on_failure` has failed; its container stays until a kill.

    `cause` and `exit_code` as an `Ended` would have had them.
    """

    task: TaskRef
    time: int
    cause: EndCause
    exit_code: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A task is over, once and for all. `exit_code`: 0–255, 128 + n for signal n, None where it never ran."""

    task: TaskRef
    time: int
    cause: EndCause
    exit_code: int | None
    reason: Message | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Something that takes a while goes on: an image is pulled, a container made. `percent` 0–100 or None."""

    task: TaskRef
    time: int
    message: Message
    percent: int | None = None


class Notice(StrEnum):
    """Event that an engine can notice without a task's end; the job's events have each once per task."""

    PROCESS_KILLED = "process-killed"  # the kernel ended one of its processes for its memory limit
    LOG_LOST = "log-lost"  # a full disk lost part of what it printed
    LOG_SHORTENED = "log-shortened"  # it printed more than is kept


@dataclass(frozen=True, slots=True)
class Noticed:
    """Something about a task that people should know; it changes nothing. May be told again by an engine."""

    task: TaskRef
    time: int
    notice: Notice
    message: Message
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Accessed:
    """Somebody opened a way into a task, or closed it; it becomes a job event and changes nothing else."""

    task: TaskRef
    time: int
    message: Message
    data: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PortsTaken:
    """Other programs have these ports, some chosen for tasks of an attempt of which none was launched."""

    time: int
    job_id: str
    attempt: int
    ports: frozenset[int]


@dataclass(frozen=True, slots=True)
class NodesChanged:
    """Nodes came, went, or changed; the whole list as it is now."""

    time: int
    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Submitted:
    """A user submits a job that was found valid. `order`: its place among all submissions.

    `after`: the jobs that it waits for. `ended`: how those of them came out, by id, that had ended when this
    came to the core; one that is neither there nor known to the core is deleted.
    """

    time: int
    job_id: str
    user: str
    spec: JobSpec
    order: int
    after: tuple[Dependency, ...] = ()
    ended: Mapping[str, State] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StopRequested:
    """A user (`by`) wants a job to end; with `delete`, to be forgotten afterwards.

    `reason`: why, as whoever stops it says it; empty: they did not. `force`: its tasks have no more time to
    end by themselves, also where they are being stopped already.
    """

    time: int
    job_id: str
    by: str
    delete: bool = False
    reason: str = ""
    force: bool = False


@dataclass(frozen=True, slots=True)
class Reordered:
    """A waiting job gets another priority, or another place in its queue; None: as it is.

    `place` counts from 1 among the waiting jobs of the same virtual cluster and priority; with `owner_only`
    among those of the job's owner only, so that nobody else's job moves back.
    """

    time: int
    job_id: str
    by: str
    priority: int | None = None
    place: int | None = None
    owner_only: bool = True


@dataclass(frozen=True, slots=True)
class SharesChanged:
    """An administrator changed the virtual clusters; the whole list as it is now.

    `changes` are those that differ from before, to be kept over a restart; None: deleted.
    """

    time: int
    virtual_clusters: tuple[VirtualCluster, ...]
    changes: Mapping[str, VirtualCluster | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed; sent at the time that a `WakeAt` instruction named."""

    time: int


Event = (
    Started
    | HeldAfterFailure
    | Ended
    | Progress
    | Noticed
    | Accessed
    | PortsTaken
    | NodesChanged
    | Submitted
    | StopRequested
    | Reordered
    | SharesChanged
    | Tick
)
