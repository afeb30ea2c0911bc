"""Records that the store gives: job events, links between jobs, history, waiting announcements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pai_scheduler.core.instructions import Announcement
from pai_scheduler.core.model import JobEvent, State
from pai_scheduler.job.dependencies import On
from pai_scheduler.job.spec import JobSpec


@dataclass(frozen=True, slots=True)
class StoredJobEvent:
    """A job event with its id and whose job it is about."""

    id: int
    user: str
    job: str
    entry: JobEvent


class SubmittedText(NamedTuple):
    """A job as it was sent, comments and layout included, and its media type."""

    text: str
    media_type: str


class JobPosition(NamedTuple):
    """The position of a job in the list of jobs: newest first, those of one ms by id; never changes."""

    created: int
    id: str


@dataclass(frozen=True, slots=True)
class LinkedJob:
    """A job that another waits for, or that waits for it: its name and its state now; None: it is deleted.

    `on`: how the one that is waited for must end; `holds`: whether it did; None: it has not ended.
    """

    name: str
    state: State | None
    on: On
    holds: bool | None


@dataclass(frozen=True, slots=True)
class JobLinks:
    """The dependencies of a job in declared order, and the first of its `dependent_count` dependents."""

    dependencies: Sequence[LinkedJob] = ()
    dependents: Sequence[LinkedJob] = ()
    dependent_count: int = 0


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A job and its last attempt. Times are ms since the epoch; `placed`: when it got its resources.

    `created`: when it was submitted; of one that waited for other jobs, when they had ended as it asks.

    `placed` is None where it never got any, `ended` where it still has them.
    """

    name: str
    user: str
    spec: JobSpec
    created: int
    priority: int
    placed: int | None
    ended: int | None


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A job that has ended, and for how long (ms) its last attempt had its resources."""

    user: str
    spec: JobSpec
    ran_ms: int


@dataclass(frozen=True, slots=True)
class WaitingAnnouncement:
    """An announcement, how often it was tried in vain, and from when on it is to be tried (ms)."""

    announcement: Announcement
    tries: int
    due: int
