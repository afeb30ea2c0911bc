"""Makes the ids of jobs: 80 bits, in letters and digits that stand in every kind of name.

They rise with time, so the rows of new jobs stand side by side in the database's indexes however many there
are: with ids by chance each submit would change pages of its own.
"""

from __future__ import annotations

import base64
import secrets

#: Bits of the time (ms since the epoch, enough until 2109) and of what chance adds, with which no two
#: schedulers, nor two lives of one, come to the same.
_TIME_BITS, _CHANCE_BITS = 42, 38
#: of what is added where another id was made in the same ms
_STEP_BITS = 16


class JobIds:
    """Makes ids of which each is higher than those before, in the order of their texts too."""

    def __init__(self) -> None:
        self._last = 0

    def new(self, now: int) -> str:
        """Make an id at `now` (ms since the epoch); where that is not later than before, it is higher too."""
        number = (now % (1 << _TIME_BITS)) << _CHANCE_BITS | secrets.randbits(_CHANCE_BITS)
        if number <= self._last:
            number = self._last + 1 + secrets.randbits(_STEP_BITS)
        self._last = number
        whole = number.to_bytes((_TIME_BITS + _CHANCE_BITS) // 8, "big")
        return base64.b32hexencode(whole).decode("ascii").lower()
