"""What an administrator's change of one virtual cluster means for the guarantees of the others; pure.

As OpenPAI v0.14 has it: a cluster that grows takes what no cluster has, then from `default`; one that
shrinks or goes gives back to `default`. So the guarantees never add up to more than 100 per cent, and no
other's than `default`'s changes unasked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from pai_scheduler.i18n import msg

from .definition import VirtualCluster
from .definition_fields import DefinitionError

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
