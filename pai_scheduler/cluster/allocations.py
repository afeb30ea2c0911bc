"""Allocations by job, virtual cluster and expected end, and those beyond a guarantee."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import overload

from sortedcontainers import SortedList

from .preemption import JobHolding
from .resources import Amounts

# What every job holds: by job, by virtual cluster, and in the order in which it is expected to be free.

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


# Which jobs hold what goes beyond their virtual cluster's guarantee, kept from one question to the next.
#
# Jobs are counted against the guarantee from the oldest on; one that goes beyond it borrows, and is not
# counted. They are in groups by age. A group remembers with how much left before it its own answer stays
# the same, so that the end of one job costs a look at the jobs of its group, and one at each other group.

#: Jobs of a group, before it is divided.
_MOST = 48

#: After so many changes it is found out anew who borrows, so that no question meets many at once.
_MANY_CHANGES = 16

#: When a job got what it holds, and its id: older comes first.
_Age = tuple[int, str]


class _Group:
    """Jobs of about one age, and who of them borrows."""

    __slots__ = ("counted", "enough", "jobs", "known", "over", "too_much")

    def __init__(self, jobs: list[tuple[_Age, JobHolding]]) -> None:
        self.jobs = jobs
        #: the rest is worth something
        self.known = False
        #: what its jobs that do not borrow hold together
        self.counted: Counter[str] = Counter()
        #: the same is found with at least so much of each resource left, and of these with less than so much
        self.enough: dict[str, int] = {}
        self.too_much: dict[str, int] = {}
        self.over: list[JobHolding] = []

    @property
    def last(self) -> _Age:
        """Return the age of its youngest job."""
        return self.jobs[-1][0]

    def stays(self, left: Amounts) -> bool:
        """Return whether the same is found with so much left as was last time."""
        return all(left.get(key, 0) >= least for key, least in self.enough.items()) and all(
            left.get(key, 0) < most for key, most in self.too_much.items()
        )

    def find(self, left: Amounts) -> None:
        """Find who borrows with so much left."""
        counted: Counter[str] = Counter()
        enough: dict[str, int] = {}
        too_much: dict[str, int] = {}
        over = []
        for _, holding in self.jobs:
            needs = {key: counted[key] + count for key, count in holding.amounts.items()}
            beyond = [key for key, need in needs.items() if need > left.get(key, 0)]
            if not beyond:
                for key, need in needs.items():
                    counted[key] = need
                    enough[key] = max(need, enough.get(key, need))
                continue
            over.append(holding)
            # it borrows as long as one of these is lacking
            if not any(too_much.get(key, needs[key] + 1) <= needs[key] for key in beyond):
                key = max(beyond, key=lambda key: (needs[key] - left.get(key, 0)) / (needs[key] or 1))
                too_much[key] = needs[key]
        self.counted, self.enough, self.too_much, self.over = counted, enough, too_much, over
        self.known = True


class _VirtualCluster:
    """The jobs of one virtual cluster."""

    def __init__(self) -> None:
        #: what those hold that must not be preempted, which counts first: by job, and all together
        self._firm: dict[str, Amounts] = {}
        self._firm_together: Counter[str] = Counter()
        self._groups: list[_Group] = []
        self._over: list[JobHolding] | None = None
        #: what has come since somebody asked: where there is no limit, nobody ever does
        self._new: dict[str, JobHolding] = {}
        #: so much has changed since
        self._changes = 0

    def add(self, holding: JobHolding, limits: Amounts | None) -> None:
        """Count a job from now on."""
        self._new[holding.job_id] = holding
        self._changed(limits)

    def change(self, holding: JobHolding, limits: Amounts | None, *, here: bool) -> None:
        """Know that a job holds less by now; not `here`: it is not counted any more."""
        if holding.job_id not in self._new:
            self._set(holding, here=here)
        elif not here:
            del self._new[holding.job_id]
        self._changed(limits)

    def _changed(self, limits: Amounts | None) -> None:
        self._over = None
        self._changes += 1
        if limits is not None and self._changes >= _MANY_CHANGES:
            self.over(limits)

    def _set(self, holding: JobHolding, *, here: bool) -> None:
        if not holding.preemptible:
            self._firm_together.subtract(self._firm.pop(holding.job_id, {}))
            if here:
                self._firm[holding.job_id] = dict(holding.amounts)
                self._firm_together.update(self._firm[holding.job_id])
            return
        age = holding.since, holding.job_id
        place = bisect_left(self._groups, age, key=lambda group: group.last)
        if place == len(self._groups):
            if not here:
                return
            if not place:
                self._groups.append(_Group([]))
                place = 1
            place -= 1
        group = self._groups[place]
        within = bisect_left(group.jobs, age, key=_age_of)
        found = within < len(group.jobs) and group.jobs[within][0] == age
        if here and not found:
            insort(group.jobs, (age, holding), key=_age_of)
        elif found and not here:
            del group.jobs[within]
        elif not found:
            return
        group.known = False
        if not group.jobs:
            del self._groups[place]
        elif len(group.jobs) > _MOST:
            # (most come as the youngest: what is full stays full)
            part = _MOST * 3 // 4
            self._groups[place : place + 1] = [_Group(group.jobs[:part]), _Group(group.jobs[part:])]

    def over(self, limits: Amounts) -> list[JobHolding]:
        """List who borrows, oldest first."""
        if self._over is None:
            self._changes = 0
            for holding in self._new.values():
                self._set(holding, here=True)
            self._new.clear()
            left = Counter(limits)
            left.subtract(self._firm_together)
            self._over = []
            for group in self._groups:
                if not (group.known and group.stays(left)):
                    group.find(left)
                for key, count in group.counted.items():
                    left[key] -= count
                self._over += group.over
        return self._over

    def forget(self) -> None:
        """Limits have changed."""
        self._over = None


class Borrowing:
    """Borrowing jobs by virtual cluster. Told of each job that holds something and is not being stopped."""

    def __init__(self) -> None:
        self._clusters: dict[str, _VirtualCluster] = {}

    def add(self, holding: JobHolding, limits: Amounts | None = None) -> None:
        """Count a job. `limits`: the guarantee of its virtual cluster, where there is one to go beyond."""
        if not holding.ending:
            if holding.virtual_cluster not in self._clusters:
                self._clusters[holding.virtual_cluster] = _VirtualCluster()
            self._clusters[holding.virtual_cluster].add(holding, limits)

    def change(self, holding: JobHolding, limits: Amounts | None = None) -> None:
        """Know that a job holds less by now; nothing, or it is being stopped: it does not count any more."""
        known = self._clusters.get(holding.virtual_cluster)
        if known is not None:
            known.change(holding, limits, here=bool(holding.tasks) and not holding.ending)

    def over(self, virtual_cluster: str, limits: Amounts) -> list[JobHolding]:
        """List the jobs of a virtual cluster that hold what goes beyond its guarantee, oldest first.

        `limits`: the guarantee; of what it does not name, nothing is guaranteed. After another one, `forget`.
        """
        known = self._clusters.get(virtual_cluster)
        return [] if known is None else known.over(limits)

    def forget(self) -> None:
        """Guarantees have changed: what was found may be wrong."""
        for known in self._clusters.values():
            known.forget()


def _age_of(job: tuple[_Age, JobHolding]) -> _Age:
    return job[0]
