"""How true the estimates of a replay were: when jobs were said to start, and when they did."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from .run import Replayed

#: What is told in seconds is never less than 1; so short a wait is as true as one can say.
_LEAST_MS = 1000


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of the jobs that waited when they were submitted, how true it was what they were told then.

    `ratio`: the real wait, in parts of the one that was told; its median, None: nobody was told anything.
    """

    #: who started at once, and was told nothing
    at_once: int
    waited: int
    #: who was told that nobody knows
    untold: int
    #: the real wait was within half and twice of what was told, less than half, more than twice
    true: int
    sooner: int
    later: int
    ratio: float | None

    @property
    def told(self) -> int:
        """Count the jobs that waited and were told when they would start."""
        return self.waited - self.untold

    @classmethod
    def of(cls, jobs: Iterable[Replayed]) -> Accuracy:
        """Compare; a job that was told when it would start, and never did, started later."""
        at_once = untold = true = sooner = later = 0
        ratios = []
        for one in jobs:
            if not one.asked:
                at_once += 1
            elif one.said is None:
                untold += 1
            elif one.first_started is None:
                later += 1
                ratios.append(float("inf"))
            else:
                ratio = _wait(one, one.first_started) / _wait(one, one.said)
                ratios.append(ratio)
                true += 0.5 <= ratio <= 2
                sooner += ratio < 0.5
                later += ratio > 2
        told = true + sooner + later
        return cls(at_once, told + untold, untold, true, sooner, later, median(ratios) if ratios else None)


def _wait(one: Replayed, start: int) -> int:
    return max(_LEAST_MS, start - one.job.submitted)


def document(found: Accuracy) -> dict[str, object]:
    """Return the numbers for JSON."""
    return {
        "startedAtOnce": found.at_once,
        "waited": found.waited,
        "notEstimated": found.untold,
        "withinFactor2": found.true,
        "sooner": found.sooner,
        "later": found.later,
        "medianRatio": None if found.ratio in (None, float("inf")) else round(found.ratio or 0.0, 3),
    }
