"""Shares of virtual clusters and quotas of users: what is held, what may be, and changes of both."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import Enum, auto

from pai_scheduler.i18n import msg

from .config_fields import DefinitionError
from .definition import VirtualCluster
from .node import Node
from .resources import ANY_GPU, CPUS, Amounts, gpus_in, is_gpu, of_nodes

# Who holds how much, and how much they may: the shares of virtual clusters, and users' quotas.
#
# A virtual cluster is guaranteed `capacity` per cent of every resource, rounded down, and may hold up to
# `maxCapacity` per cent of it; a hundred per cent is no limit at all (job-contract.md, section 3).


class Bound(Enum):
    """Up to which share: what is guaranteed, or what may be borrowed on top of it."""

    GUARANTEE = auto()
    MAXIMUM = auto()

    # (there is one of each: no need to hash its name, as an Enum does)
    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True)
class QuotaViolation:
    """A share or quota that a request goes beyond. `user`: it is that user's quota of GPUs.

    `resource` is a key of an amount; `used` includes what is kept for jobs that come first.
    """

    virtual_cluster: str
    bound: Bound
    resource: str
    asked: int
    used: int
    limit: int
    user: str | None = None


class QuotaAccounting:
    """The accounts of all virtual clusters and their users."""

    def __init__(self, nodes: Iterable[Node], clusters: Iterable[VirtualCluster]) -> None:
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._user_gpus: Counter[tuple[str, str]] = Counter()
        self._total: Amounts = of_nodes(nodes)
        self.clusters: Mapping[str, VirtualCluster] = {cluster.name: cluster for cluster in clusters}
        self._limits: dict[tuple[str, Bound], Mapping[str, int] | None] = {}

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        """Replace the nodes of which the shares are parts."""
        self._total = of_nodes(nodes)
        self._limits.clear()

    def set_clusters(self, clusters: Iterable[VirtualCluster]) -> None:
        """Replace the virtual clusters, and with them the shares."""
        self.clusters = {cluster.name: cluster for cluster in clusters}
        self._limits.clear()

    def book(self, cluster: str, user: str, amounts: Amounts) -> None:
        """Count what somebody was given, or what is kept for them."""
        used, gpus = self._used[cluster], 0
        for key, count in amounts.items():
            used[key] += count
            if key.startswith(ANY_GPU):
                gpus += count
        if gpus:
            self._user_gpus[cluster, user] += gpus

    def unbook(self, cluster: str, user: str, amounts: Amounts) -> None:
        """Undo `book`."""
        used, gpus = self._used[cluster], 0
        for key, count in amounts.items():
            left = used[key] - count
            if left:
                used[key] = left
            else:
                del used[key]
            if key.startswith(ANY_GPU):
                gpus += count
        if gpus:
            self._user_gpus[cluster, user] -= gpus
            if not self._user_gpus[cluster, user]:
                del self._user_gpus[cluster, user]

    def used(self, cluster: str) -> Amounts:
        """Return what a virtual cluster's jobs hold, and what is kept for them."""
        return self._used.get(cluster, {})

    def user_gpus(self, cluster: str, user: str) -> int:
        """Count the GPUs that a user's jobs hold in a virtual cluster, and that are kept for them."""
        return self._user_gpus[cluster, user]

    def limits(self, cluster: str, bound: Bound) -> Amounts | None:
        """Return how much a virtual cluster may hold; None: no limit. One that is gone may hold nothing."""
        key = (cluster, bound)
        if key not in self._limits:
            self._limits[key] = self._compute(cluster, bound)
        return self._limits[key]

    def guaranteed(self, cluster: str) -> Amounts:
        """Return how much a virtual cluster may hold whatever others do."""
        limits = self.limits(cluster, Bound.GUARANTEE)
        return self._total if limits is None else limits

    def is_unlimited(self, cluster: str, bound: Bound) -> bool:
        """Return whether a virtual cluster and its users may hold whatever there is."""
        known = self.clusters.get(cluster)
        return (
            known is not None
            and not known.stopped
            and known.gpus_per_user is None
            and self.limits(cluster, bound) is None
        )

    def gpu_room(self, cluster: str, bound: Bound, *, empty: bool = False) -> Mapping[str, int] | None:
        """Return how many GPUs more a virtual cluster may hold, by type; None: no limit.

        With `empty`: if it held nothing.
        """
        limits = self.limits(cluster, bound)
        if limits is None:
            return None
        used: Amounts = {} if empty else self.used(cluster)
        return {
            key.removeprefix(ANY_GPU): max(0, limit - used.get(key, 0))
            for key, limit in limits.items()
            if is_gpu(key)
        }

    def violation(self, cluster: str, user: str, asked: Amounts, bound: Bound) -> QuotaViolation | None:
        """Return which limit a request goes beyond, on top of what is used; None: it is within all."""
        known = self.clusters.get(cluster)
        if known is not None and known.stopped:
            return QuotaViolation(
                cluster, bound, CPUS, asked.get(CPUS, 0), self.used(cluster).get(CPUS, 0), 0
            )
        quota = known is not None and known.gpus_per_user is not None
        over_quota = quota and self._over_quota(cluster, user, asked, bound, self._user_gpus[cluster, user])
        return over_quota or self._over(cluster, asked, bound, self.used(cluster))

    def never_within(self, cluster: str, user: str, asked: Amounts, bound: Bound) -> QuotaViolation | None:
        """Return which limit a request goes beyond even when nobody holds anything."""
        return self._over_quota(cluster, user, asked, bound, 0) or self._over(cluster, asked, bound, {})

    def is_over_guarantee(self, cluster: str) -> bool:
        """Return whether a virtual cluster borrows."""
        limits = self.limits(cluster, Bound.GUARANTEE)
        if limits is None:
            return False
        return any(count > limits.get(key, 0) for key, count in self.used(cluster).items() if count)

    def _over_quota(
        self, cluster: str, user: str, asked: Amounts, bound: Bound, used: int
    ) -> QuotaViolation | None:
        known = self.clusters.get(cluster)
        quota = known.gpus_per_user if known is not None else None
        gpus = gpus_in(asked)
        if quota is None or not gpus or used + gpus <= quota:
            return None
        return QuotaViolation(cluster, bound, ANY_GPU, gpus, used, quota, user)

    def _over(self, cluster: str, asked: Amounts, bound: Bound, used: Amounts) -> QuotaViolation | None:
        limits = self.limits(cluster, bound)
        if limits is None:
            return None
        for key, count in asked.items():
            if not count:
                continue
            if key == ANY_GPU:
                limit, in_use = _of_all_types(limits, used)
            else:
                limit, in_use = limits.get(key, 0), used.get(key, 0)
            if in_use + count > limit:
                return QuotaViolation(cluster, bound, key, count, in_use, limit)
        return None

    def _compute(self, cluster: str, bound: Bound) -> Mapping[str, int] | None:
        known = self.clusters.get(cluster)
        if known is None:
            return {}
        share = known.capacity if bound is Bound.GUARANTEE else known.max_capacity
        if share >= 100:
            return None
        # a share may be 33.3: binary fractions must not take away what the decimal ones give
        return {key: int(total * share / 100 + 1e-9) for key, total in self._total.items()}


def _of_all_types(limits: Amounts, used: Amounts) -> tuple[int, int]:
    """Return the limit on GPUs of whichever type, and how many of it are used up (or beyond its type's)."""
    types = [key for key in limits if is_gpu(key)]
    return sum(limits[key] for key in types), sum(min(used.get(key, 0), limits[key]) for key in types)


# What an administrator's change of one virtual cluster means for the guarantees of the others; pure.
#
# As OpenPAI v0.14 has it: a cluster that grows takes what no cluster has, then from `default`; one that
# shrinks or goes gives back to `default`. So the guarantees never add up to more than 100 per cent, and no
# other's than `default`'s changes unasked.

DEFAULT = "default"

_ALL = Decimal(100)


class NotEnoughError(Exception):
    """A guarantee is wanted that is not there. Per cent: `wanted` more, of which `free` can be had."""

    def __init__(self, wanted: float, free: float) -> None:
        super().__init__(f"{wanted:g} per cent wanted, {free:g} free")
        self.wanted, self.free = wanted, free


def assign(clusters: Mapping[str, VirtualCluster], wanted: VirtualCluster) -> dict[str, VirtualCluster]:
    """Return the clusters with `wanted` (not `default`); NotEnoughError where its share is not free."""
    old = clusters.get(wanted.name)
    more = _exact(wanted.capacity) - (_exact(old.capacity) if old else 0)
    unassigned = max(Decimal(0), _ALL - _sum(clusters.values()))
    default = clusters[DEFAULT]
    if more > unassigned + _exact(default.capacity):
        raise NotEnoughError(float(more), float(unassigned + _exact(default.capacity)))
    taken = more if more < 0 else max(Decimal(0), more - unassigned)
    return {**clusters, DEFAULT: _changed(default, -taken), wanted.name: wanted}


def remove(clusters: Mapping[str, VirtualCluster], name: str) -> dict[str, VirtualCluster]:
    """Return the clusters without `name` (not `default`)."""
    gone = clusters[name]
    left = {key: cluster for key, cluster in clusters.items() if key != name}
    return {**left, DEFAULT: _changed(clusters[DEFAULT], _exact(gone.capacity))}


def overlay(
    file: Mapping[str, VirtualCluster], changes: Mapping[str, VirtualCluster | None]
) -> dict[str, VirtualCluster]:
    """Return the clusters of the file as administrators changed them (None: deleted).

    The file may have changed since: what is now too much is taken from `default`; DefinitionError where that
    is not enough.
    """
    clusters = {**file, **{name: cluster for name, cluster in changes.items() if cluster is not None}}
    clusters = {name: cluster for name, cluster in clusters.items() if changes.get(name, cluster) is not None}
    violation = _sum(clusters.values()) - _ALL
    default = clusters[DEFAULT]
    if violation <= Decimal("1e-6"):
        return clusters
    if violation > _exact(default.capacity):
        message = msg(
            "Together with those that administrators have set, the capacities add up to {total:g} per cent; "
            "they may add up to 100 at most.",
            total=float(violation + _ALL),
        )
        raise DefinitionError("virtualClusters", message)
    return {**clusters, DEFAULT: _changed(default, -violation)}


def difference(
    old: Mapping[str, VirtualCluster], new: Mapping[str, VirtualCluster]
) -> dict[str, VirtualCluster | None]:
    """Return what changed; None for a cluster that is gone."""
    gone: dict[str, VirtualCluster | None] = dict.fromkeys(old.keys() - new.keys())
    return gone | {name: cluster for name, cluster in new.items() if old.get(name) != cluster}


def _changed(cluster: VirtualCluster, more: Decimal) -> VirtualCluster:
    capacity = float(_exact(cluster.capacity) + more)
    return replace(cluster, capacity=capacity, max_capacity=max(cluster.max_capacity, capacity))


def _sum(clusters: Iterable[VirtualCluster]) -> Decimal:
    return sum((_exact(cluster.capacity) for cluster in clusters), Decimal(0))


def _exact(per_cent: float) -> Decimal:
    """Take a per cent as a person wrote it: 0.1 is a tenth."""
    return Decimal(repr(per_cent))
