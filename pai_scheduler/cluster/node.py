"""A machine that tasks run on, and what it has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from .maintenance import Maintenance


class NodeState(StrEnum):
    """Whether a machine may get something new; what runs on it goes on, unless it is lost."""

    READY = "READY"
    PAUSED = "PAUSED"  # by an administrator, for a while
    DRAINED = "DRAINED"  # by an administrator, who wants it empty: nothing new, what runs may end by itself
    FULL = "FULL"  # hardly any room is left on its disk
    LOST = "LOST"  # it does not answer


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `index` is its number on the node; `simulated`: declared, not found.

    `memory_mb`: how much memory it has; None: it is not known.
    """

    index: int
    type: str
    uuid: str = ""
    simulated: bool = False
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """What is free of a disk, and how large it is; both in MB."""

    free_mb: int
    total_mb: int

    def differs_noticeably(self, other: DiskSpace | None) -> bool:
        """Return whether who knows `other` is to be told of this.

        That is so where another tenth of what was free is free or is not, or another hundredth of the disk:
        of a disk that fills, the last gigabytes are told in small steps, and a large one with much room is
        told seldom.
        """
        if other is None or self.total_mb != other.total_mb:
            return True
        step = min(other.free_mb / 10, self.total_mb / 100)
        return self.free_mb != other.free_mb and abs(self.free_mb - other.free_mb) >= step


@dataclass(frozen=True, slots=True)
class Closing:
    """That an administrator keeps new tasks from a machine: who, why, and since when (ms since the epoch).

    `until`: when it is opened again by itself, as after maintenance; None: when somebody opens it.
    """

    by: str
    reason: str
    since: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A machine and its capacity: memory in MB, storage in GB. Not what is free.

    `rack`: the same for machines near each other (a rack, or a switch); empty: not known. `state` is what its
    engine tells; `closing` is beside it, and None where it is open. `maintenance`: what is planned there and
    not over, the first to begin first. `gpu_links`: groups of GPUs, by index, that are joined by fast links,
    each GPU in one at most; one that the node does not have is no matter.
    """

    name: str
    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: tuple[Gpu, ...] = ()
    state: NodeState = NodeState.READY
    rack: str = ""
    closing: Closing | None = None
    maintenance: tuple[Maintenance, ...] = ()
    gpu_links: tuple[tuple[int, ...], ...] = ()

    @property
    def ready(self) -> bool:
        """Return whether it may get something new."""
        return self.state is NodeState.READY and self.closing is None

    @property
    def gpu_counts(self) -> Mapping[str, int]:
        """Count the GPUs by type."""
        return Counter(gpu.type for gpu in self.gpus)
