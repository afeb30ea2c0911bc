"""The rank of a waiting job, and its position in its virtual cluster."""

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


#: Turns of one level, where jobs have levels.
_TURNS_OF_LEVEL = 1 << 6


def turn_in_level(level: int, width: int) -> int:
    """Return the turn of a job of this level, the lowest is 0; who is less wide comes first within it."""
    return level * _TURNS_OF_LEVEL + min(width, _TURNS_OF_LEVEL - 1)


def level_of(turn: int) -> int:
    """Return the level of a job by its turn, where jobs have levels; 0 is the lowest."""
    return turn // _TURNS_OF_LEVEL


def turn_of(precedence: int) -> int:
    """Return the turn that is in a precedence, where jobs have turns."""
    return precedence % _TURNS


def shift_of(turn: int) -> int:
    """Return what is added to the precedence of a user's jobs where users take turns (`fair_share.py`)."""
    return turn * _PRIORITIES


def comes_to_stop(waiting: int, running: int) -> bool:
    """Return whether one stops another: its turn is lower, its priority no less."""
    return waiting < running and turn_of(waiting) < turn_of(running)


def precedence(priority: int, turn: int | None = None) -> int:
    """Return what comes before the order of submission: the higher priority, then the lower turn.

    `turn` is None for all jobs of a virtual cluster, or for none.
    """
    return -priority if turn is None else -priority * _TURNS + min(turn, _TURNS - 1)
