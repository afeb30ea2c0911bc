"""The outcome of an event: changes to write down, announcements, and instructions to carry out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.fair_share import DecayedUsage, Sharer
from pai_scheduler.job.task import TaskRef

from .dependencies import Dependency
from .model import Attempt, Job, JobEvent, Task

WEBHOOK, MAIL = "webhook", "mail"


@dataclass(frozen=True, slots=True)
class Announcement:
    """One message about one job's end. `target`: a URL or a mail address; empty: the user's own address.

    `document` is what is known of the job then, as JSON has it: the job itself may be deleted before it is
    told. `time` (ms since the epoch): when it ended.
    """

    job_id: str
    channel: str
    user: str
    target: str
    time: int
    document: Mapping[str, Any]


# What is to be done after an event: the changes to write down first, then the instructions to carry out.


@dataclass(frozen=True, slots=True)
class LaunchAttempt:
    """Start all tasks of the job's present attempt."""

    job_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class KillTask:
    """End a task: SIGTERM now, and SIGKILL at the time `until` (ms since the epoch), where it still runs."""

    task: TaskRef
    until: int


@dataclass(frozen=True, slots=True)
class ReleaseAttempt:
    """All tasks are over: remove what the attempt left, but its logs."""

    job_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Send a `Tick` at this time (ms since the epoch)."""

    time: int


Instruction = LaunchAttempt | KillTask | ReleaseAttempt | WakeAt


@dataclass(slots=True)
class Outcome:
    """All that follows from one or more events. Changed objects are kept by reference and written once."""

    jobs: dict[str, Job] = field(default_factory=dict)
    attempts: dict[tuple[str, int], Attempt] = field(default_factory=dict)
    tasks: dict[TaskRef, Task] = field(default_factory=dict)
    #: ids of jobs to be forgotten, with their attempts, events and logs
    deleted: list[str] = field(default_factory=list)
    #: what waiting jobs wait for, by the waiting job's id and the entry of its `extras.after`
    dependencies: dict[tuple[str, int], Dependency] = field(default_factory=dict)
    job_events: list[JobEvent] = field(default_factory=list)
    announcements: list[Announcement] = field(default_factory=list)
    instructions: list[Instruction] = field(default_factory=list)
    #: virtual clusters as administrators changed them; None: deleted
    virtual_clusters: dict[str, VirtualCluster | None] = field(default_factory=dict)
    #: what users have used of virtual clusters; None: forgotten
    usages: dict[Sharer, DecayedUsage | None] = field(default_factory=dict)
