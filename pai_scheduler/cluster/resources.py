"""Amounts of resources; the demand of a task and of a gang, and what is allocated to a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.spec import JobSpec, PortRequest, TaskRole

from .node import Node

# What one task asks for, and what it is given.


@dataclass(frozen=True, slots=True)
class Demand:
    """Resource demand of one task: memory in MB, storage in GB; `gpu_type` None: any, but all of one type.

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
    """Allocation of one task: its node, its GPUs (indices on the node) and its ports by label."""

    node: str
    gpus: tuple[int, ...] = ()
    ports: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def fixed_ports(requests: Iterable[PortRequest]) -> Iterator[int]:
    """Return every port that a user named."""
    for request in requests:
        if request.begin_at:
            yield from range(request.begin_at, request.begin_at + request.count)


# Amounts of resources, to be added and compared: CPUs, memory, storage, and GPUs of each type.

#: Keys of an amount; memory in MB, storage in GB. A GPU type has a key of its own (`gpu_key`).
CPUS, MEMORY, STORAGE = "cpus", "memoryMB", "storageGB"
#: GPUs of whichever type, as long as no type is chosen.
ANY_GPU = "gpu:"

Amounts = Mapping[str, int]


def gpu_key(gpu_type: str) -> str:
    """Return the key of a GPU type."""
    return ANY_GPU + gpu_type


def is_gpu(key: str) -> bool:
    """Return whether a key stands for GPUs."""
    return key.startswith(ANY_GPU)


def of_nodes(nodes: Iterable[Node]) -> Counter[str]:
    """Add up what nodes have."""
    total: Counter[str] = Counter()
    for node in nodes:
        total[CPUS] += node.cpus
        total[MEMORY] += node.memory_mb
        total[STORAGE] += node.storage_gb
        for gpu_type, count in node.gpu_counts.items():
            total[gpu_key(gpu_type)] += count
    return total


def of_gang(gang: Iterable[Demand]) -> Counter[str]:
    """Add up what tasks ask for; GPUs of no certain type are under `ANY_GPU`."""
    total: Counter[str] = Counter()
    for demand in gang:
        _add(total, demand, demand.gpu_type or "")
    return total


def of_task(demand: Demand, assignment: Assignment, nodes: Mapping[str, Node]) -> Amounts:
    """Return what a task was given; the type of its GPUs is that of its node's. Equal tasks share it."""
    gpu_type = demand.gpu_type
    if not gpu_type:
        node = nodes.get(assignment.node)
        gpus = node.gpus if node is not None else ()
        gpu_type = next((gpu.type for i in assignment.gpus for gpu in gpus if gpu.index == i), "")
    return _of_one(demand, gpu_type)


@lru_cache(maxsize=8192)
def _of_one(demand: Demand, gpu_type: str) -> Amounts:
    total: Counter[str] = Counter()
    _add(total, demand, gpu_type)
    return total


def gpus_in(amounts: Amounts) -> int:
    """Count the GPUs of all types."""
    return sum([count for key, count in amounts.items() if key.startswith(ANY_GPU)])


def describe(key: str, amount: int) -> Message:
    """Return an amount of a resource in words: `2 × P100`, `16 CPUs`."""
    if is_gpu(key):
        return msg("{amount} × {type}", amount=amount, type=key.removeprefix(ANY_GPU) or "GPU")
    if key == CPUS:
        return counted("{count} CPU", "{count} CPUs", count=amount)
    if key == MEMORY:
        return msg("{amount} MB of memory", amount=amount)
    return msg("{amount} GB of storage", amount=amount)


def _add(total: Counter[str], demand: Demand, gpu_type: str) -> None:
    total[CPUS] += demand.cpus
    total[MEMORY] += demand.memory_mb
    if demand.storage_gb:
        total[STORAGE] += demand.storage_gb
    if demand.gpus:
        total[gpu_key(gpu_type)] += demand.gpus


# What a whole job needs: one demand per task, in the order of its roles and indices.

#: GB of disk that a task reserves which names none; its limit is another matter (`Definition`)
DEFAULT_STORAGE_REQUEST_GB = 1


def role_demand(
    spec: JobSpec, role: TaskRole, storage_request_gb: int = DEFAULT_STORAGE_REQUEST_GB
) -> Demand:
    """Return what each task of a role needs."""
    return Demand(
        cpus=role.cpu_number,
        memory_mb=role.memory_mb,
        storage_gb=storage_request_gb if role.storage_gb is None else role.storage_gb,
        gpus=role.gpu_number,
        gpu_type=spec.gpu_type if role.gpu_number else None,
        ports=role.all_ports,
        spread=role.name if spec.spread and spec.total_tasks > 1 else "",
    )


def gang_of(spec: JobSpec, storage_request_gb: int = DEFAULT_STORAGE_REQUEST_GB) -> Sequence[Demand]:
    """Return the demands of all tasks of a job: of many jobs that ask for the same, the same object."""
    spreads = spec.spread and spec.total_tasks > 1
    asked = tuple(
        (
            role.task_number,
            role.cpu_number,
            role.memory_mb,
            storage_request_gb if role.storage_gb is None else role.storage_gb,
            role.gpu_number,
            role.ports,
            role.name if spreads else "",
        )
        for role in spec.task_roles
    )
    return _gang(asked, spec.gpu_type)


#: `role_demand`'s facts about a role, after the number of its tasks
_Asked = tuple[int, int, int, int, int, tuple[PortRequest, ...], str]


@lru_cache(maxsize=512)
def _gang(asked: tuple[_Asked, ...], gpu_type: str | None) -> tuple[Demand, ...]:
    demands: list[Demand] = []
    for tasks, cpus, memory_mb, storage_gb, gpus, ports, spread in asked:
        every = TaskRole("", "", ports=ports).all_ports
        demand = Demand(cpus, memory_mb, storage_gb, gpus, gpu_type if gpus else None, every, spread)
        demands += [demand] * tasks
    return tuple(demands)
