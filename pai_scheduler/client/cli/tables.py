"""Text for terminals: aligned tables (a Chinese character takes two columns), times and amounts."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime

from wcwidth import wcswidth

_GAP = "  "
#: Whether times are written with their distance from UTC behind them.
zone_shown: ContextVar[bool] = ContextVar("zone_shown", default=False)


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out rows under their header; a column of numbers stands to the right."""
    lines = [[printable(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(width, column)) for column in zip(*lines, strict=True)]
    numeric = [len(lines) > 1 and all(_is_number(line[i]) for line in lines[1:]) for i in range(len(header))]
    return "\n".join(
        _GAP.join(_pad(cell, widths[i], right=numeric[i]) for i, cell in enumerate(line)).rstrip()
        for line in lines
    )


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """Lay out names and their values, one a line; an empty value leaves its line out."""
    shown = [(name, printable(value)) for name, value in rows if value]
    longest = max((width(name) for name, _ in shown), default=0)
    return "\n".join(f"{_pad(name, longest, right=False)}{_GAP}{value}" for name, value in shown)


def width(text: str) -> int:
    """Count the columns that a printable text takes on a terminal."""
    return max(0, wcswidth(text))


def printable(text: str) -> str:
    """Take out what would move the cursor or change the colours: a text may come from another user."""
    return "".join(" " if unicodedata.category(char).startswith("C") else char for char in text)


def printable_lines(text: str) -> str:
    """Do the same for a text of several lines, which stay apart."""
    return "\n".join(map(printable, text.split("\n")))


def moment(milliseconds: int | None) -> str:
    """Write a time (ms since the epoch) as this machine's clock shows it; with its zone if `zone_shown`."""
    if milliseconds is None:
        return "-"
    local = datetime.fromtimestamp(milliseconds // 1000, UTC).astimezone()
    return (local if zone_shown.get() else local.replace(tzinfo=None)).isoformat(" ")


def duration(milliseconds: int) -> str:
    """Write how long something took: 42s, 3m 05s, 2h 07m, 3d 04h."""
    seconds = max(0, milliseconds) // 1000
    if seconds < 60:
        return f"{seconds}s"
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    if seconds < 86400:
        return f"{seconds // 3600}h {seconds % 3600 // 60:02}m"
    return f"{seconds // 86400}d {seconds % 86400 // 3600:02}h"


def _pad(text: str, columns: int, *, right: bool) -> str:
    blanks = " " * (columns - width(text))
    return blanks + text if right else text + blanks


def _is_number(text: str) -> bool:
    return text in ("", "-") or text.removeprefix("-").replace(".", "", 1).isdigit()
