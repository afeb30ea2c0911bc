"""Maintenance: when machines will be down, as planned, and who must not start there any more before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class Maintenance:
    """That machines are down from `begin` to `end` (ms since the epoch): why, and who says so.

    `nodes`: names, in which `*` stands for any part, and `?` for one letter.
    """

    name: str
    nodes: tuple[str, ...]
    begin: int
    end: int
    reason: str
    by: str

    def covers(self, node: str) -> bool:
        """Return whether a machine of this name is one of those."""
        return any(fnmatchcase(node, pattern) for pattern in self.nodes)


def in_words(time: int) -> str:
    """Write a time (ms since the epoch) as sentences about maintenance have it."""
    try:
        return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return str(time)


_NONE: frozenset[int] = frozenset()


class Barring:
    """Tells on which nodes a job must not start, by how long it may run.

    `planned`: for each node, by its number, what is planned there. `notice_ms`: so long before maintenance
    nothing starts there that has no time limit.
    """

    def __init__(self, planned: Iterable[tuple[int, tuple[Maintenance, ...]]], notice_ms: int) -> None:
        numbers: dict[tuple[int, int], set[int]] = {}
        for number, windows in planned:
            for window in windows:
                numbers.setdefault((window.begin, window.end), set()).add(number)
        self._windows = sorted((begin, end, frozenset(there)) for (begin, end), there in numbers.items())
        self._begins = [begin for begin, _, _ in self._windows]
        self._first_end = min((end for _, end, _ in self._windows), default=0)
        self._notice_ms = notice_ms
        #: the nodes of the first windows, by how many they are, where none of them is over
        self._of_first: dict[int, frozenset[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._windows)

    @property
    def ends(self) -> list[int]:
        """Return when nodes come back, each time once."""
        return sorted({end for _, end, _ in self._windows})

    def numbers(self, now: int, run_ms: int | None) -> frozenset[int]:
        """Return the nodes where maintenance begins before a job would have ended that starts now.

        `run_ms`: its time limit; None: it has none. What is over bars nobody.
        """
        count = bisect_left(self._begins, now + (self._notice_ms if run_ms is None else run_ms))
        if not count:
            return _NONE
        if now >= self._first_end:
            return _NONE.union(*(there for _, end, there in self._windows[:count] if end > now))
        known = self._of_first.get(count)
        if known is None:
            known = self._of_first[count] = _NONE.union(*(there for *_, there in self._windows[:count]))
        return known
