"""Amounts of resources, to be added and compared: CPUs, memory, storage, and GPUs of each type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache

from pai_scheduler.i18n import Message, counted, msg

from .demand import Assignment, Demand
from .node import Node

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
