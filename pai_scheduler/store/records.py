"""What the store lists: job events with their ids, places in the list of jobs, links between jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pai_scheduler.core.model import JobEvent, State
from pai_scheduler.job.after import On


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
    """Where a job stands in the list of jobs: newest first, those of one ms by id; never changes."""

    created: int
    id: str


@dataclass(frozen=True, slots=True)
class JobLink:
    """A job that another waits for, or that waits for it: its name and its state now; None: it is deleted.

    `on`: how the one that is waited for must end; `holds`: whether it did; None: it has not ended.
    """

    name: str
    state: State | None
    on: On
    holds: bool | None


@dataclass(frozen=True, slots=True)
class JobLinks:
    """What a job waits for, in the order in which it says so, and who waits for it, the first of so many."""

    dependencies: Sequence[JobLink] = ()
    dependents: Sequence[JobLink] = ()
    dependent_count: int = 0
