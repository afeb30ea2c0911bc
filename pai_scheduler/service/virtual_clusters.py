"""What administrators do to the virtual clusters: durable before the answer, and one change at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.redistribution import DEFAULT, NotEnoughError, assign, difference, remove
from pai_scheduler.core.events import Event, SharesChanged
from pai_scheduler.job.messages import msg
from pai_scheduler.rest.errors import RequestError, conflicting_virtual_cluster, forbidden, no_virtual_cluster


@dataclass(frozen=True, slots=True)
class WantedShare:
    """What a virtual cluster is to be. Per cent; None: as it is (new: at most all, open to everybody)."""

    capacity: float
    max_capacity: float | None = None
    users: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None


class Administration:
    """Changes virtual clusters.

    `clusters` gives them as they are, `jobs_in` counts a cluster's jobs that have not ended, `request` makes
    an event durable, `clock` gives ms since the epoch. Who may ask is the caller's business.
    """

    def __init__(
        self,
        clusters: Callable[[], Mapping[str, VirtualCluster]],
        jobs_in: Callable[[str], int],
        request: Callable[[Event], Awaitable[None]],
        clock: Callable[[], int],
    ) -> None:
        self._clusters = clusters
        self._jobs_in = jobs_in
        self._request = request
        self._now = clock
        self._one_at_a_time = asyncio.Lock()
        #: a cluster that is about to be gone takes no more jobs
        self._leaving: str | None = None

    def is_leaving(self, name: str) -> bool:
        """Return whether a virtual cluster is being deleted."""
        return name == self._leaving

    async def set(self, name: str, wanted: WantedShare) -> bool:
        """Make a virtual cluster, or change it; True: it is new."""
        _check_not_default(name)
        async with self._one_at_a_time:
            clusters = self._clusters()
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

    async def delete(self, name: str) -> None:
        """Delete a virtual cluster that has no jobs left; its share goes to `default`."""
        _check_not_default(name)
        async with self._one_at_a_time:
            clusters = self._clusters()
            _check_known(name, clusters)
            if jobs := self._jobs_in(name):
                message = msg(
                    "Virtual cluster {name} has jobs that have not ended ({count}). Stop it, so that no more "
                    "come, wait for them or stop them, then delete it.",
                    name=name,
                    count=jobs,
                )
                raise RequestError(403, "RemoveRunningVcError", message)
            self._leaving = name
            try:
                await self._keep(clusters, remove(clusters, name))
            finally:
                self._leaving = None

    async def set_stopped(self, name: str, stopped: bool) -> None:
        """Stop a virtual cluster, so that what runs goes on and nothing else starts; or start it again."""
        _check_not_default(name)
        async with self._one_at_a_time:
            clusters = self._clusters()
            _check_known(name, clusters)
            await self._keep(clusters, {**clusters, name: replace(clusters[name], stopped=stopped)})

    async def _keep(self, old: Mapping[str, VirtualCluster], new: Mapping[str, VirtualCluster]) -> None:
        changes = difference(old, new)
        if changes:
            await self._request(SharesChanged(self._now(), tuple(new.values()), changes))


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
