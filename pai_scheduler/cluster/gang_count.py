"""Counts how many equal tasks have room, while what is free on some nodes changes and changes back.

To find which jobs must end for a gang, they are lifted off the cluster and put back some dozens of times.
Here only the nodes that have changed are counted anew, and the cluster's index is left as it is meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable

from .demand import Demand
from .free_resources import FreeNodeResources
from .placement import Cluster


class GangCount:
    """A gang of `wanted` tasks like `demand`, one that `Cluster.counts_exactly`.

    Say `changing` before something changes.
    """

    def __init__(self, cluster: Cluster, demand: Demand, wanted: int) -> None:
        self._uses, self._demand, self._wanted = cluster.uses, demand, wanted
        self._count = cluster.count_room(demand)
        #: by node, what of the count it has
        self._counted: dict[str, int] = {}
        self._changed: set[str] = set()

    def changing(self, nodes: Iterable[str]) -> None:
        """Know that something is about to be taken or given back on some nodes."""
        for node in nodes:
            if node in self._changed:
                continue
            if node not in self._counted:
                use = self._uses.get(node)
                if use is None:  # it is gone, and its jobs still run
                    continue
                self._counted[node] = copies_on(use, self._demand)
            self._changed.add(node)

    def fits(self) -> bool:
        """Return whether all tasks have room now."""
        for node in self._changed:
            now = copies_on(self._uses[node], self._demand)
            self._count += now - self._counted[node]
            self._counted[node] = now
        self._changed.clear()
        return self._count >= self._wanted


def copies_on(use: FreeNodeResources, demand: Demand) -> int:
    """Count how many tasks of a kind have room on a node; GPUs of each type are counted apart."""
    if not use.node.ready or use.cpus < 0 or use.memory_mb < 0 or use.storage_gb < 0:
        return 0
    most = []
    if demand.cpus:
        most.append(use.cpus // demand.cpus)
    if demand.memory_mb:
        most.append(use.memory_mb // demand.memory_mb)
    if demand.storage_gb:
        most.append(use.storage_gb // demand.storage_gb)
    if demand.gpus:
        types = (demand.gpu_type,) if demand.gpu_type else use.gpus
        most.append(sum([len(use.gpus.get(gpu_type, ())) // demand.gpus for gpu_type in types]))
    return min(most)
