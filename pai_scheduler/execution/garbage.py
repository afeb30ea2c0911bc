"""Bounds what is held up by Python's searches for cycles: what stays is left out, the rest comes in parts."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: How many new objects there are before they are looked at, after how many such looks those that stayed are
#: looked at together, and after how many of these all others. By Python's own 700, 10 and 10 they are 7,000,
#: which took 9 to 15 ms among what started jobs hold; by these 2 to 4 ms, and no more in all.
_THRESHOLDS = 300, 5, 50


def collect_in_small_steps() -> None:
    """Have the program look for cycles among few objects at a time, and among all as seldom as before."""
    gc.set_threshold(*_THRESHOLDS)


@contextmanager
def without_collections() -> Iterator[None]:
    """Make objects of which all stay, a million jobs: no search for cycles in them, now nor later.

    Each such search holds up everything else, for half a second among a hundred thousand jobs. What was made
    within an earlier one counts as any other object again, so that it can go.
    """
    gc.unfreeze()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_enabled:
            gc.enable()
