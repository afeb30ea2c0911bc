"""Availability of what a profile asks for, in words of the form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pai_scheduler.i18n import Message
from pai_scheduler.rest.cluster import Amount, AvailableAmounts, NodeInfo, VirtualClusterInfo

from .messages import counted, msg
from .models import Options

# What was chosen, and what is free of it, in words.

_MB_PER_GB = 1024
_HOUR, _DAY = 60, 24 * 60


def title_of(options: Options) -> Message:
    """Say what one gets: `1 × P100, 4 CPUs, 16 GB`."""
    cpus, memory = cpus_words(options.cpus), memory_words(options.memory_mb)
    if not options.gpus:
        return msg("{cpus}, {memory}", cpus=cpus, memory=memory)
    gpus = gpus_words(options.gpus, options.gpu_type)
    return msg("{gpus}, {cpus}, {memory}", gpus=gpus, cpus=cpus, memory=memory)


def gpus_words(count: int, gpu_type: str) -> Message:
    """Say how many GPUs of which type; an empty one is any type."""
    return msg("{gpus} × {type}", gpus=count, type=gpu_type or msg("GPU"))


def cpus_words(count: int) -> Message:
    """Say how many CPUs."""
    return counted("{count} CPU", "{count} CPUs", count=count)


def memory_words(megabytes: int) -> Message:
    """Say an amount of memory as people do: `16 GB`, `512 MB`."""
    if megabytes < _MB_PER_GB:
        return msg("{memory} MB", memory=megabytes)
    return msg("{memory:g} GB", memory=round(megabytes / _MB_PER_GB, 1))


def duration_words(minutes: int) -> Message:
    """Say a time limit in the largest unit in which it is a whole number."""
    if minutes % _DAY == 0:
        return counted("{count} day", "{count} days", count=minutes // _DAY)
    if minutes % _HOUR == 0:
        return counted("{count} hour", "{count} hours", count=minutes // _HOUR)
    return counted("{count} minute", "{count} minutes", count=minutes)


def gpu_type_words(gpu_type: str, available: AvailableAmounts) -> Message:
    """Say how much of a type of GPU is free for somebody in a virtual cluster."""
    most = available["most"]["gpus"].get(gpu_type, 0)
    if not most:
        return msg("{type}: none in this virtual cluster", type=gpu_type)
    free = available["free"]["gpus"].get(gpu_type, 0)
    return msg("{type}: {free} of {total} free", type=gpu_type, free=free, total=most)


def virtual_cluster_words(name: str, available: AvailableAmounts) -> Message:
    """Say which GPUs somebody has in a virtual cluster, and how many of them are free."""
    free = available["free"]["gpus"]
    gpus = [
        f"{free.get(gpu_type, 0)}/{count} × {gpu_type}"
        for gpu_type, count in sorted(available["most"]["gpus"].items())
        if count
    ]
    if not gpus:
        return msg("{name}: no GPUs", name=name)
    return msg("{name}: {gpus} free", name=name, gpus=", ".join(gpus))


def gpus_note(gpu_type: str, available: AvailableAmounts) -> Message:
    """Say how many GPUs one server may have: all of them are on one machine."""
    most = most_gpus(gpu_type, available)
    return msg("All GPUs of a server are on one machine: at most {most} here.", most=most)


def cpus_note(available: AvailableAmounts) -> Message:
    """Say how many CPUs are free for somebody in a virtual cluster."""
    free, most = available["free"]["cpus"], available["most"]["cpus"]
    return msg("{free} of {total} free", free=free, total=most)


def memory_note(available: AvailableAmounts) -> Message:
    """Say how much memory is free for somebody in a virtual cluster."""
    free, most = available["free"]["memoryMB"], available["most"]["memoryMB"]
    return msg("{free} of {total} free", free=memory_words(free), total=memory_words(most))


def most_gpus(gpu_type: str, available: AvailableAmounts) -> int:
    """Return how many GPUs one server can ever have; `gpu_type` empty: of whichever type has most."""
    counts = available["mostOnOne"]["gpus"]
    return counts.get(gpu_type, 0) if gpu_type else max(counts.values(), default=0)


# What a server has, in words.


def describe(*, cpus: int, memory_mb: int, gpus: int, gpu_type: str) -> Message:
    """Say what a server has; `gpu_type` empty: any."""
    some_cpus = counted("{count} CPU", "{count} CPUs", count=cpus)
    if not gpus:
        return msg("{cpus} and {memory} MB of memory", cpus=some_cpus, memory=memory_mb)
    return msg(
        "{cpus}, {memory} MB of memory and {gpus} × {type}",
        cpus=some_cpus,
        memory=memory_mb,
        gpus=gpus,
        type=gpu_type or msg("any GPU"),
    )


# What there is and what is free, as the person who chooses a server may have it.

_NOTHING: Amount = {"cpus": 0, "memoryMB": 0, "storageGB": 0, "gpus": {}}
#: what somebody has in a virtual cluster that is not open
NOTHING: AvailableAmounts = {
    "free": _NOTHING,
    "most": _NOTHING,
    "freeOnOne": _NOTHING,
    "mostOnOne": _NOTHING,
}


@dataclass(frozen=True, slots=True)
class VirtualClusterSupply:
    """A virtual cluster that is open to the person, and what of it their next server could have.

    Servers are not stopped for others, so they never borrow: it is what the virtual cluster has of its own.
    """

    name: str
    running: bool
    available: AvailableAmounts


@dataclass(frozen=True, slots=True)
class MachineSupply:
    """Free resources of one node: memory in MB; `gpus`: (type, free, total).

    `state`: as of `NodeInfo`, or CLOSED where an administrator has closed a ready one.
    """

    name: str
    state: str
    free_cpus: int
    total_cpus: int
    free_memory_mb: int
    total_memory_mb: int
    gpus: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Supply:
    """The cluster as a person choosing a server sees it. `simulated`: types of GPU that are only declared."""

    machines: tuple[MachineSupply, ...]
    gpu_types: tuple[str, ...]
    simulated: frozenset[str]
    virtual_clusters: Mapping[str, VirtualClusterSupply]

    def available_in(self, virtual_cluster: str) -> AvailableAmounts:
        """Return what a server could have in a virtual cluster; nothing where it is not open."""
        found = self.virtual_clusters.get(virtual_cluster)
        return NOTHING if found is None else found.available


def supply_of(
    nodes: Iterable[NodeInfo],
    virtual_clusters: Mapping[str, VirtualClusterInfo],
    available: Mapping[str, AvailableAmounts],
) -> Supply:
    """Put together what the scheduler tells of nodes, virtual clusters, and what somebody may have."""
    machines = list(nodes)
    gpus = [gpu for node in machines for gpu in node["gpus"]]
    return Supply(
        machines=tuple(map(_machine_supply, machines)),
        gpu_types=tuple(sorted({gpu_type for node in machines for gpu_type in node["total"]["gpus"]})),
        simulated=frozenset(gpu["type"] for gpu in gpus if gpu["simulated"]),
        virtual_clusters={
            name: VirtualClusterSupply(name, info["status"] == "RUNNING", available[name])
            for name, info in virtual_clusters.items()
            if name in available
        },
    )


def _machine_supply(node: NodeInfo) -> MachineSupply:
    total, used = node["total"], node["used"]
    return MachineSupply(
        node["name"],
        "CLOSED" if node["closed"] and node["state"] == "READY" else node["state"],
        total["cpus"] - used["cpus"],
        total["cpus"],
        total["memoryMB"] - used["memoryMB"],
        total["memoryMB"],
        tuple(
            (gpu_type, count - used["gpus"].get(gpu_type, 0), count)
            for gpu_type, count in sorted(total["gpus"].items())
        ),
    )
