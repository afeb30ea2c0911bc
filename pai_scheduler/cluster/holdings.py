"""What every job holds: by job, by virtual cluster, and in the order in which it is expected to be free."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import overload

from sortedcontainers import SortedList

from .preemption import JobHolding

#: Later than every end: who may run for ever (a notebook server) comes last.
_NEVER = 1 << 62


class Holdings(Mapping[str, JobHolding]):
    """All holdings by job id. Their orders are kept as they come, change and go, not made when asked for."""

    def __init__(self) -> None:
        self._holdings: dict[str, JobHolding] = {}
        self._by_cluster: dict[str, dict[str, JobHolding]] = {}
        self._ending: dict[str, JobHolding] = {}
        # (no dictionary: those of many jobs take milliseconds when they grow, and these would at one moment)
        self._by_end = SortedList()
        self._came = 0

    def __getitem__(self, job_id: str) -> JobHolding:
        return self._holdings[job_id]

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._holdings

    def __iter__(self) -> Iterator[str]:
        return iter(self._holdings)

    def __len__(self) -> int:
        return len(self._holdings)

    def add(self, holding: JobHolding) -> None:
        """Take in what a job holds."""
        job_id = holding.job_id
        self._holdings[job_id] = holding
        self._by_cluster.setdefault(holding.virtual_cluster, {})[job_id] = holding
        if holding.ending:
            self._ending[job_id] = holding
        self._came += 1
        self._put_in_order(holding, self._came)

    def remove(self, job_id: str) -> None:
        """Forget a job, which holds nothing any more."""
        holding = self._holdings.pop(job_id)
        del self._by_cluster[holding.virtual_cluster][job_id]
        self._ending.pop(job_id, None)
        self._by_end.remove((holding.end_order, holding))
        holding.end_order = None

    def end(self, holding: JobHolding, until: int | None = None) -> None:
        """Know that a job's tasks are being stopped; `until`: when it has ended at the latest, if known."""
        holding.ending = True
        if until is not None:
            holding.expected_end = until
        self._ending[holding.job_id] = holding
        self._reorder(holding)

    def expect(self, holding: JobHolding, end: int | None) -> None:
        """Know by when a job will have ended (ms since the epoch); None: nobody knows."""
        holding.expected_end = end
        self._reorder(holding)

    def has_any(self, job_ids: Collection[str]) -> bool:
        """Return whether one of some jobs holds something."""
        return not self._holdings.keys().isdisjoint(job_ids)

    @property
    def virtual_clusters(self) -> Collection[str]:
        """Return the virtual clusters of which a job holds something, or did."""
        return self._by_cluster.keys()

    def of_cluster(self, virtual_cluster: str) -> Collection[JobHolding]:
        """Return what the jobs of a virtual cluster hold."""
        return self._by_cluster.get(virtual_cluster, {}).values()

    @property
    def ending(self) -> Collection[JobHolding]:
        """Return the jobs that are being stopped, in the order in which that began."""
        return self._ending.values()

    def by_expected_end(self) -> Sequence[JobHolding]:
        """Return all by when they will have ended; a view of what is known, not a copy.

        Those being stopped come first, then who may be preempted before who must not; of equals the longest
        running.
        """
        return _Ordered(self._by_end)

    def _reorder(self, holding: JobHolding) -> None:
        before = holding.end_order
        if before is not None:
            self._by_end.remove((before, holding))
            self._put_in_order(holding, before[-1])

    def _put_in_order(self, holding: JobHolding, came: int) -> None:
        end = _NEVER if holding.expected_end is None else holding.expected_end
        order = not holding.ending, not holding.preemptible, end, holding.since, came
        holding.end_order = order
        # (no two orders are the same, so that holdings are not compared)
        self._by_end.add((order, holding))


class _Ordered(Sequence[JobHolding]):
    """The holdings of a list of orders and holdings."""

    __slots__ = ("_ordered",)

    def __init__(self, ordered: SortedList) -> None:
        self._ordered = ordered

    def __len__(self) -> int:
        return len(self._ordered)

    def __iter__(self) -> Iterator[JobHolding]:
        return (holding for _, holding in self._ordered)

    @overload
    def __getitem__(self, place: int) -> JobHolding: ...

    @overload
    def __getitem__(self, place: slice) -> list[JobHolding]: ...

    def __getitem__(self, place: int | slice) -> JobHolding | list[JobHolding]:
        if isinstance(place, slice):
            return [holding for _, holding in self._ordered[place]]
        found: JobHolding = self._ordered[place][1]
        return found
