"""Which names of jobs may be taken, in memory: most submits need not ask the database then.

A Bloom filter: of a free name it may say that it may be taken (then the database is asked, as for every name
that is), of a taken one never that it is free. Names are never removed. Beyond ten million the database is
asked more and more often, as it was for each before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

#: Bits (4 MiB), and how many of them stand for a name: of a million names, one in 6,000 others is asked for.
_BITS = 1 << 25
_PROBES = 4


class TakenNames:
    """Names by user. As long as `complete` is false, each may be taken."""

    def __init__(self) -> None:
        self._bits = bytearray(_BITS // 8)
        #: whether the names that the database had at the start are all here
        self.complete = False

    def add(self, user: str, name: str) -> None:
        """Know that a user's job has this name."""
        for byte, mask in _places(user, name):
            self._bits[byte] |= mask

    def add_all(self, names: Iterable[tuple[str, str]]) -> None:
        """Know the names of all jobs that there are; others may be added meanwhile."""
        for user, name in names:
            self.add(user, name)
        self.complete = True

    def may_be_taken(self, user: str, name: str) -> bool:
        """Return whether a user may have a job of this name; False: there is none."""
        return not self.complete or all(self._bits[byte] & mask for byte, mask in _places(user, name))


def _places(user: str, name: str) -> Iterator[tuple[int, int]]:
    # (seeded anew in each process, so that nobody chooses names that fall together)
    number = hash((user, name))
    step = (number >> 32) | 1
    for _ in range(_PROBES):
        place = number & (_BITS - 1)
        yield place >> 3, 1 << (place & 7)
        number += step
