"""Makes many objects that stay without Python looking through all of them again and again."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


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
