"""The virtual clusters: what there is of them, and what administrators change, one change at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.fair_share import UserShare
from pai_scheduler.cluster.feasibility import Available, available
from pai_scheduler.cluster.quota import DEFAULT, NotEnoughError, assign, difference, remove
from pai_scheduler.core.events import SharesChanged
from pai_scheduler.core.model import Job
from pai_scheduler.core.queries import VirtualClusterUse, virtual_cluster_uses
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, conflicting_virtual_cluster, forbidden, no_virtual_cluster

from .admission import Admission
from .context import ServiceContext


@dataclass(frozen=True, slots=True)
class WantedShare:
    """Desired share of a virtual cluster. Per cent; None: as it is (new: at most all, open to everybody)."""

    capacity: float
    max_capacity: float | None = None
    users: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None


class VirtualClusters:
    """Lists virtual clusters for everybody, changes them for administrators, durably before the answer."""

    def __init__(self, context: ServiceContext, admission: Admission) -> None:
        self._store, self._reader, self._writer = context.store, context.reader, context.writer
        self._cluster, self._now, self._admission = context.cluster, context.clock, admission
        self._one_at_a_time = asyncio.Lock()

    async def uses(self) -> list[VirtualClusterUse]:
        """List the virtual clusters, and what is taken of them."""
        counts = await self._reader.read(self._store.count_by_virtual_cluster)
        return virtual_cluster_uses(self._writer.core, self._cluster.virtual_clusters.values(), counts)

    def shows_holder(self, principal: Principal, job: Job) -> bool:
        """Return whether a caller is told who owns a job that holds GPUs (`holdersVisible`)."""
        cluster = self._cluster.virtual_clusters.get(job.spec.virtual_cluster)
        return principal.may_read(job.user) if cluster is None else principal.sees_holder(job.user, cluster)

    def used_lately(self, user: Principal) -> dict[str, UserShare]:
        """Return what a user has used of each virtual cluster whose users share by that; nobody: nothing."""
        return self._writer.core.state.usage.used_lately(user.name, self._now()) if user.name else {}

    def open_to(self, user: Principal) -> list[str]:
        """Name the virtual clusters that a user may use, stopped ones too."""
        return [cluster.name for cluster in self._cluster.virtual_clusters.values() if user.may_use(cluster)]

    def available_to(self, user: Principal, *, borrowing: bool) -> dict[str, Available]:
        """Return what a user's next job could have in each virtual cluster that is open to the user.

        `borrowing`: also what the other virtual clusters do not use.
        """
        state = self._writer.core.state
        return {name: available(state, user.name, name, preemptible=borrowing) for name in self.open_to(user)}

    async def set(self, principal: Principal, name: str, wanted: WantedShare) -> bool:
        """Make a virtual cluster, or change it; True: it is new."""
        _check_admin(principal)
        _check_not_default(name)
        async with self._one_at_a_time:
            clusters = self._cluster.virtual_clusters
            old = clusters.get(name)
            if old is None:
                _check_no_twin(name, clusters)
            try:
                changed = assign(clusters, _wanted(name, wanted, old))
            except NotEnoughError as error:
                message = msg(
                    "There is not enough quota for {name}: it needs {wanted:g} per cent more, and only "
                    "{free:g} are free or of virtual cluster default. Take it from another virtual cluster "
                    "first.",
                    name=name,
                    wanted=error.wanted,
                    free=error.free,
                )
                raise RequestError(403, "NoEnoughQuotaError", message) from None
            await self._keep(clusters, changed)
            return old is None

    async def delete(self, principal: Principal, name: str) -> None:
        """Delete a virtual cluster that has no jobs left; its share goes to `default`."""
        _check_admin(principal)
        _check_not_default(name)
        async with self._one_at_a_time:
            clusters = self._cluster.virtual_clusters
            _check_known(name, clusters)
            if jobs := self._admission.jobs_in(name):
                message = msg(
                    "Virtual cluster {name} has jobs that have not ended ({count}). Stop it, so that no more "
                    "come, wait for them or stop them, then delete it.",
                    name=name,
                    count=jobs,
                )
                raise RequestError(403, "RemoveRunningVcError", message)
            self._cluster.leaving = name
            try:
                await self._keep(clusters, remove(clusters, name))
            finally:
                self._cluster.leaving = None

    async def set_stopped(self, principal: Principal, name: str, stopped: bool) -> None:
        """Stop a virtual cluster, so that what runs goes on and nothing else starts; or start it again."""
        _check_admin(principal)
        _check_not_default(name)
        async with self._one_at_a_time:
            clusters = self._cluster.virtual_clusters
            _check_known(name, clusters)
            await self._keep(clusters, {**clusters, name: replace(clusters[name], stopped=stopped)})

    async def _keep(self, old: Mapping[str, VirtualCluster], new: Mapping[str, VirtualCluster]) -> None:
        changes = difference(old, new)
        if changes:
            await self._writer.request(SharesChanged(self._now(), tuple(new.values()), changes))


def _wanted(name: str, wanted: WantedShare, old: VirtualCluster | None) -> VirtualCluster:
    now = old or VirtualCluster(name, 0.0)
    most = now.max_capacity if wanted.max_capacity is None else wanted.max_capacity
    return replace(
        now,
        capacity=wanted.capacity,
        max_capacity=max(most, wanted.capacity),
        users=now.users if wanted.users is None else wanted.users,
        groups=now.groups if wanted.groups is None else wanted.groups,
    )


def _check_admin(principal: Principal) -> None:
    if not principal.admin:
        raise forbidden(msg("Only an administrator may change virtual clusters."))


def _check_not_default(name: str) -> None:
    if name == DEFAULT:
        message = msg(
            "Virtual cluster default cannot be changed, stopped or deleted: it has what the others leave."
        )
        raise forbidden(message)


def _check_known(name: str, clusters: Mapping[str, VirtualCluster]) -> None:
    if name not in clusters:
        raise no_virtual_cluster(name, sorted(clusters))


def _check_no_twin(name: str, clusters: Mapping[str, VirtualCluster]) -> None:
    for other in clusters:
        if other.casefold() == name.casefold():
            raise conflicting_virtual_cluster(
                msg(
                    "There is a virtual cluster {other} already, which nobody would tell from {name}. "
                    "Choose another name.",
                    other=other,
                    name=name,
                )
            )
