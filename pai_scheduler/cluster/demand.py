"""What one task asks for, and what it is given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pai_scheduler.job.spec import PortRequest


@dataclass(frozen=True, slots=True)
class Demand:
    """What one task needs: memory in MB, storage in GB; `gpu_type` None: any, but all of one type.

    `spread`: on other nodes, where there are such, than other tasks with the same word; empty: near them all.
    """

    cpus: int
    memory_mb: int
    storage_gb: int = 0
    gpus: int = 0
    gpu_type: str | None = None
    ports: tuple[PortRequest, ...] = ()
    spread: str = ""
    #: what `__hash__` gives: what is known of a task is looked up by it, several times at each decision
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hash it, once."""
        amounts = self.cpus, self.memory_mb, self.storage_gb, self.gpus, self.gpu_type
        object.__setattr__(self, "_hash", hash((amounts, self.ports, self.spread)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def has_fixed_ports(self) -> bool:
        """Return whether the user named a port."""
        return any(request.begin_at for request in self.ports)


@dataclass(frozen=True, slots=True)
class Assignment:
    """Where one task runs, with which GPUs (indices on the node) and ports by label."""

    node: str
    gpus: tuple[int, ...] = ()
    ports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def fixed_ports(requests: Iterable[PortRequest]) -> Iterator[int]:
    """Return every port that a user named."""
    for request in requests:
        if request.begin_at:
            yield from range(request.begin_at, request.begin_at + request.count)
