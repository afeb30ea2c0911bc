"""Indexes of the queue: positions, who waits for what room, and how often each was overtaken."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from sortedcontainers import SortedDict, SortedList

from .resources import Demand
from .sort_key import KeyedJob, SortKey

# All waiting jobs of a virtual cluster in order, so that a queue position is looked up and not counted.
#
# Under fair share each user has a line: when a user's key changes, no job is moved.


class _Line:
    """The jobs of one user, or of all, by their own sort keys; `user_key` counts for each."""

    __slots__ = ("jobs", "user_key")

    def __init__(self, user_key: int) -> None:
        self.user_key = user_key
        self.jobs = SortedList()

    def within(self, job: KeyedJob) -> KeyedJob:
        """Return a job as it is among those of the user."""
        return job[0].of_user(-self.user_key), job[1]

    def after(self, begin: int) -> Iterator[KeyedJob]:
        """Return the jobs but for so many."""
        for own, job_id in self.jobs.islice(begin):
            yield own.of_user(self.user_key), job_id


class SortedJobs:
    """The waiting jobs of one virtual cluster, a line for each user (None: no fair share)."""

    __slots__ = ("_count", "_lines")

    def __init__(self) -> None:
        self._lines: dict[str | None, _Line] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return (job_id for _, job_id in self._from([(line, 0) for line in self._lines.values()]))

    def add(self, user: str | None, user_key: int, own: SortKey, job_id: str) -> None:
        """Take in a job; `own`: its sort key without that of the user."""
        self._line(user, user_key).jobs.add((own, job_id))
        self._count += 1

    def add_many(self, user: str | None, user_key: int, jobs: Sequence[KeyedJob]) -> None:
        """Take in jobs; their sort keys are without that of the user."""
        self._line(user, user_key).jobs.update(jobs)
        self._count += len(jobs)

    def remove(self, user: str | None, own: SortKey, job_id: str) -> None:
        """Undo `add`."""
        line = self._lines[user]
        line.jobs.remove((own, job_id))
        self._count -= 1
        if not line.jobs:
            del self._lines[user]

    def set_user_key(self, user: str | None, user_key: int) -> None:
        """Know that a user's key is another."""
        if user in self._lines:
            self._lines[user].user_key = user_key

    def before(self, job: KeyedJob) -> int:
        """Count the jobs before one."""
        return sum(int(line.jobs.bisect_left(line.within(job))) for line in self._lines.values())

    def after(self, job: KeyedJob | None, limit: int | None) -> tuple[int, list[str]]:
        """Count the jobs up to one (None: none), and list those after it: `limit` (None: all)."""
        begins = [
            (line, 0 if job is None else int(line.jobs.bisect_right(line.within(job))))
            for line in self._lines.values()
        ]
        found = islice(self._from(begins), limit)
        return sum(begin for _, begin in begins), [job_id for _, job_id in found]

    def _line(self, user: str | None, user_key: int) -> _Line:
        line = self._lines.get(user)
        if line is None:
            line = self._lines[user] = _Line(user_key)
        return line

    def _from(self, begins: list[tuple[_Line, int]]) -> Iterator[KeyedJob]:
        parts = [line.after(begin) for line, begin in begins]
        return parts[0] if len(parts) == 1 else heapq.merge(*parts)


# Who waits for room, by what a task needs: found without a look at everybody when room becomes free.

Position = TypeVar("Position")
Waiting = TypeVar("Waiting")

#: The type of GPU that a task asks for (None: any), and how many.
_Gpus = tuple[str | None, int]


@dataclass(slots=True)
class FreeRoom:
    """Free resources of one node: memory in MB, storage in GB, GPUs by type."""

    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: Mapping[str, int]
    #: how many GPUs of one type there are at most
    most_gpus: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Count them."""
        self.most_gpus = max(self.gpus.values(), default=0)

    def holds(self, demand: Demand) -> bool:
        """Return whether a task has enough cores, memory and storage here."""
        return (
            demand.cpus <= self.cpus
            and demand.memory_mb <= self.memory_mb
            and demand.storage_gb <= self.storage_gb
        )


class RoomIndex(Generic[Position, Waiting]):
    """Index of waiting entries in order of position (no two have the same), by the GPUs of each task."""

    __slots__ = ("_by_gpus",)

    def __init__(self) -> None:
        self._by_gpus: dict[_Gpus, SortedDict[Position, tuple[Waiting, list[Demand]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_gpus)

    def add(self, position: Position, waiting: Waiting, demands: Iterable[Demand]) -> None:
        """Take in what waits at a position for room for all of `demands`."""
        for demand in demands:
            gpus = demand.gpu_type, demand.gpus
            if gpus not in self._by_gpus:
                self._by_gpus[gpus] = SortedDict()
            self._by_gpus[gpus].setdefault(position, (waiting, []))[1].append(demand)

    def remove(self, position: Position, demands: Iterable[Demand]) -> None:
        """Undo `add`."""
        for demand in demands:
            gpus = demand.gpu_type, demand.gpus
            by_position = self._by_gpus.get(gpus)
            if by_position is not None:
                by_position.pop(position, None)
                if not by_position:
                    del self._by_gpus[gpus]

    def first(
        self, rooms: Iterable[FreeRoom], after: Position | None = None
    ) -> tuple[Position, Waiting] | None:
        """Return the first, `after` a position, of which one of `rooms` could take a task."""
        best: tuple[Position, Waiting] | None = None
        for room in rooms:
            gpus, most = room.gpus, room.most_gpus
            for (gpu_type, count), by_position in self._by_gpus.items():
                if count > (most if gpu_type is None else gpus.get(gpu_type, 0)):
                    continue
                for position in by_position.irange(after, inclusive=(False, False)):
                    if best is not None and not position < best[0]:
                        break
                    waiting, demands = by_position[position]
                    if any(map(room.holds, demands)):
                        best = position, waiting
                        break
        return best


# How often those who wait were overtaken, counted without a look at all of them whenever a job starts.
#
# A line (the jobs of one shape) is looked at once for each start that overtakes its first job, until that
# has happened too often; how often it was is made from a log of what has started, when somebody asks.

#: More often than any job is overtaken.
NEVER = 1 << 62
#: So many starts are remembered one by one before they are summed up: for some lines at each of the next
#: starts, so that none takes long.
MOST_STARTS = 10_000
_SUMMED_AT_ONCE = 8


class StartedJob(NamedTuple):
    """A job that has started. `within`: it stays within the guaranteed share."""

    virtual_cluster: str
    sort_key: SortKey
    within: bool


class Head(NamedTuple):
    """The first job of a line. `within`: it would stay within the guaranteed share."""

    virtual_cluster: str
    job: KeyedJob
    within: bool

    @property
    def submission(self) -> tuple[int, str]:
        """Return it in the order of submission."""
        return self.job[0].submission, self.job[1]

    def is_overtaken_by(self, start: StartedJob) -> bool:
        """Return whether a job was overtaken.

        Between virtual clusters the order of submission counts; who stays within a guaranteed share overtakes
        nobody that wants to borrow.
        """
        if start.virtual_cluster == self.virtual_cluster:
            return self.job[0] < start.sort_key
        return (self.within or not start.within) and self.job[0].submission < start.sort_key.submission


class _Log:
    """Log of started jobs, counted by sort key and by submission."""

    def __init__(self) -> None:
        self.length = 0
        self._sort_keys: dict[str, SortedList] = {}
        #: by virtual cluster (None: all of them) and whether within the guarantee
        self._submissions: dict[tuple[str | None, bool], SortedList] = {}
        #: what is not in `_submissions` yet: with one virtual cluster nobody asks for them
        self._to_file: list[StartedJob] = []

    def add(self, start: StartedJob) -> None:
        self.length += 1
        if start.virtual_cluster not in self._sort_keys:
            self._sort_keys[start.virtual_cluster] = SortedList()
        self._sort_keys[start.virtual_cluster].add(start.sort_key)
        self._to_file.append(start)

    def count(self, head: Head) -> int:
        """Count those that overtook a job, were it there all the time."""
        keys = self._sort_keys.get(head.virtual_cluster, ())
        count = len(keys) and len(keys) - int(keys.bisect_right(head.job[0]))
        if len(keys) < self.length:
            self._file_submissions()
            for within in (True, False) if head.within else (False,):
                count += self._later(None, within, head) - self._later(head.virtual_cluster, within, head)
        return count

    def _file_submissions(self) -> None:
        for start in self._to_file:
            for key in ((start.virtual_cluster, start.within), (None, start.within)):
                if key not in self._submissions:
                    self._submissions[key] = SortedList()
                self._submissions[key].add(start.sort_key.submission)
        self._to_file.clear()

    def _later(self, name: str | None, within: bool, head: Head) -> int:
        submissions = self._submissions.get((name, within), ())
        return len(submissions) and len(submissions) - int(submissions.bisect_right(head.job[0].submission))


@dataclass(slots=True)
class _Counted:
    """A line: how often it was overtaken when its log counted `logged`, and with how often it is due."""

    head: Head
    overtaken: int
    log: _Log
    logged: int
    due_at: int
    #: so many more starts that overtake it, and it is due; nobody is to be told where it is NEVER
    left: int = NEVER


Line = TypeVar("Line", bound=Hashable)


class Overtaking(Generic[Line]):
    """The lines and how often they were overtaken."""

    def __init__(self) -> None:
        self._log = _Log()
        #: lines whose log is the one before: at most one is
        self._to_sum_up: list[Line] = []
        self._lines: dict[Line, _Counted] = {}
        #: those that will be due, by sort key in each virtual cluster and by submission
        self._by_sort_key: dict[str, SortedDict[KeyedJob, Line]] = {}
        self._by_submission: SortedDict[tuple[int, str], Line] = SortedDict()

    def put(self, line: Line, head: Head, due_at: int) -> bool:
        """Know who is first in a line; with `due_at` starts in all that have overtaken the line, it is due.

        Returns whether it is already.
        """
        counted = self._lines.get(line)
        if counted is None:
            self._lines[line] = counted = _Counted(head, 0, self._log, self._log.count(head), due_at)
        elif counted.head == head and counted.due_at == due_at:
            return False
        else:
            self._unfile(counted)
            overtaken = self.count(line)
            counted.head, counted.due_at, counted.log = head, due_at, self._log
            counted.overtaken, counted.logged = overtaken, self._log.count(head)
        if due_at != NEVER and counted.overtaken < due_at:
            counted.left = due_at - counted.overtaken
            if head.virtual_cluster not in self._by_sort_key:
                self._by_sort_key[head.virtual_cluster] = SortedDict()
            self._by_sort_key[head.virtual_cluster][head.job] = line
            self._by_submission[head.submission] = line
        return counted.overtaken >= due_at

    def drop(self, line: Line) -> int:
        """Forget a line; return how often it was overtaken."""
        overtaken = self.count(line)
        self._unfile(self._lines.pop(line))
        return overtaken

    def count(self, line: Line) -> int:
        """Return how often a line was overtaken: its first jobs, one after the other."""
        counted = self._lines[line]
        since = self._log.count(counted.head) if counted.log is not self._log else 0
        return counted.overtaken + counted.log.count(counted.head) - counted.logged + since

    def started(self, starts: Iterable[StartedJob]) -> list[Line]:
        """Jobs have started: return the lines that are due now, each once until its first job changes."""
        due = [line for start in starts for line in self._overtaken_by(start)]
        if self._to_sum_up:
            self._sum_up(_SUMMED_AT_ONCE)
        if self._log.length > MOST_STARTS:
            # (there are none left where lines are not many times as many as starts)
            self._sum_up(len(self._to_sum_up))
            self._log = _Log()
            self._to_sum_up = list(self._lines)
        return due

    def _sum_up(self, most: int) -> None:
        """Count some lines anew, so that the log before is not needed any more."""
        for line in self._to_sum_up[-most:] if most else ():
            counted = self._lines.get(line)
            if counted is not None and counted.log is not self._log:
                counted.overtaken = self.count(line)
                counted.log, counted.logged = self._log, self._log.count(counted.head)
        del self._to_sum_up[len(self._to_sum_up) - most :]

    def _overtaken_by(self, start: StartedJob) -> list[Line]:
        mine = self._by_sort_key.get(start.virtual_cluster)
        lines: list[Line] = []
        if mine is not None:
            lines += [
                mine[passed] for passed in mine.irange(None, (start.sort_key,), inclusive=(True, False))
            ]
        if mine is None or len(mine) < len(self._by_submission):
            submission = start.sort_key.submission
            submitted = self._by_submission.irange(None, (submission,), inclusive=(True, False))
            others = [self._by_submission[one] for one in submitted]
            lines += [
                line
                for line in others
                if (head := self._lines[line].head).virtual_cluster != start.virtual_cluster
                and head.is_overtaken_by(start)
            ]
        self._log.add(start)
        due = []
        for line in lines:
            counted = self._lines[line]
            counted.left -= 1
            if not counted.left:
                self._unfile(counted)
                due.append(line)
        return due

    def _unfile(self, counted: _Counted) -> None:
        if counted.left != NEVER:
            counted.left = NEVER
            head = counted.head
            del self._by_submission[head.submission]
            by_key = self._by_sort_key[head.virtual_cluster]
            del by_key[head.job]
            if not by_key:
                del self._by_sort_key[head.virtual_cluster]
