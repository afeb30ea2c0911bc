"""Who waits for room, by what a task needs: found without a look at everybody when room becomes free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from sortedcontainers import SortedDict

from .demand import Demand

Position = TypeVar("Position")
Waiting = TypeVar("Waiting")

#: The type of GPU that a task asks for (None: any), and how many.
_Gpus = tuple[str | None, int]


@dataclass(slots=True)
class FreeRoom:
    """What is free on one node: memory in MB, storage in GB, GPUs by type."""

    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: Mapping[str, int]
    #: how many GPUs of one type there are at most
    most_gpus: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Count them."""
        self.most_gpus = max(self.gpus.values(), default=0)

    def holds(self, demand: Demand) -> bool:
        """Return whether a task has enough cores, memory and storage here."""
        return (
            demand.cpus <= self.cpus
            and demand.memory_mb <= self.memory_mb
            and demand.storage_gb <= self.storage_gb
        )


class RoomIndex(Generic[Position, Waiting]):
    """What waits, in order of its positions (no two have the same), by the GPUs of each of its tasks."""

    __slots__ = ("_by_gpus",)

    def __init__(self) -> None:
        self._by_gpus: dict[_Gpus, SortedDict[Position, tuple[Waiting, list[Demand]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._by_gpus)

    def add(self, position: Position, waiting: Waiting, demands: Iterable[Demand]) -> None:
        """Take in what waits at a position for room for all of `demands`."""
        for demand in demands:
            gpus = demand.gpu_type, demand.gpus
            if gpus not in self._by_gpus:
                self._by_gpus[gpus] = SortedDict()
            self._by_gpus[gpus].setdefault(position, (waiting, []))[1].append(demand)

    def remove(self, position: Position, demands: Iterable[Demand]) -> None:
        """Undo `add`."""
        for demand in demands:
            gpus = demand.gpu_type, demand.gpus
            by_position = self._by_gpus.get(gpus)
            if by_position is not None:
                by_position.pop(position, None)
                if not by_position:
                    del self._by_gpus[gpus]

    def first(
        self, rooms: Iterable[FreeRoom], after: Position | None = None
    ) -> tuple[Position, Waiting] | None:
        """Return the first, `after` a position, of which one of `rooms` could take a task."""
        best: tuple[Position, Waiting] | None = None
        for room in rooms:
            gpus, most = room.gpus, room.most_gpus
            for (gpu_type, count), by_position in self._by_gpus.items():
                if count > (most if gpu_type is None else gpus.get(gpu_type, 0)):
                    continue
                for position in by_position.irange(after, inclusive=(False, False)):
                    if best is not None and not position < best[0]:
                        break
                    waiting, demands = by_position[position]
                    if any(map(room.holds, demands)):
                        best = position, waiting
                        break
        return best
