"""Run times predicted from those jobs of a user that had the same image and commands.

What is found is what was usual, never a promise. Of a job that has a time limit is learned which part of it
such jobs take, as people name round numbers that are too long. Of one without, how long the same took before:
what the user's other jobs took says nothing about it.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from statistics import mean, median

from pai_scheduler.job.spec import JobSpec

#: So many jobs must have ended before something is learned from them; of more than so many the last count.
LEAST_JOBS = 3
MOST_JOBS = 16
#: Of so many kinds of jobs it is known; those of which none ended for the longest time are forgotten.
MOST_KINDS = 4000

#: ms for which a job had its resources, and its time limit in ms; None: it had none
_Run = tuple[int, int | None]


class Durations:
    """Known run times of ended jobs: first of the same user, image and commands, then of less."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, deque[_Run]] = OrderedDict()

    def learn(self, user: str, spec: JobSpec, ran_ms: int, limit_ms: int | None) -> None:
        """Take in for how long a job had its resources, by its last attempt, under which time limit."""
        for kind in _kinds(user, spec):
            runs = self._known.get(kind)
            if runs is None:
                runs = self._known[kind] = deque(maxlen=MOST_JOBS)
            runs.append((ran_ms, limit_ms))
            self._known.move_to_end(kind)
        while len(self._known) > MOST_KINDS:
            self._known.popitem(last=False)

    def likely(self, user: str, spec: JobSpec, limit_ms: int | None, ran_ms: int = 0) -> int | None:
        """Return for how long in all (ms) a job will have its resources, which it has had for `ran_ms`.

        Without a limit the mean of what the same took before, with one the median of the parts that such jobs
        took of theirs; of those that took longer than this one by now. None: there were none.
        """
        for kind in _kinds(user, spec):
            runs = self._known.get(kind, ())
            if limit_ms is None:
                # (several wait for each other: a sum of medians would be too little)
                longer_runs = [ran for ran, _ in runs if ran > ran_ms]
                return round(mean(longer_runs)) if len(runs) >= LEAST_JOBS and longer_runs else None
            took = [limit_ms * ran / limit for ran, limit in runs if limit]
            longer = [one for one in took if one > ran_ms] if len(took) >= LEAST_JOBS else ()
            if longer:
                return round(median(longer))
        return None


def _kinds(user: str, spec: JobSpec) -> Iterator[Hashable]:
    """Return what makes jobs alike, the closest first."""
    yield user, spec.image, tuple(role.command for role in spec.task_roles)
    yield user, spec.image
    yield user
