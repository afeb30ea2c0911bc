"""An independent look at what a scheduler did: nothing given twice, gangs whole, nothing lost.

It knows nothing of how the scheduler decides: it takes who held what, and for how long, and adds it up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pai_scheduler.cluster.node import Node


@dataclass(frozen=True, slots=True)
class Held:
    """What one task had of a node from `begin` until `end`, in any unit of time; None: it has it still."""

    job: str
    task: int
    node: str
    cpus: int
    memory_mb: int
    gpus: tuple[int, ...]
    begin: float
    end: float | None = None
    ports: tuple[int, ...] = ()


def faults(nodes: Iterable[Node], held: Iterable[Held], gangs: Mapping[str, int]) -> list[str]:
    """Return what was wrong, a sentence each. `gangs`: how many tasks each job must have had at once."""
    by_node: dict[str, list[Held]] = defaultdict(list)
    starts: Counter[tuple[str, float]] = Counter()
    for one in held:
        by_node[one.node].append(one)
        starts[one.job, one.begin] += 1
    found = [
        f"{job} began with {count} of {gangs[job]} tasks at {begin:g}"
        for (job, begin), count in starts.items()
        if count != gangs[job]
    ]
    known = {node.name: node for node in nodes}
    for name, tasks in by_node.items():
        found += _of_node(known[name], tasks) if name in known else [f"there is no node {name}"]
    return found


def _of_node(node: Node, tasks: list[Held]) -> list[str]:
    """Go through what began and ended on a node in time; what ends is free for what begins at that moment."""
    changes = [(one.begin, 1, one) for one in tasks]
    changes += [(one.end, 0, one) for one in tasks if one.end is not None]
    changes.sort(key=lambda change: change[:2])
    there = {gpu.index for gpu in node.gpus}
    cpus = memory = 0
    owners: dict[tuple[str, int], Held] = {}
    found = []
    for at, begins, one in changes:
        sign = 1 if begins else -1
        cpus += sign * one.cpus
        memory += sign * one.memory_mb
        if begins and (cpus > node.cpus or memory > node.memory_mb):
            found.append(f"{node.name} gave more than it has at {at:g}: {cpus} CPUs, {memory} MB")
        if begins and not there.issuperset(one.gpus):
            found.append(
                f"{node.name} has no GPUs {sorted(set(one.gpus) - there)}, which {one.job} was given"
            )
        things = [("GPU", index) for index in one.gpus] + [("port", port) for port in one.ports]
        for thing in things:
            if not begins:
                owners.pop(thing, None)
                continue
            other = owners.get(thing)
            if other is not None:
                found.append(
                    f"{node.name}: {thing[0]} {thing[1]} was {other.job}'s and {one.job}'s at {at:g}"
                )
            owners[thing] = one
    return found
