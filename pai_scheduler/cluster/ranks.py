"""In which order jobs wait: the rank of one, and its position among all of its virtual cluster."""

from __future__ import annotations

#: Precedence and order of submission: lower comes first.
Rank = tuple[int, int]
#: Where a job stands in the queue of its virtual cluster: its rank and its id.
QueuePosition = tuple[Rank, str]

#: More than any turn, which is ms since the epoch and what is added to them; a hundred times it is less than
#: 2**63, as a place in a list has to be.
_TURNS = 1 << 55


#: More than the priorities of a user's jobs differ by: where users take turns, the turn comes first.
_PRIORITIES = 128


def shift_of(turn: int) -> int:
    """Return what is added to the precedence of a user's jobs where users take turns (see `usage.py`)."""
    return turn * _PRIORITIES


def comes_to_stop(waiting: int, running: int) -> bool:
    """Return whether one stops another: its turn is lower, its priority no less."""
    return waiting < running and waiting % _TURNS < running % _TURNS


def precedence(priority: int, turn: int | None = None) -> int:
    """Return what comes before the order of submission: the higher priority, then the lower turn.

    `turn` is None for all jobs of a virtual cluster, or for none.
    """
    return -priority if turn is None else -priority * _TURNS + min(turn, _TURNS - 1)
