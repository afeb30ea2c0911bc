"""What is free in the cluster, counted and put into words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pai_scheduler.wire import NodeInfo, VirtualClusterInfo

from .language import Language

#: State of a machine that does not answer.
_LOST = "LOST"


@dataclass(frozen=True, slots=True)
class GpuCount:
    """How many GPUs of a type there are, and how many nobody has."""

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
            free[gpu["type"]] += gpu["job"] is None and node["state"] != _LOST
            if not gpu["simulated"]:
                real.add(gpu["type"])
    return [GpuCount(kind, free[kind], total[kind], kind not in real) for kind in sorted(total)]


def free_line(say: Language, name: str, cluster: VirtualClusterInfo | None, nodes: Sequence[NodeInfo]) -> str:
    """Say what is free in a virtual cluster."""
    if cluster is None:
        return say("There is no virtual cluster {name}.", name=name)
    total, used = cluster["resourcesTotal"], cluster["resourcesUsed"]
    parts = [
        say("{free} of {total} CPUs", free=total["vCores"] - used["vCores"], total=total["vCores"]),
        say(
            "{free} of {total} GB memory",
            free=_gb(total["memory"] - used["memory"]),
            total=_gb(total["memory"]),
        ),
        say("{free} of {total} GPUs", free=total["GPUs"] - used["GPUs"], total=total["GPUs"]),
    ]
    comma = say(", ")
    types = comma.join(
        say("{type}: {free} of {total} free (simulated)", type=c.type, free=c.free, total=c.total)
        if c.simulated
        else say("{type}: {free} of {total} free", type=c.type, free=c.free, total=c.total)
        for c in gpu_counts(nodes)
    )
    template = (
        "Free in {name}: {parts}. GPUs of the whole cluster: {types}."
        if types
        else "Free in {name}: {parts}."
    )
    return say(template, name=name, parts=comma.join(parts), types=types)


def _gb(megabytes: float) -> str:
    return f"{megabytes / 1000:.1f}".removesuffix(".0")
