"""How often those who wait were overtaken, counted without a look at all of them whenever a job starts.

A line (the jobs of one shape) is looked at once for each start that overtakes its first job, until that has
happened too often; how often it was is made from a log of what has started, when somebody asks.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from sortedcontainers import SortedDict, SortedList

from .ranks import QueuePosition, Rank

#: More often than any job is overtaken.
NEVER = 1 << 62
#: So many starts are remembered one by one before they are summed up: for some lines at each of the next
#: starts, so that none takes long.
MOST_STARTS = 10_000
_SUMMED_AT_ONCE = 8


class StartedJob(NamedTuple):
    """A job that has started. `within`: it stays within the guaranteed share."""

    virtual_cluster: str
    rank: Rank
    within: bool

    @property
    def order(self) -> int:
        """Return its place in the order of submission."""
        return self.rank[1]


class Head(NamedTuple):
    """The first job of a line. `within`: it would stay within the guaranteed share."""

    virtual_cluster: str
    position: QueuePosition
    within: bool

    @property
    def order(self) -> tuple[int, str]:
        """Return its place in the order of submission."""
        return self.position[0][1], self.position[1]

    def is_overtaken_by(self, start: StartedJob) -> bool:
        """Return whether a job was overtaken.

        Between virtual clusters the order of submission counts; who stays within a guaranteed share overtakes
        nobody that wants to borrow.
        """
        if start.virtual_cluster == self.virtual_cluster:
            return self.position[0] < start.rank
        return (self.within or not start.within) and self.position[0][1] < start.order


class _Log:
    """What has started, counted by rank and by order of submission."""

    def __init__(self) -> None:
        self.length = 0
        self._ranks: dict[str, SortedList] = {}
        #: by virtual cluster (None: all of them) and whether within the guarantee
        self._orders: dict[tuple[str | None, bool], SortedList] = {}
        #: what is not in `_orders` yet: with one virtual cluster nobody asks for them
        self._to_order: list[StartedJob] = []

    def add(self, start: StartedJob) -> None:
        self.length += 1
        if start.virtual_cluster not in self._ranks:
            self._ranks[start.virtual_cluster] = SortedList()
        self._ranks[start.virtual_cluster].add(start.rank)
        self._to_order.append(start)

    def count(self, head: Head) -> int:
        """Count those that overtook a job, were it there all the time."""
        ranks = self._ranks.get(head.virtual_cluster, ())
        count = len(ranks) and len(ranks) - int(ranks.bisect_right(head.position[0]))
        if len(ranks) < self.length:
            self._put_in_order()
            for within in (True, False) if head.within else (False,):
                count += self._later(None, within, head) - self._later(head.virtual_cluster, within, head)
        return count

    def _put_in_order(self) -> None:
        for start in self._to_order:
            for key in ((start.virtual_cluster, start.within), (None, start.within)):
                if key not in self._orders:
                    self._orders[key] = SortedList()
                self._orders[key].add(start.order)
        self._to_order.clear()

    def _later(self, name: str | None, within: bool, head: Head) -> int:
        orders = self._orders.get((name, within), ())
        return len(orders) and len(orders) - int(orders.bisect_right(head.order[0]))


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
        #: those that will be due, by rank in each virtual cluster and by order of submission
        self._by_rank: dict[str, SortedDict[QueuePosition, Line]] = {}
        self._by_order: SortedDict[tuple[int, str], Line] = SortedDict()

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
            if head.virtual_cluster not in self._by_rank:
                self._by_rank[head.virtual_cluster] = SortedDict()
            self._by_rank[head.virtual_cluster][head.position] = line
            self._by_order[head.order] = line
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
        mine = self._by_rank.get(start.virtual_cluster)
        lines: list[Line] = []
        if mine is not None:
            lines += [mine[passed] for passed in mine.irange(None, (start.rank,), inclusive=(True, False))]
        if mine is None or len(mine) < len(self._by_order):
            orders = self._by_order.irange(None, (start.order,), inclusive=(True, False))
            others = [self._by_order[order] for order in orders]
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
            del self._by_order[head.order]
            by_rank = self._by_rank[head.virtual_cluster]
            del by_rank[head.position]
            if not by_rank:
                del self._by_rank[head.virtual_cluster]
