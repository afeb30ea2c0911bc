"""A machine that tasks run on, and what it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class NodeState(StrEnum):
    """Whether a machine may get something new; what runs on it goes on, unless it is lost."""

    READY = "READY"
    PAUSED = "PAUSED"  # by an administrator, for a while
    DRAINED = "DRAINED"  # by an administrator, who wants it empty: nothing new, what runs may end by itself
    FULL = "FULL"  # hardly any room is left on its disk
    LOST = "LOST"  # it does not answer


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `index` is its number on the node; `simulated`: declared, not found."""

    index: int
    type: str
    uuid: str = ""
    simulated: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A machine and its capacity: memory in MB, storage in GB. Not what is free.

    `rack`: the same for machines near each other (a rack, or a switch); empty: not known.
    """

    name: str
    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: tuple[Gpu, ...] = ()
    state: NodeState = NodeState.READY
    rack: str = ""

    @property
    def ready(self) -> bool:
        """Return whether it may get something new."""
        return self.state is NodeState.READY

    @property
    def gpu_counts(self) -> Mapping[str, int]:
        """Count the GPUs by type."""
        return Counter(gpu.type for gpu in self.gpus)
