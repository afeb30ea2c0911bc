"""Times in the markup of widgets: the browser writes them as its own clock shows them.

The kernel may run in another zone than the person. JupyterLab's side of this extension (`ui/lab/times.ts`)
writes the elements below anew; where it is missing, they say the kernel's time, with its zone.
"""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape

#: Stands for a time in a sentence until the sentence is markup; no sentence holds it.
PLACE = "\0"


def moment(milliseconds: int) -> str:
    """Write a time (ms since the epoch) for every clock: as this machine's shows it, with its zone."""
    return _local(milliseconds).strftime("%Y-%m-%d %H:%M:%S %Z")


def when(milliseconds: int) -> str:
    """Return the markup of a time, day and all."""
    stamp = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    return (
        f'<time datetime="{stamp}" data-pai-time="{milliseconds}" data-pai-form="seconds">'
        f"{escape(moment(milliseconds))}</time>"
    )


def clock(milliseconds: int, attributes: str) -> str:
    """Return the markup of a time of the day in a drawing; `attributes`: of the SVG's `text`."""
    shown = _local(milliseconds).strftime("%H:%M:%S")
    return f'<text data-pai-time="{milliseconds}" data-pai-form="clock" {attributes}>{shown}</text>'


def with_time(sentence: str, milliseconds: int) -> str:
    """Return the markup of a sentence in which `PLACE` stands for a time."""
    return escape(sentence).replace(PLACE, when(milliseconds))


def _local(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone()
