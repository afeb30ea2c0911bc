"""A machine whose clock tests set."""

from __future__ import annotations

from pai_scheduler.clock import Clock

MS, HOUR = 1_000_000, 3_600_000
NOON = 1_700_000_000_000


class Machine:
    """A machine whose clock can be set, and which can be booted."""

    def __init__(self) -> None:
        self.wall, self.uptime, self.boot = NOON * MS, 5 * HOUR * MS, "first"

    def passes(self, ms: int) -> None:
        self.wall += ms * MS
        self.uptime += ms * MS

    def is_set(self, by_ms: int) -> None:
        self.wall += by_ms * MS

    def is_booted(self) -> None:
        self.uptime, self.boot = 20_000 * MS, self.boot + "'"

    def clock(self) -> Clock:
        return Clock(lambda: self.wall, lambda: self.uptime, lambda: self.boot)
