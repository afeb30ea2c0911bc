"""What a task may have of its virtual cluster's share, while it is counted which jobs might end."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .amounts import Amounts
from .demand import Demand
from .preemption import JobHolding
from .quota import Bound, QuotaAccounting


@dataclass(slots=True)
class Allowance:
    """The share of a virtual cluster, and the quota of one of its users, up to a bound."""

    quota: QuotaAccounting
    cluster: str
    user: str
    asked: Amounts
    bound: Bound
    #: the jobs of the virtual cluster that are taken off the accounts
    _out: dict[str, JobHolding] = field(default_factory=dict)

    def gpu_types(self, demand: Demand, all_types: Collection[str]) -> Collection[str] | None:
        """Return on GPUs of which types the task may run; None: it goes beyond a limit."""
        if self.quota.violation(self.cluster, self.user, self.asked, self.bound) is not None:
            return None
        types = [demand.gpu_type] if demand.gpu_type else all_types
        room = self.quota.gpu_room(self.cluster, self.bound)
        return types if room is None else [of for of in types if room.get(of, 0) >= demand.gpus]

    def may_gain(self, ends: Iterable[JobHolding]) -> bool:
        """Return whether the end of one of some jobs leaves more of the share."""
        return any(holding.virtual_cluster == self.cluster for holding in ends)

    def count(self, holding: JobHolding, sign: int) -> bool:
        """Take a job off the accounts (sign 1), or put it back (-1); tell whether it has of the share."""
        if holding.virtual_cluster != self.cluster:
            return False
        if sign > 0:
            self._out[holding.job_id] = holding
            change = self.quota.unbook
        else:
            del self._out[holding.job_id]
            change = self.quota.book
        for _, _, amounts in holding.tasks.values():
            change(holding.virtual_cluster, holding.user, amounts)
        return True

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put everything back at the end."""
        try:
            yield
        finally:
            for holding in list(self._out.values()):
                self.count(holding, -1)
