"""How far another machine's clock is ahead of this one's, learnt from the answers that it gives anyway.

As NTP does (RFC 5905, section 8): an answer was made after its question was sent and before it came, so what
the other clock showed then bounds the difference from both sides.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

#: ms apart that are worth a line in the log
_MUCH = 2_000

_log = logging.getLogger(__name__)


class ClockDifference:
    """Translates times of the machine `name` into this machine's; ms since the epoch. `wall` is our clock."""

    def __init__(self, name: str, wall: Callable[[], int] = lambda: time.time_ns() // 10**6) -> None:
        self._name, self._wall = name, wall
        #: ms by which the other clock is ahead, as far as it is known
        self.ahead = 0
        self._told = False

    def learn(self, theirs: int, seconds: float) -> None:
        """Learn from an answer that has just come: `theirs` is when it was made, asked for `seconds` ago."""
        least = theirs - self._wall()
        most = least + round(1000 * seconds)
        self.ahead = min(max(self.ahead, least), most)
        much = abs(self.ahead) > _MUCH
        if much and not self._told:
            way = "ahead" if self.ahead > 0 else "behind"
            seconds_apart = abs(self.ahead) / 1000
            _log.warning(
                "the clock of %s is %.1f s %s; its times are corrected", self._name, seconds_apart, way
            )
        self._told = much

    def here(self, theirs: int) -> int:
        """Return what this machine's clock showed when the other one showed `theirs`."""
        return theirs - self.ahead
