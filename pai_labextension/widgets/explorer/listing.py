"""What is in a folder, put in order: sorted, searched, and a page of it at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pai_scheduler.client.storage.models import FileInfo

Column = Literal["name", "size", "modified"]

#: Rows that are shown at a time: enough to look through, few enough for a browser.
ROWS = 25


@dataclass(frozen=True, slots=True)
class Look:
    """How a person wants to see a folder. `find`: a part of the names, capitals or not; `page` from 0 on."""

    column: Column = "name"
    descending: bool = False
    find: str = ""
    page: int = 0

    def by(self, column: Column) -> Look:
        """Sort by a column; once more: the other way round. Begins with the newest, or the largest."""
        descending = not self.descending if column == self.column else column != "name"
        return replace(self, column=column, descending=descending, page=0)


@dataclass(frozen=True, slots=True)
class ListingPage:
    """A part of what was looked for. `first`: how many come before it; `total`: how many there are."""

    entries: Sequence[FileInfo]
    first: int
    total: int
    number: int
    count: int


def arrange(entries: Sequence[FileInfo], look: Look) -> list[FileInfo]:
    """Leave what was looked for, in the order that was asked for; folders stand before files."""
    wanted = look.find.strip().casefold()
    found = [entry for entry in entries if wanted in entry.name.casefold()]
    found.sort(key=lambda entry: (entry.name.casefold(), entry.name))
    # sorting is stable: what is alike stays in the order of names
    if look.column == "name":
        if look.descending:
            found.reverse()
    elif look.column == "size":
        found.sort(key=lambda entry: entry.length, reverse=look.descending)
    else:
        found.sort(key=lambda entry: entry.modified, reverse=look.descending)
    found.sort(key=lambda entry: not entry.is_folder)
    return found


def page_of(arranged: Sequence[FileInfo], number: int) -> ListingPage:
    """Return a page; the last one where there are fewer."""
    count = max(1, -(-len(arranged) // ROWS))
    number = min(max(0, number), count - 1)
    first = number * ROWS
    return ListingPage(arranged[first : first + ROWS], first, len(arranged), number, count)
