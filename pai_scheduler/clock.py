"""The scheduler's own time: it begins as the machine's clock says, and goes on evenly when that is set.

What takes its time (limits, holds, pauses before another try) is measured by it, and the events of jobs
tell it, so neither goes wrong when the machine's clock is set. It comes back to that clock slowly, as NTP's
own daemons do.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

#: While the machine's clock says something else, this part of the time that passes is left out or added.
SLEW = 100
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class ClockMark:
    """Time (ms since the epoch) at an uptime (ms since the boot); each boot has its own name."""

    boot: str
    uptime: int
    time: int

    @property
    def offset(self) -> int:
        """Return what is to be added to the time since the boot."""
        return self.time - self.uptime


class Clock:
    """Returns ms since the epoch, never less than before.

    `wall` and `uptime` give ns: the clock that may be set, and the time since the machine's boot, also what
    it was suspended for. `boot` names that boot.
    """

    def __init__(
        self,
        wall: Callable[[], int] = time.time_ns,
        uptime: Callable[[], int] = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        boot: Callable[[], str] = lambda: _BOOT_ID.read_text().strip(),
    ) -> None:
        self._wall, self._uptime = wall, uptime
        self._boot = boot()
        self._last, self._now = uptime(), wall()

    def __call__(self) -> int:
        """Return the time."""
        uptime = self._uptime()
        passed = max(0, uptime - self._last)
        most = passed // SLEW
        self._now += passed + min(max(self._wall() - self._now - passed, -most), most)
        self._last += passed
        return self._now // _MS

    def take_up(self, mark: ClockMark | None, latest: int | None) -> None:
        """Go on from an earlier life of the service: from its mark where the machine was not booted since.

        `latest` is the latest time that is told of a job that has not ended; None: there is no such job, and
        the machine's clock is believed.
        """
        if latest is None:
            return
        if mark is not None and mark.boot == self._boot:
            self._now = mark.offset * _MS + self._last
        self._now = max(self._now, latest * _MS)

    def catch_up(self) -> None:
        """Go forward at once to what the machine's clock says; for when nothing takes its time."""
        self()
        self._now = max(self._now, self._wall())

    def mark(self) -> ClockMark:
        """Return what another life of the service goes on from."""
        now = self()
        return ClockMark(self._boot, self._last // _MS, now)

    def wall(self) -> int:
        """Return what the machine's clock says (ms)."""
        return self._wall() // _MS
