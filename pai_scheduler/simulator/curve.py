"""What was used at each moment of a replay: GPUs, who waited, and how free GPUs were scattered."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.resources import Assignment

from .trace import TraceJob


@dataclass(frozen=True, slots=True)
class Span:
    """A while in which nothing changed; times in ms."""

    begin: int
    end: int
    used: int
    waiting: int
    #: free GPUs on nodes of which some are taken
    scattered: int
    #: a job waited that asks for no more GPUs than were free
    idle: bool

    @property
    def length(self) -> int:
        """Return how long it was, in ms."""
        return self.end - self.begin


class Curve:
    """Told what changes as the clock goes; remembers each while in which something was different."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.gpus = sum(len(node.gpus) for node in nodes)
        self._sizes = {node.name: len(node.gpus) for node in nodes}
        self._free = dict(self._sizes)
        self._used = 0
        self._scattered = 0
        self._waiting = 0
        #: how many wait that ask for so many GPUs
        self._asked: Counter[int] = Counter()
        self._now: int | None = None
        self._times = array("q")
        self._values = array("q")

    def move(self, time: int) -> None:
        """Go on to a moment: what is now was so until then."""
        if self._now is not None and time > self._now:
            self._times.append(self._now)
            idle = self._waiting > 0 and min(self._asked) <= self.gpus - self._used
            self._values.extend((self._used, self._waiting, self._scattered, idle))
        self._now = time

    def close(self) -> None:
        """Know that nothing comes after this moment."""
        if self._now is not None:
            self._times.append(self._now)

    def come(self, job: TraceJob) -> None:
        """A job waits."""
        self._waiting += 1
        self._asked[job.gpus] += 1

    def leave(self, job: TraceJob) -> None:
        """It waits no more."""
        self._waiting -= 1
        self._asked[job.gpus] -= 1
        if not self._asked[job.gpus]:
            del self._asked[job.gpus]

    def take(self, assignment: Assignment) -> None:
        """A task has its GPUs."""
        self._change(assignment, len(assignment.gpus))

    def give(self, assignment: Assignment) -> None:
        """It has them no more."""
        self._change(assignment, -len(assignment.gpus))

    def _change(self, assignment: Assignment, taken: int) -> None:
        if taken:
            node = assignment.node
            self._used += taken
            self._scattered -= self._scattered_on(node)
            self._free[node] -= taken
            self._scattered += self._scattered_on(node)

    def _scattered_on(self, node: str) -> int:
        free = self._free[node]
        return free if free < self._sizes[node] else 0

    def __iter__(self) -> Iterator[Span]:
        for number in range(len(self._times) - 1):
            used, waiting, scattered, idle = self._values[4 * number : 4 * number + 4]
            yield Span(self._times[number], self._times[number + 1], used, waiting, scattered, bool(idle))
