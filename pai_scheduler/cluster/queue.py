"""Who is next: by rank within a virtual cluster; what does not fit does not block what does.

Jobs that ask for the same under the same limits (their shape) wait behind one another in a line: when the
first of a line does not fit, none of it does. So a look at the queue costs as many tries as there are lines
that something has changed for, not as there are jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Generic, TypeVar

from sortedcontainers import SortedList

#: Priority (negated) and order of submission: lower comes first.
Rank = tuple[int, int]
#: Where a job stands in the queue of its virtual cluster: its rank and its id.
QueuePosition = tuple[Rank, str]
Shape = TypeVar("Shape", bound=Hashable)


class Standing(Enum):
    """How a line stands: worth a try, waiting to borrow (later in the same look), or not worth one."""

    OPEN = auto()
    DEFERRED = auto()
    BLOCKED = auto()


@dataclass(slots=True, eq=False)
class ShapeQueue(Generic[Shape]):
    """The jobs of one shape in one virtual cluster."""

    virtual_cluster: str
    shape: Shape
    standing: Standing = Standing.OPEN
    #: its jobs would be within the guaranteed share
    within: bool = False
    members: SortedList = field(default_factory=SortedList)
    #: how often a job has started before the first of this line, though it came later
    overtaken: int = 0
    #: jobs of it for which resources are kept
    reserved: int = 0

    @property
    def head(self) -> tuple[Rank, str]:
        """Return the first job."""
        first: tuple[Rank, str] = self.members[0]
        return first


@dataclass(slots=True)
class _Place(Generic[Shape]):
    line: ShapeQueue[Shape]
    rank: Rank
    #: what `line.overtaken` was when the job came
    base: int
    aside: bool = False


class Queue(Generic[Shape]):
    """The waiting jobs of all virtual clusters."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, Shape], ShapeQueue[Shape]] = {}
        self._open: dict[ShapeQueue[Shape], None] = {}
        self._deferred: dict[ShapeQueue[Shape], None] = {}
        self._places: dict[str, _Place[Shape]] = {}
        #: all jobs of a virtual cluster in order, so that a place is looked up and not counted
        self._ranked: dict[str, SortedList] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._places

    def add(self, job_id: str, virtual_cluster: str, shape: Shape, rank: Rank, overtaken: int = 0) -> None:
        """Put a job in line. `overtaken`: how often that happened to it before."""
        key = (virtual_cluster, shape)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = ShapeQueue(virtual_cluster, shape)
            self._open[line] = None
        line.members.add((rank, job_id))
        self._places[job_id] = _Place(line, rank, line.overtaken - overtaken)
        self._ranked.setdefault(virtual_cluster, SortedList()).add((rank, job_id))

    def remove(self, job_id: str) -> None:
        """Take a job out of line; no change where it is not in line."""
        place = self._places.pop(job_id, None)
        if place is None:
            return
        line = place.line
        ranked = self._ranked[line.virtual_cluster]
        ranked.remove((place.rank, job_id))
        if not ranked:
            del self._ranked[line.virtual_cluster]
        if place.aside:
            line.reserved -= 1
        else:
            self._leave(line, place.rank, job_id)

    def set_aside(self, job_id: str) -> None:
        """Keep a job's place, but try it no more: something is being kept for it."""
        place = self._places[job_id]
        place.aside = True
        place.line.reserved += 1
        self._leave(place.line, place.rank, job_id)

    def take_back(self, job_id: str) -> None:
        """Undo `set_aside`."""
        place = self._places.pop(job_id)
        place.line.reserved -= 1
        shape, name = place.line.shape, place.line.virtual_cluster
        overtaken = place.line.overtaken - place.base
        self._ranked[name].remove((place.rank, job_id))
        self.add(job_id, name, shape, place.rank, overtaken)
        self._set(self._lines[name, shape], Standing.OPEN)

    def candidates(self) -> Iterator[str]:
        """Return the jobs worth a try, first come first; after each, call `remove`, `set_aside` or `set`."""
        return self._merged(self._open, Standing.OPEN)

    def deferred(self) -> Iterator[str]:
        """Return the first jobs of the deferred lines; after each, call `remove`, `set_aside` or `set`."""
        return self._merged(self._deferred, Standing.DEFERRED)

    def set(self, job_id: str, standing: Standing, *, within: bool) -> None:
        """Return how the line of a job stands, which was tried."""
        line = self._places[job_id].line
        line.within = within
        self._set(line, standing)

    def reopen(self, worth: Callable[[ShapeQueue[Shape]], bool] = lambda line: True) -> None:  # noqa: ARG005
        """Something has changed: lines for which it may matter are worth a try again."""
        for line in self._lines.values():
            if line.standing is not Standing.OPEN and worth(line):
                self._set(line, Standing.OPEN)

    def overtook(self, virtual_cluster: str, rank: Rank, *, within: bool) -> Iterator[ShapeQueue[Shape]]:
        """A job has started: who was tried before it and came before it was overtaken; return their lines.

        Between virtual clusters the order of submission counts; who stays within a guaranteed share
        overtakes nobody that wants to borrow.
        """
        for line in self._lines.values():
            if line.standing is Standing.OPEN or not line.members:
                continue
            head = line.head[0]
            if line.virtual_cluster == virtual_cluster:
                overtaken = head < rank
            else:
                overtaken = (line.within or not within) and head[1] < rank[1]
            if overtaken:
                line.overtaken += 1
                yield line

    def overtaken(self, job_id: str) -> int:
        """Return how often a job was overtaken, or one that stood before it in its line."""
        place = self._places[job_id]
        return place.line.overtaken - place.base

    def has_reservation(self, job_id: str) -> bool:
        """Return whether resources are kept for one of the jobs in a job's line."""
        return self._places[job_id].line.reserved > 0

    def is_within(self, job_id: str) -> bool:
        """Return whether a job stays within the guaranteed share, as was found when it was tried."""
        return self._places[job_id].line.within

    @property
    def anything_open(self) -> bool:
        """Return whether there is a line worth a try."""
        return bool(self._open)

    def shape(self, job_id: str) -> Shape:
        """Return what a job asks for."""
        return self._places[job_id].line.shape

    def rank(self, job_id: str) -> Rank:
        """Return a job's rank."""
        return self._places[job_id].rank

    def position(self, job_id: str) -> int:
        """Return a job's place in its virtual cluster, from 1; KeyError where it is not in line."""
        place = self._places[job_id]
        return 1 + int(self._ranked[place.line.virtual_cluster].index((place.rank, job_id)))

    def place_for(self, virtual_cluster: str, rank: Rank) -> int:
        """Return the place that a job of this rank would have, from 1."""
        ranked = self._ranked.get(virtual_cluster)
        return 1 if ranked is None else 1 + int(ranked.bisect_left((rank, "")))

    def waiting(self, virtual_cluster: str) -> int:
        """Count the jobs in line of a virtual cluster."""
        return len(self._ranked.get(virtual_cluster, ()))

    def in_order(self, virtual_cluster: str) -> Iterator[str]:
        """Return the jobs of a virtual cluster, first come first."""
        return (job_id for _, job_id in self._ranked.get(virtual_cluster, ()))

    def after(
        self, virtual_cluster: str, position: QueuePosition | None = None, limit: int | None = None
    ) -> tuple[int, list[str]]:
        """Return the place of the first job after a position, and the ids from there: `limit` (None: all)."""
        ranked = self._ranked.get(virtual_cluster)
        if ranked is None:
            return 1, []
        begin = 0 if position is None else int(ranked.bisect_right(position))
        end = None if limit is None else begin + limit
        return begin + 1, [job_id for _, job_id in ranked.islice(begin, end)]

    def _leave(self, line: ShapeQueue[Shape], rank: Rank, job_id: str) -> None:
        line.members.remove((rank, job_id))
        if not line.members:
            del self._lines[line.virtual_cluster, line.shape]
            self._open.pop(line, None)
            self._deferred.pop(line, None)

    def _set(self, line: ShapeQueue[Shape], standing: Standing) -> None:
        line.standing = standing
        self._open.pop(line, None)
        self._deferred.pop(line, None)
        if standing is Standing.OPEN:
            self._open[line] = None
        elif standing is Standing.DEFERRED:
            self._deferred[line] = None

    def _merged(self, lines: Iterable[ShapeQueue[Shape]], standing: Standing) -> Iterator[str]:
        """Merge lines: by rank within a virtual cluster, the firsts of those by order of submission."""
        clusters: dict[str, list[tuple[Rank, str, ShapeQueue[Shape]]]] = {}
        for line in lines:
            clusters.setdefault(line.virtual_cluster, []).append((*line.head, line))
        for heads in clusters.values():
            heapq.heapify(heads)
        merged = [(heads[0][0][1], heads[0][1], name) for name, heads in clusters.items()]
        heapq.heapify(merged)
        while merged:
            _, _, name = heapq.heappop(merged)
            heads = clusters[name]
            _, job_id, line = heapq.heappop(heads)
            yield job_id
            if line.standing is standing and line.members:
                heapq.heappush(heads, (*line.head, line))
            if heads:
                heapq.heappush(merged, (heads[0][0][1], heads[0][1], name))
