"""Free resources of the cluster, counted and put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo

from .language import Language

#: State of a machine that may get something new.
_READY = "READY"


@dataclass(frozen=True, slots=True)
class GpuCount:
    """Total and free GPUs of one type."""

    type: str
    free: int
    total: int
    simulated: bool


def gpu_counts(nodes: Iterable[NodeInfo]) -> list[GpuCount]:
    """Count the GPUs of all nodes by type."""
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    real: set[str] = set()
    for node in nodes:
        for gpu in node["gpus"]:
            total[gpu["type"]] += 1
            free[gpu["type"]] += gpu["job"] is None and node["state"] == _READY
            if not gpu["simulated"]:
                real.add(gpu["type"])
    return [GpuCount(kind, free[kind], total[kind], kind not in real) for kind in sorted(total)]


def free_line(say: Language, name: str, cluster: VirtualClusterInfo | None, nodes: Sequence[NodeInfo]) -> str:
    """Return what nobody has of the machines, and how much a virtual cluster has of its share."""
    if cluster is None:
        return say("There is no virtual cluster {name}.", name=name)
    cpus, memory = free_amount(nodes, "cpus"), free_amount(nodes, "memoryMB")
    parts = [
        say.counted("{free} of {count} CPU", "{free} of {count} CPUs", free=cpus[0], count=cpus[1]),
        say("{free} of {total} GB memory", free=_gb(memory[0]), total=_gb(memory[1])),
        *(
            say("{free} of {total} {type} (simulated)", type=c.type, free=c.free, total=c.total)
            if c.simulated
            else say("{free} of {total} {type}", type=c.type, free=c.free, total=c.total)
            for c in gpu_counts(nodes)
        ),
    ]
    return say(
        "Free: {parts}. Virtual cluster {name} holds {used:.3g} % of the cluster; "
        "it is guaranteed {share:g} %, and may hold {most:g} %.",
        parts=say(", ").join(parts),
        name=name,
        used=cluster["usedCapacity"],
        share=cluster["capacity"],
        most=cluster["maxCapacity"],
    )


def free_amount(nodes: Sequence[NodeInfo], resource: Literal["cpus", "memoryMB"]) -> tuple[int, int]:
    """Count what is free of a resource, and what there is."""
    total = sum(node["total"][resource] for node in nodes)
    free = sum(node["total"][resource] - node["used"][resource] for node in nodes if node["state"] == _READY)
    return free, total


def _gb(megabytes: float) -> str:
    return f"{megabytes / 1024:.1f}".removesuffix(".0")
