"""Asks the exact search where best fit found no room, within an allowance, and remembers refusals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence

from .demand import Demand
from .packing import BUDGET, Budget, NoArrangement, Place, Room, arrange

#: Steps that searches may take per event, and how many can be saved up.
ALLOWANCE, MOST_SAVED = 2_000, 20_000
#: Refusals remembered at most.
_MEMORY = 1_000


class ExactSearch:
    """The searches of one cluster: how many steps they may still take, and what they did not find."""

    def __init__(self) -> None:
        self._left = Budget(MOST_SAVED)
        self._refused: dict[Hashable, None] = {}

    def allow_more(self) -> None:
        """Something happened: more steps may be taken."""
        self._left.left = min(MOST_SAVED, self._left.left + ALLOWANCE)

    def arrange(
        self,
        state: int,
        rooms: Callable[[], Sequence[Room]],
        gang: Sequence[Demand],
        gpu_room: Mapping[str, int] | None,
    ) -> tuple[Place, ...] | None:
        """Find an arrangement of a gang; None where there is none, or none is found within the steps allowed.

        `state` stands for what is free: where that was refused before, it is at once.
        """
        key = state, tuple(gang), None if gpu_room is None else tuple(sorted(gpu_room.items()))
        if key in self._refused:
            return None
        budget = Budget(min(BUDGET, self._left.left))
        allowed = budget.left
        found = arrange(rooms(), gang, gpu_room, budget)
        self._left.left -= allowed - budget.left
        if not isinstance(found, NoArrangement):
            return found
        if found is NoArrangement.IMPOSSIBLE or allowed == BUDGET:
            if len(self._refused) >= _MEMORY:
                self._refused.clear()
            self._refused[key] = None
        return None


def best_fit_may_err(gang: Sequence[Demand], gpu_room: Mapping[str, int] | None) -> bool:
    """Return whether best fit may overlook an arrangement.

    It does not for one task, nor where all tasks are equal, unless they may choose among types of GPU that
    are limited apart.
    """
    if len(gang) == 1:
        return False
    kinds = {(one.cpus, one.memory_mb, one.storage_gb, one.gpus, one.gpu_type) for one in gang}
    return len(kinds) > 1 or (gpu_room is not None and any(one.gpus and not one.gpu_type for one in gang))


def enough_gpus(gang: Sequence[Demand], free: Mapping[str, int]) -> bool:
    """Return whether there are enough GPUs of each type, and of all together, wherever they are."""
    asked: Counter[str] = Counter()
    for demand in gang:
        asked[demand.gpu_type or ""] += demand.gpus
    return sum(asked.values()) <= sum(free.values()) and all(
        count <= free.get(gpu_type, 0) for gpu_type, count in asked.items() if gpu_type and count
    )
