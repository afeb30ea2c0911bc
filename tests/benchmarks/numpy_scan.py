"""The peer of the planner: a plain scan in NumPy, of all nodes, for the best fit of one job.

No queue, no gangs, no shares, no ports and no single GPUs: how much each node has left, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.resources import Demand


class NumpyScan:
    """What nodes have left, in arrays."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._cpus = np.array([node.cpus for node in nodes], dtype=np.int32)
        self._memory = np.array([node.memory_mb for node in nodes], dtype=np.int32)
        self._gpus = np.array([len(node.gpus) for node in nodes], dtype=np.int32)

    def place(self, demand: Demand) -> int | None:
        """Give a task the node on which the fewest GPUs are left; return its number, None where none fits."""
        fits = self._gpus >= demand.gpus
        fits &= self._cpus >= demand.cpus
        fits &= self._memory >= demand.memory_mb
        numbers = np.flatnonzero(fits)
        if not len(numbers):
            return None
        number = int(numbers[self._gpus[numbers].argmin()])
        self._add(number, demand, -1)
        return number

    def release(self, number: int, demand: Demand) -> None:
        """Take back what a task had."""
        self._add(number, demand, 1)

    def _add(self, number: int, demand: Demand, sign: int) -> None:
        self._cpus[number] += sign * demand.cpus
        self._memory[number] += sign * demand.memory_mb
        self._gpus[number] += sign * demand.gpus
