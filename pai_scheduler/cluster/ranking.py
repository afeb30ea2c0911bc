"""All waiting jobs of a virtual cluster in order, so that a place is looked up and not counted.

Where users take turns, it is a line of each user's lines: when a user's turn changes, no job is moved.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice

from sortedcontainers import SortedList

from .ranks import QueuePosition, Rank


class _Line:
    """The jobs of one user, or of all; `shift` is added to the precedence of each."""

    __slots__ = ("jobs", "shift")

    def __init__(self, shift: int) -> None:
        self.shift = shift
        self.jobs = SortedList()

    def within(self, position: QueuePosition) -> QueuePosition:
        """Return a position as it is without the shift."""
        (precedence, order), job_id = position
        return (precedence - self.shift, order), job_id

    def after(self, begin: int) -> Iterator[QueuePosition]:
        """Return the positions from a place on."""
        for (precedence, order), job_id in self.jobs.islice(begin):
            yield (precedence + self.shift, order), job_id


class Ranking:
    """The lines of one virtual cluster, by user (None: jobs that take no turns)."""

    __slots__ = ("_count", "_lines")

    def __init__(self) -> None:
        self._lines: dict[str | None, _Line] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[str]:
        return (job_id for _, job_id in self._from([(line, 0) for line in self._lines.values()]))

    def add(self, user: str | None, shift: int, rank: Rank, job_id: str) -> None:
        """Take in a job; `rank` is without the shift."""
        self._line(user, shift).jobs.add((rank, job_id))
        self._count += 1

    def add_many(self, user: str | None, shift: int, positions: Sequence[QueuePosition]) -> None:
        """Take in jobs; their positions are without the shift."""
        self._line(user, shift).jobs.update(positions)
        self._count += len(positions)

    def remove(self, user: str | None, rank: Rank, job_id: str) -> None:
        """Undo `add`."""
        line = self._lines[user]
        line.jobs.remove((rank, job_id))
        self._count -= 1
        if not line.jobs:
            del self._lines[user]

    def shift(self, user: str | None, shift: int) -> None:
        """Know that a user's turn is another."""
        if user in self._lines:
            self._lines[user].shift = shift

    def before(self, position: QueuePosition) -> int:
        """Count the jobs before a position."""
        return sum(int(line.jobs.bisect_left(line.within(position))) for line in self._lines.values())

    def after(self, position: QueuePosition | None, limit: int | None) -> tuple[int, list[str]]:
        """Count the jobs up to a position (None: none), and list those after it: `limit` (None: all)."""
        begins = [
            (line, 0 if position is None else int(line.jobs.bisect_right(line.within(position))))
            for line in self._lines.values()
        ]
        found = islice(self._from(begins), limit)
        return sum(begin for _, begin in begins), [job_id for _, job_id in found]

    def _line(self, user: str | None, shift: int) -> _Line:
        line = self._lines.get(user)
        if line is None:
            line = self._lines[user] = _Line(shift)
        return line

    def _from(self, begins: list[tuple[_Line, int]]) -> Iterator[QueuePosition]:
        parts = [line.after(begin) for line, begin in begins]
        return parts[0] if len(parts) == 1 else heapq.merge(*parts)
