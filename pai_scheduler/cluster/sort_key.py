"""The sort key of a waiting job: what decides who comes first in the queue of a virtual cluster."""

from __future__ import annotations

import msgspec

#: More than the priorities of a user's jobs differ by: under fair share the user counts before the priority.
_PRIORITIES = 128
#: The highest policy key: a page of a list names it as a number of less than 64 bits.
_LAST = 1 << 62
#: Policy keys of one level, where jobs have levels.
_KEYS_OF_LEVEL = 1 << 6


class SortKey(msgspec.Struct, frozen=True, order=True, gc=False, array_like=True):
    """Sort key of a waiting job: lower comes first. (No tuple: the garbage collector follows none.)"""

    #: the negative priority; under fair share with the key of the user before it
    priority: int
    #: among jobs of one priority, by the queue policy; 0 where submission alone decides
    policy: int
    #: the number of the submission
    submission: int

    @classmethod
    def of(cls, priority: int, policy_key: int | None, submission: int) -> SortKey:
        """Make one; `policy_key` None: for no job of the virtual cluster the policy has one."""
        return cls(-priority, min(policy_key or 0, _LAST), submission)

    def of_user(self, user_key: int) -> SortKey:
        """Return it behind the jobs of all users with lower keys, under fair share (`fair_share.py`)."""
        return SortKey(self.priority + user_key * _PRIORITIES, self.policy, self.submission)

    def stops(self, running: SortKey) -> bool:
        """Return whether a waiting job stops a running one: a lower policy key, and no lower priority."""
        return self.priority <= running.priority and self.policy < running.policy


#: A job by its sort key and its id, of which no two are the same.
KeyedJob = tuple[SortKey, str]


def level_key(level: int, width: int) -> int:
    """Return the policy key of a job of this level (from 0); within a level the narrower job comes first."""
    return level * _KEYS_OF_LEVEL + min(width, _KEYS_OF_LEVEL - 1)


def level_of(policy_key: int) -> int:
    """Return the level of a job by its policy key, where jobs have levels; 0 is the lowest."""
    return policy_key // _KEYS_OF_LEVEL
