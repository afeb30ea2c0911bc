"""The name of a task, and what follows from it: the names of its container, folder and host."""

from __future__ import annotations

import re
from typing import NamedTuple

_NAME = re.compile(r"pai-(?P<job>[a-z0-9]+)-(?P<attempt>\d+)-(?P<role>[A-Za-z0-9._-]+)-(?P<index>\d+)")


class TaskRef(NamedTuple):
    """Reference to a task: one index of one role in one attempt of one job.

    `job_id` is the service's own id (lower case letters and digits, never used twice), not the
    user's jobName: a deleted job's name may be used again, its containers' names must not.
    """

    job_id: str
    attempt: int
    role: str
    #: hides `tuple.index`, which nobody asks of a task
    index: int  # type: ignore[assignment]

    @property
    def name(self) -> str:
        """Return the name of everything an engine starts for this task.

        It is unique and stands in file, container and cgroup names alike. The only character of
        a role that Docker refuses is `~`; `-` takes its place, which no role name contains.
        """
        return f"pai-{self.job_id}-{self.attempt}-{self.role.replace('~', '-')}-{self.index}"

    @property
    def hostname(self) -> str:
        """Return the name by which the other tasks of the job reach this one: `<role>-<index>`."""
        return f"{self.role}-{self.index}"

    @classmethod
    def parse(cls, name: str) -> TaskRef | None:
        """Read back `name`; None where it is not the name of a task of ours."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        return cls(match["job"], int(match["attempt"]), match["role"].replace("-", "~"), int(match["index"]))
