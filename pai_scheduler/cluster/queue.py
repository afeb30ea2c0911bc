"""Who is next: first in, first out within a virtual cluster; what does not fit does not block what does.

Jobs that ask for the same (their shape) wait behind one another: when the first of a shape does not fit, none
of that shape does, so a look at the queue costs as many tries as there are shapes, not as there are jobs.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Line:
    """The jobs of one shape in order of submission; removed ones are skipped when they come up."""

    heap: list[tuple[int, str]] = field(default_factory=list)
    members: dict[str, int] = field(default_factory=dict)
    blocked: bool = False

    def head(self) -> tuple[int, str] | None:
        while self.heap and self.members.get(self.heap[0][1]) != self.heap[0][0]:
            heapq.heappop(self.heap)
        return self.heap[0] if self.heap else None


class Queue:
    """The waiting jobs. An `order` is a place among all submissions: lower comes first."""

    def __init__(self) -> None:
        self._lines: dict[tuple[str, Hashable], _Line] = {}
        self._where: dict[str, tuple[str, Hashable]] = {}

    def __len__(self) -> int:
        return len(self._where)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._where

    def add(self, job_id: str, virtual_cluster: str, shape: Hashable, order: int) -> None:
        """Put a job in line."""
        key = (virtual_cluster, shape)
        line = self._lines.setdefault(key, _Line())
        line.members[job_id] = order
        heapq.heappush(line.heap, (order, job_id))
        self._where[job_id] = key

    def remove(self, job_id: str) -> None:
        """Take a job out of line; no change where it is not in line."""
        key = self._where.pop(job_id, None)
        if key is None:
            return
        line = self._lines[key]
        del line.members[job_id]
        if not line.members:
            del self._lines[key]

    def unblock(self) -> None:
        """Something became free: every shape is worth a try again."""
        for line in self._lines.values():
            line.blocked = False

    def candidates(self) -> Iterator[str]:
        """Give the jobs worth a try, first come first; after each, call `remove` or `block`."""
        heads = [
            (head, key) for key, line in self._lines.items() if not line.blocked and (head := line.head())
        ]
        heap = [(order, job_id, key) for (order, job_id), key in heads]
        # orders are unique, so keys (which need not be comparable) are never compared
        heapq.heapify(heap)
        while heap:
            _, job_id, key = heapq.heappop(heap)
            yield job_id
            line = self._lines.get(key)
            if line is not None and not line.blocked and (head := line.head()):
                heapq.heappush(heap, (*head, key))

    def block(self, job_id: str) -> None:
        """The job does not fit, nor does any other of its shape, until `unblock`."""
        self._lines[self._where[job_id]].blocked = True

    def position(self, job_id: str) -> int:
        """Give a job's place in its virtual cluster, from 1; KeyError where it is not in line."""
        virtual_cluster, _ = key = self._where[job_id]
        order = self._lines[key].members[job_id]
        return 1 + sum(
            other < order
            for (name, _), line in self._lines.items()
            if name == virtual_cluster
            for other in line.members.values()
        )

    def waiting(self, virtual_cluster: str) -> int:
        """Count the jobs in line of a virtual cluster."""
        return sum(len(line.members) for (name, _), line in self._lines.items() if name == virtual_cluster)
