"""The queue: by sort key within a virtual cluster; what does not fit does not block what does.

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

from .queue_index import NEVER, FreeRoom, Head, Overtaking, RoomIndex, SortedJobs, StartedJob
from .resources import Demand
from .sort_key import KeyedJob, SortKey

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
    #: under fair share the user of its jobs, whose key counts for each
    user: str | None = None
    user_key: int = 0
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
    filed: KeyedJob | None = None

    @property
    def head(self) -> KeyedJob:
        """Return the first job."""
        first: KeyedJob = self.members[0]
        return (first[0].of_user(self.user_key), first[1]) if self.user_key else first


class _Waiting(msgspec.Struct, Generic[Shape], gc=False):
    line: ShapeQueue[Shape]
    #: its sort key without that of the user
    own: SortKey
    #: how often its line had been overtaken when the job came
    base: int
    aside: bool = False

    @property
    def sort_key(self) -> SortKey:
        """Return its sort key, by the key that its user has now."""
        return self.own.of_user(self.line.user_key)


class _Merge(Generic[Shape]):
    """The lines of one virtual cluster in one look at the queue."""

    __slots__ = ("_found", "_line", "_standing", "_tried", "heads", "index")

    def __init__(self, standing: Standing) -> None:
        self._standing = standing
        #: the lines that are worth a try in any case
        self.heads: list[tuple[KeyedJob, ShapeQueue[Shape]]] = []
        #: those for which that depends on what is free
        self.index: RoomIndex[KeyedJob, ShapeQueue[Shape]] | None = None
        self._tried: KeyedJob | None = None
        self._line: ShapeQueue[Shape] | None = None
        self._found: ShapeQueue[Shape] | None = None

    def next(self, rooms: Callable[[], Sequence[FreeRoom]]) -> KeyedJob | None:
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

    def take(self, head: KeyedJob) -> None:
        """Know that this one, which `next` returned, is tried."""
        self._tried = head
        if self.heads and self.heads[0][0] == head:
            self._line = heapq.heappop(self.heads)[1]
        elif self._found is not None:
            self._line = self._found

    def put_back(self) -> None:
        """After a try: the line is tried again where it is worth one."""
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
        self._by_need: dict[str, RoomIndex[KeyedJob, ShapeQueue[Shape]]] = {}
        self._overtaking: Overtaking[ShapeQueue[Shape]] = Overtaking()
        self._jobs: dict[str, _Waiting[Shape]] = {}
        #: all jobs of a virtual cluster in order
        self._sorted: dict[str, SortedJobs] = {}
        #: under fair share, by virtual cluster and user: the user's key, and the lines
        self._user_keys: dict[tuple[str, str | None], int] = {}
        self._of_user: dict[tuple[str, str | None], dict[ShapeQueue[Shape], None]] = {}

    def __len__(self) -> int:
        return len(self._jobs)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._jobs

    def add(
        self,
        job_id: str,
        virtual_cluster: str,
        shape: Shape,
        own: SortKey,
        overtaken: int = 0,
        user: str | None = None,
    ) -> None:
        """Put a job in line. `own`: its sort key; `overtaken`: how often that happened to it before.

        `user`: under fair share its user, whose key counts; jobs of several users have several shapes then.
        """
        line = self._line_of(virtual_cluster, shape, user)
        self._jobs[job_id] = _Waiting(line, own, self._overtaken(line) - overtaken)
        line.members.add((own, job_id))
        if line.members[0][1] == job_id:
            self._first_may_have_changed(line)
        self._sorted_jobs(virtual_cluster).add(line.user, line.user_key, own, job_id)

    def add_many(
        self,
        virtual_cluster: str,
        shape: Shape,
        jobs: Sequence[KeyedJob],
        overtaken: Mapping[str, int],
        user: str | None = None,
    ) -> None:
        """Do what `add` does for several jobs of one shape; `overtaken`: of those where it is not 0."""
        line = self._line_of(virtual_cluster, shape, user)
        # (it stays the same while nobody starts, whoever comes first)
        base = self._overtaken(line)
        for own, job_id in jobs:
            self._jobs[job_id] = _Waiting(line, own, base)
        for job_id, times in overtaken.items():
            self._jobs[job_id].base -= times
        line.members.update(jobs)
        self._first_may_have_changed(line)
        self._sorted_jobs(virtual_cluster).add_many(line.user, line.user_key, jobs)

    def remove(self, job_id: str) -> None:
        """Take a job out of line; no change where it is not in line."""
        entry = self._jobs.pop(job_id, None)
        if entry is None:
            return
        line = entry.line
        jobs = self._sorted[line.virtual_cluster]
        jobs.remove(line.user, entry.own, job_id)
        if not jobs:
            del self._sorted[line.virtual_cluster]
        if entry.aside:
            line.reserved -= 1
            self._first_may_have_changed(line)
        else:
            self._leave(line, entry.own, job_id)

    def set_aside(self, job_id: str) -> None:
        """Leave a job where it is, but try it no more: something is being kept for it."""
        entry = self._jobs[job_id]
        entry.aside = True
        entry.line.reserved += 1
        self._leave(entry.line, entry.own, job_id)

    def take_back(self, job_id: str) -> None:
        """Undo `set_aside`."""
        entry = self._jobs.pop(job_id)
        entry.line.reserved -= 1
        shape, name, user = entry.line.shape, entry.line.virtual_cluster, entry.line.user
        overtaken = self._overtaken(entry.line) - entry.base
        self._sorted[name].remove(user, entry.own, job_id)
        self.add(job_id, name, shape, entry.own, overtaken, user)
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
        line = self._jobs[job_id].line
        if within is not line.within:
            line.within = within
            self._count(line)
        self._set(line, standing)

    def set_user_key(self, virtual_cluster: str, user: str, user_key: int) -> bool:
        """Know a user's key under fair share; return whether it was another before."""
        sharer = virtual_cluster, user
        if self._user_keys.get(sharer, 0) == user_key:
            return False
        self._user_keys[sharer] = user_key
        if virtual_cluster in self._sorted:
            self._sorted[virtual_cluster].set_user_key(user, user_key)
        for line in self._of_user.get(sharer, ()):
            line.user_key = user_key
            self._first_may_have_changed(line)
        return True

    def with_user_key(self, virtual_cluster: str, user: str, own: SortKey) -> SortKey:
        """Return a sort key by the key that a user has now, under fair share."""
        return own.of_user(self._user_keys.get((virtual_cluster, user), 0))

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
        entry = self._jobs[job_id]
        return self._overtaken(entry.line) - entry.base

    def has_reservation(self, job_id: str) -> bool:
        """Return whether resources are kept for one of the jobs in a job's line."""
        return self._jobs[job_id].line.reserved > 0

    def is_within(self, job_id: str) -> bool:
        """Return whether a job stays within the guaranteed share, as was found when it was tried."""
        return self._jobs[job_id].line.within

    @property
    def anything_open(self) -> bool:
        """Return whether there is a line worth a try."""
        return bool(self._open)

    def line(self, job_id: str) -> ShapeQueue[Shape]:
        """Return the line in which a job is."""
        return self._jobs[job_id].line

    def shape(self, job_id: str) -> Shape:
        """Return what a job asks for."""
        return self._jobs[job_id].line.shape

    def sort_key(self, job_id: str) -> SortKey:
        """Return a job's sort key, by the key that its user has now."""
        return self._jobs[job_id].sort_key

    def own_sort_key(self, job_id: str) -> SortKey:
        """Return a job's sort key as it was given, without that of the user."""
        return self._jobs[job_id].own

    def queue_position(self, job_id: str) -> int:
        """Return a job's queue position in its virtual cluster, from 1; KeyError where it is not in line."""
        entry = self._jobs[job_id]
        return 1 + self._sorted[entry.line.virtual_cluster].before((entry.sort_key, job_id))

    def queue_position_for(self, virtual_cluster: str, sort_key: SortKey) -> int:
        """Return the queue position that a job of this sort key would have, from 1."""
        jobs = self._sorted.get(virtual_cluster)
        return 1 if jobs is None else 1 + jobs.before((sort_key, ""))

    def waiting(self, virtual_cluster: str) -> int:
        """Count the jobs in line of a virtual cluster."""
        return len(self._sorted.get(virtual_cluster, ()))

    def in_order(self, virtual_cluster: str) -> Iterator[str]:
        """Return the jobs of a virtual cluster, first come first."""
        return iter(self._sorted.get(virtual_cluster, ()))

    def after(
        self, virtual_cluster: str, job: KeyedJob | None = None, limit: int | None = None
    ) -> tuple[int, list[str]]:
        """Return the queue position of the job after one, and the ids from there: `limit` (None: all)."""
        jobs = self._sorted.get(virtual_cluster)
        if jobs is None:
            return 1, []
        count, ids = jobs.after(job, limit)
        return count + 1, ids

    def _line_of(self, virtual_cluster: str, shape: Shape, user: str | None) -> ShapeQueue[Shape]:
        key = (virtual_cluster, shape)
        line = self._lines.get(key)
        if line is None:
            sharer = virtual_cluster, user
            user_key = self._user_keys.get(sharer, 0)
            line = ShapeQueue(virtual_cluster, shape, user, user_key, self._demands(shape))
            self._lines[key] = line
            self._open[line] = None
            if user is not None:
                self._of_user.setdefault(sharer, {})[line] = None
        return line

    def _sorted_jobs(self, virtual_cluster: str) -> SortedJobs:
        if virtual_cluster not in self._sorted:
            self._sorted[virtual_cluster] = SortedJobs()
        return self._sorted[virtual_cluster]

    def _leave(self, line: ShapeQueue[Shape], own: SortKey, job_id: str) -> None:
        line.members.remove((own, job_id))
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
        due_at = NEVER if line.reserved else self._jobs[head[1]].base + self._overtake_limit
        return self._overtaking.put(line, Head(line.virtual_cluster, head, line.within), due_at)

    def _file(self, line: ShapeQueue[Shape]) -> None:
        """See to it that a line that waits for room is in the index, by its first job."""
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
        """Merge lines: by sort key within a virtual cluster, the firsts of those by submission."""
        merges: dict[str, _Merge[Shape]] = {}
        for line in lines:
            name = line.virtual_cluster
            if name not in merges:
                merges[name] = _Merge(standing)
            merges[name].heads.append((line.head, line))
        if rooms():
            for name, index in self._by_need.items():
                if index:
                    merges.setdefault(name, _Merge(standing)).index = index
        merged: list[_Next] = []
        tried = 0
        for name, merge in merges.items():
            heapq.heapify(merge.heads)
            _push(merged, merge.next(rooms), name, tried)
        while merged:
            submission, job_id, name, as_of, head = heapq.heappop(merged)
            merge = merges[name]
            if as_of != tried:
                now = merge.next(rooms)
                if now is None or (now[0].submission, now[1]) != (submission, job_id):
                    # what became free has been taken since
                    _push(merged, now, name, tried)
                    continue
                head = now
            merge.take(head)
            yield job_id
            tried += 1
            merge.put_back()
            _push(merged, merge.next(rooms), name, tried)


#: The first of a virtual cluster: its submission and its id, the virtual cluster, how many had been tried
#: when it was found, and it by its sort key.
_Next = tuple[int, str, str, int, KeyedJob]


def _push(merged: list[_Next], head: KeyedJob | None, name: str, tried: int) -> None:
    if head is not None:
        heapq.heappush(merged, (head[0].submission, head[1], name, tried, head))
