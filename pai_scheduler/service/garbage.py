"""Python's search for cyclic garbage, in steps so small that nobody waits for it long."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

#: After so many new objects Python looks for cycles in them, after so many such looks in those that stayed,
#: and so on. With Python's own (700, 10, 10) the second kind took 9 to 17 ms with 10,000 busy nodes, with
#: these 2 to 5, and all of them together a third less. The third kind looks at what is new since the last of
#: its own, as the rest is left out: 17 to 26 ms with 30 instead of 3, 5 to 17 with 8, and no more in all.
THRESHOLDS = 300, 3, 3


#: So long what stayed is not looked at again.
_THAW_SECONDS = 24 * 3600.0


def collect_in_small_steps(clock: Callable[[], float] = time.monotonic) -> None:
    """Let Python look for cycles more often, in fewer objects: who waits for the scheduler waits for that.

    What has stayed through a look at everything is left out of the next ones, and so it is of the jobs that
    came since: else each look took half a second for a hundred thousand of them. Once a day all is looked at.
    `clock`: seconds from any moment on.
    """
    gc.set_threshold(*THRESHOLDS)
    thawed = clock()

    def after(phase: str, about: Mapping[str, int]) -> None:
        nonlocal thawed
        if phase != "stop" or about["generation"] != 2:
            return
        if clock() - thawed < _THAW_SECONDS:
            gc.freeze()
        else:
            # the next look at everything is one
            gc.unfreeze()
            thawed = clock()

    gc.callbacks.append(after)


def leave_out_what_is_there() -> None:
    """Leave all that there is out of the looks until a day is over: what a start has made stays.

    Else the first look, which comes soon, takes fifty milliseconds.
    """
    gc.freeze()


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
