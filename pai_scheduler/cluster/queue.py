"""The queue: by rank within a virtual cluster; what does not fit does not block what does.

Jobs that ask for the same under the same limits (their shape) wait behind one another in a line: when the
first of a line does not fit, none of it does. A line is tried again when what it lacks may be there: room on
a node, or less that counts against a limit. So a look at the queue costs as many tries as there are lines
for which something has changed, not as there are jobs or lines.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Generic, TypeVar

import msgspec
from sortedcontainers import SortedList

from .queue_index import NEVER, FreeRoom, Head, Overtaking, Ranking, RoomIndex, StartedJob
from .queue_rank import QueuePosition, Rank
from .resources import Demand

Shape = TypeVar("Shape", bound=Hashable)


class Standing(Enum):
    """State of a line: worth a try, or waiting to borrow (later in the same look), or not worth a try.

    Missing for a try: room on a node (`NO_ROOM`), less that counts against a limit (`OVER_LIMIT`), or
    one of both (`BLOCKED`: beyond the guarantee, with no room to borrow).
    """

    OPEN = auto()
    DEFERRED = auto()
    NO_ROOM = auto()
    OVER_LIMIT = auto()
    BLOCKED = auto()

    @property
    def lacks_room(self) -> bool:
        """Return whether room on a node would be worth a try."""
        return self is Standing.NO_ROOM or self is Standing.BLOCKED

    @property
    def is_limited(self) -> bool:
        """Return whether a try is worth it as soon as less counts against a limit."""
        return self is Standing.OVER_LIMIT or self is Standing.BLOCKED


@dataclass(slots=True, eq=False)
class ShapeQueue(Generic[Shape]):
    """The jobs of one shape in one virtual cluster."""

    virtual_cluster: str
    shape: Shape
    #: whose turn counts, where users take turns; `shift` is added to the precedence of its jobs
    user: str | None = None
    shift: int = 0
    #: what its tasks ask for, each kind once
    demands: Collection[Demand] = ()
    standing: Standing = Standing.OPEN
    #: its jobs would be within the guaranteed share
    within: bool = False
    members: SortedList = field(default_factory=SortedList)
    #: jobs of it for which resources are kept
    reserved: int = 0
    #: how often it had been overtaken when it had no member left
    overtaken: int = 0
    #: where it is in the index of those that wait for room
    filed: QueuePosition | None = None

    @property
    def head(self) -> QueuePosition:
        """Return the first job."""
        first: QueuePosition = self.members[0]
        return (self.shifted(first[0]), first[1]) if self.shift else first

    def shifted(self, rank: Rank) -> Rank:
        """Return a rank by the turn that the line's user has now."""
        return rank[0] + self.shift, rank[1]


class _Place(msgspec.Struct, Generic[Shape], gc=False):
    line: ShapeQueue[Shape]
    #: without the line's shift
    rank: Rank
    #: how often its line had been overtaken when the job came
    base: int
    aside: bool = False


class _Turn(Generic[Shape]):
    """The lines of one virtual cluster in one look at the queue."""

    __slots__ = ("_found", "_line", "_standing", "_tried", "heads", "index")

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        #: the lines that are worth a try in any case
        self.heads: list[tuple[QueuePosition, ShapeQueue[Shape]]] = []
        #: those for which that depends on what is free
        self.index: RoomIndex[QueuePosition, ShapeQueue[Shape]] | None = None
        self._tried: QueuePosition | None = None
        self._line: ShapeQueue[Shape] | None = None
        self._found: ShapeQueue[Shape] | None = None

    def next(self, rooms: Callable[[], Sequence[FreeRoom]]) -> QueuePosition | None:
        """Return who is next, by what is free now; None: nobody."""
        heads = self.heads
        while heads and heads[0][1].user is not None and heads[0][0] != (now := heads[0][1].head):
            # its user has got something since
            heapq.heapreplace(heads, (now, heads[0][1]))
        head = heads[0][0] if heads else None
        if self.index:
            found = self.index.first(rooms(), self._tried)
            if found is not None and (head is None or found[0] < head):
                self._found = found[1]
                return found[0]
        return head

    def take(self, head: QueuePosition) -> None:
        """Know that this one, which `next` returned, is tried."""
        self._tried = head
        if self.heads and self.heads[0][0] == head:
            self._line = heapq.heappop(self.heads)[1]
        elif self._found is not None:
            self._line = self._found

    def put_back(self) -> None:
        """After a try: the line has its turn again where it is worth one."""
        line = self._line
        if line is not None and line.standing is self._standing and line.members:
            heapq.heappush(self.heads, (line.head, line))


class Queue(Generic[Shape]):
    """The waiting jobs of all virtual clusters.

    `demands`: what the tasks of a shape ask for, each kind once. `overtake_limit`: how often a job may be
    overtaken before `overtook` tells of it.
    """

    def __init__(
        self,
        demands: Callable[[Shape], Collection[Demand]] = lambda shape: (),  # noqa: ARG005
        overtake_limit: int = NEVER,
    ) -> None:
        self._demands = demands
        self._overtake_limit = overtake_limit
        self._lines: dict[tuple[str, Shape], ShapeQueue[Shape]] = {}
        self._open: dict[ShapeQueue[Shape], None] = {}
        self._deferred: dict[ShapeQueue[Shape], None] = {}
        self._limited: dict[str, dict[ShapeQueue[Shape], None]] = {}
        self._by_need: dict[str, RoomIndex[QueuePosition, ShapeQueue[Shape]]] = {}
        self._overtaking: Overtaking[ShapeQueue[Shape]] = Overtaking()
        self._places: dict[str, _Place[Shape]] = {}
        #: all jobs of a virtual cluster in order
        self._ranked: dict[str, Ranking] = {}
        #: where users take turns, by virtual cluster and user: the shift, and the lines
        self._shifts: dict[tuple[str, str | None], int] = {}
        self._of_user: dict[tuple[str, str | None], dict[ShapeQueue[Shape], None]] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._places

    def add(
        self,
        job_id: str,
        virtual_cluster: str,
        shape: Shape,
        rank: Rank,
        overtaken: int = 0,
        user: str | None = None,
    ) -> None:
        """Put a job in line. `overtaken`: how often that happened to it before.

        `user`: whose turn counts, where users take turns; jobs of several users have several shapes then.
        """
        line = self._line_of(virtual_cluster, shape, user)
        self._places[job_id] = _Place(line, rank, self._overtaken(line) - overtaken)
        line.members.add((rank, job_id))
        if line.members[0][1] == job_id:
            self._first_may_have_changed(line)
        self._ranking(virtual_cluster).add(line.user, line.shift, rank, job_id)

    def add_many(
        self,
        virtual_cluster: str,
        shape: Shape,
        positions: Sequence[QueuePosition],
        overtaken: Mapping[str, int],
        user: str | None = None,
    ) -> None:
        """Do what `add` does for several jobs of one shape; `overtaken`: of those where it is not 0."""
        line = self._line_of(virtual_cluster, shape, user)
        # (it stays the same while nobody starts, whoever comes first)
        base = self._overtaken(line)
        for rank, job_id in positions:
            self._places[job_id] = _Place(line, rank, base)
        for job_id, times in overtaken.items():
            self._places[job_id].base -= times
        line.members.update(positions)
        self._first_may_have_changed(line)
        self._ranking(virtual_cluster).add_many(line.user, line.shift, positions)

    def remove(self, job_id: str) -> None:
        """Take a job out of line; no change where it is not in line."""
        place = self._places.pop(job_id, None)
        if place is None:
            return
        line = place.line
        ranked = self._ranked[line.virtual_cluster]
        ranked.remove(line.user, place.rank, job_id)
        if not ranked:
            del self._ranked[line.virtual_cluster]
        if place.aside:
            line.reserved -= 1
            self._first_may_have_changed(line)
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
        shape, name, user = place.line.shape, place.line.virtual_cluster, place.line.user
        overtaken = self._overtaken(place.line) - place.base
        self._ranked[name].remove(user, place.rank, job_id)
        self.add(job_id, name, shape, place.rank, overtaken, user)
        line = self._lines[name, shape]
        self._first_may_have_changed(line)
        self._set(line, Standing.OPEN)

    def candidates(self, rooms: Callable[[], Sequence[FreeRoom]] = tuple) -> Iterator[str]:
        """Return the jobs worth a try, first come first; after each, call `remove`, `set_aside` or `set`.

        `rooms`: where something became free, what is free there now; asked for again after each try.
        """
        return self._merged(self._open, Standing.OPEN, rooms)

    def deferred(self) -> Iterator[str]:
        """Return the first jobs of the deferred lines; after each, call `remove`, `set_aside` or `set`."""
        return self._merged(self._deferred, Standing.DEFERRED, tuple)

    def set(self, job_id: str, standing: Standing, *, within: bool) -> None:
        """Return how the line of a job stands, which was tried."""
        line = self._places[job_id].line
        if within is not line.within:
            line.within = within
            self._count(line)
        self._set(line, standing)

    def shift(self, virtual_cluster: str, user: str, shift: int) -> bool:
        """Know that a user's turn is another; tell whether it was."""
        sharer = virtual_cluster, user
        if self._shifts.get(sharer, 0) == shift:
            return False
        self._shifts[sharer] = shift
        if virtual_cluster in self._ranked:
            self._ranked[virtual_cluster].shift(user, shift)
        for line in self._of_user.get(sharer, ()):
            line.shift = shift
            self._first_may_have_changed(line)
        return True

    def shifted(self, virtual_cluster: str, user: str, rank: Rank) -> Rank:
        """Return a rank by the turn that a user has now, where users take turns."""
        return rank[0] + self._shifts.get((virtual_cluster, user), 0), rank[1]

    def reopen(self, worth: Callable[[ShapeQueue[Shape]], bool] = lambda line: True) -> None:  # noqa: ARG005
        """Something has changed: lines for which it may matter are worth a try again."""
        for line in self._lines.values():
            if line.standing is not Standing.OPEN and worth(line):
                self._set(line, Standing.OPEN)

    def reopen_limited(self, virtual_cluster: str) -> None:
        """Less counts against the limits of a virtual cluster: who lacks that is worth a try again."""
        for line in list(self._limited.get(virtual_cluster, ())):
            self._set(line, Standing.OPEN)

    def reopen_line(self, virtual_cluster: str, shape: Shape) -> None:
        """Something has changed for the jobs of one shape in one virtual cluster, if there are any."""
        line = self._lines.get((virtual_cluster, shape))
        if line is not None and line.standing is not Standing.OPEN:
            self._set(line, Standing.OPEN)

    def overtook(self, starts: Sequence[StartedJob]) -> list[ShapeQueue[Shape]]:
        """Jobs have started: who came before one and still waits was overtaken.

        Returns the lines of which the first job has been overtaken too often, and nothing is kept for
        anybody; each once, until its first job is another.
        """
        return self._overtaking.started(starts)

    def overtaken(self, job_id: str) -> int:
        """Return how often a job was overtaken, or one that stood before it in its line."""
        place = self._places[job_id]
        return self._overtaken(place.line) - place.base

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

    def line(self, job_id: str) -> ShapeQueue[Shape]:
        """Return the line in which a job is."""
        return self._places[job_id].line

    def shape(self, job_id: str) -> Shape:
        """Return what a job asks for."""
        return self._places[job_id].line.shape

    def rank(self, job_id: str) -> Rank:
        """Return a job's rank, by the turn that its user has now."""
        place = self._places[job_id]
        return place.line.shifted(place.rank)

    def own_rank(self, job_id: str) -> Rank:
        """Return a job's rank as it was given, whoever's turn it is."""
        return self._places[job_id].rank

    def position(self, job_id: str) -> int:
        """Return a job's place in its virtual cluster, from 1; KeyError where it is not in line."""
        place = self._places[job_id]
        position = place.line.shifted(place.rank), job_id
        return 1 + self._ranked[place.line.virtual_cluster].before(position)

    def place_for(self, virtual_cluster: str, rank: Rank) -> int:
        """Return the place that a job of this rank would have, from 1."""
        ranked = self._ranked.get(virtual_cluster)
        return 1 if ranked is None else 1 + ranked.before((rank, ""))

    def waiting(self, virtual_cluster: str) -> int:
        """Count the jobs in line of a virtual cluster."""
        return len(self._ranked.get(virtual_cluster, ()))

    def in_order(self, virtual_cluster: str) -> Iterator[str]:
        """Return the jobs of a virtual cluster, first come first."""
        return iter(self._ranked.get(virtual_cluster, ()))

    def after(
        self, virtual_cluster: str, position: QueuePosition | None = None, limit: int | None = None
    ) -> tuple[int, list[str]]:
        """Return the place of the first job after a position, and the ids from there: `limit` (None: all)."""
        ranked = self._ranked.get(virtual_cluster)
        if ranked is None:
            return 1, []
        count, ids = ranked.after(position, limit)
        return count + 1, ids

    def _line_of(self, virtual_cluster: str, shape: Shape, user: str | None) -> ShapeQueue[Shape]:
        key = (virtual_cluster, shape)
        line = self._lines.get(key)
        if line is None:
            sharer = virtual_cluster, user
            shift = self._shifts.get(sharer, 0)
            line = ShapeQueue(virtual_cluster, shape, user, shift, self._demands(shape))
            self._lines[key] = line
            self._open[line] = None
            if user is not None:
                self._of_user.setdefault(sharer, {})[line] = None
        return line

    def _ranking(self, virtual_cluster: str) -> Ranking:
        if virtual_cluster not in self._ranked:
            self._ranked[virtual_cluster] = Ranking()
        return self._ranked[virtual_cluster]

    def _leave(self, line: ShapeQueue[Shape], rank: Rank, job_id: str) -> None:
        line.members.remove((rank, job_id))
        if line.members:
            self._first_may_have_changed(line)
            return
        del self._lines[line.virtual_cluster, line.shape]
        if line.user is not None:
            sharer = line.virtual_cluster, line.user
            del self._of_user[sharer][line]
            if not self._of_user[sharer]:
                del self._of_user[sharer]
        line.overtaken = self._overtaking.drop(line)
        self._forget(line)

    def _set(self, line: ShapeQueue[Shape], standing: Standing) -> None:
        if standing is not line.standing:
            self._forget(line)
            line.standing = standing
            if standing is Standing.OPEN:
                self._open[line] = None
            elif standing is Standing.DEFERRED:
                self._deferred[line] = None
            elif standing.is_limited:
                self._limited.setdefault(line.virtual_cluster, {})[line] = None
        self._file(line)

    def _forget(self, line: ShapeQueue[Shape]) -> None:
        """Take a line out of where its standing has put it."""
        self._open.pop(line, None)
        self._deferred.pop(line, None)
        if line.standing.is_limited:
            del self._limited[line.virtual_cluster][line]
        if line.filed is not None:
            self._by_need[line.virtual_cluster].remove(line.filed, line.demands)
            line.filed = None

    def _first_may_have_changed(self, line: ShapeQueue[Shape]) -> None:
        if not line.members:
            return
        self._file(line)
        if self._count(line):
            # (the one before it was tried, or nobody; now something is to be kept for this one)
            self._set(line, Standing.OPEN)

    def _overtaken(self, line: ShapeQueue[Shape]) -> int:
        return self._overtaking.count(line) if line.members else line.overtaken

    def _count(self, line: ShapeQueue[Shape]) -> bool:
        """Count how often a line is overtaken; tell whether its first job has been too often already."""
        head = line.head
        due_at = NEVER if line.reserved else self._places[head[1]].base + self._overtake_limit
        return self._overtaking.put(line, Head(line.virtual_cluster, head, line.within), due_at)

    def _file(self, line: ShapeQueue[Shape]) -> None:
        """See to it that a line that waits for room is in the index, at the position of its first job."""
        if not line.standing.lacks_room or line.filed == (head := line.head):
            return
        index = self._by_need.setdefault(line.virtual_cluster, RoomIndex())
        if line.filed is not None:
            index.remove(line.filed, line.demands)
        index.add(head, line, line.demands)
        line.filed = head

    def _merged(
        self,
        lines: Iterable[ShapeQueue[Shape]],
        standing: Standing,
        rooms: Callable[[], Sequence[FreeRoom]],
    ) -> Iterator[str]:
        """Merge lines: by rank within a virtual cluster, the firsts of those by order of submission."""
        turns: dict[str, _Turn[Shape]] = {}
        for line in lines:
            name = line.virtual_cluster
            if name not in turns:
                turns[name] = _Turn(standing)
            turns[name].heads.append((line.head, line))
        if rooms():
            for name, index in self._by_need.items():
                if index:
                    turns.setdefault(name, _Turn(standing)).index = index
        merged: list[_Next] = []
        tried = 0
        for name, turn in turns.items():
            heapq.heapify(turn.heads)
            _push(merged, turn.next(rooms), name, tried)
        while merged:
            order, job_id, name, as_of, head = heapq.heappop(merged)
            turn = turns[name]
            if as_of != tried:
                now = turn.next(rooms)
                if now is None or (now[0][1], now[1]) != (order, job_id):
                    # what became free has been taken since
                    _push(merged, now, name, tried)
                    continue
                head = now
            turn.take(head)
            yield job_id
            tried += 1
            turn.put_back()
            _push(merged, turn.next(rooms), name, tried)


#: The first of a virtual cluster: its order of submission and its id, the virtual cluster, how many had been
#: tried when it was found, and its position.
_Next = tuple[int, str, str, int, QueuePosition]


def _push(merged: list[_Next], head: QueuePosition | None, name: str, tried: int) -> None:
    if head is not None:
        heapq.heappush(merged, (head[0][1], head[1], name, tried, head))
