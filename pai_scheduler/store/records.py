"""What the store lists: a job event with its id, and where a job stands in the list of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pai_scheduler.core.model import JobEvent


@dataclass(frozen=True, slots=True)
class StoredJobEvent:
    """A job event with its id and whose job it is about."""

    id: int
    user: str
    job: str
    entry: JobEvent


class JobPosition(NamedTuple):
    """Where a job stands in the list of jobs: newest first, those of one ms by id; never changes."""

    created: int
    id: str
