"""What one user's next job could have in a virtual cluster: now, and if nobody held anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .amounts import CPUS, MEMORY, STORAGE, Amounts, gpu_key, is_gpu
from .packing import Room
from .quota import Bound
from .state import SchedulerState


@dataclass(frozen=True, slots=True)
class Available:
    """Amounts by the keys of `amounts`. `free`: now, in all; `most`: if nobody held anything.

    `free_on_one`, `most_on_one`: what one machine has of that at most, of each resource by itself.
    """

    free: Amounts
    most: Amounts
    free_on_one: Amounts
    most_on_one: Amounts


def available(state: SchedulerState, user: str, virtual_cluster: str, *, preemptible: bool) -> Available:
    """Return what there is for a user's job, within the share of the virtual cluster and the user's quota.

    What is kept for jobs that wait is not free; what could be had by stopping borrowers is not, either.
    """
    quotas = state.quota_accounting
    known = quotas.clusters.get(virtual_cluster)
    bound = Bound.MAXIMUM if preemptible else Bound.GUARANTEE
    limits = quotas.limits(virtual_cluster, bound)
    used = quotas.used(virtual_cluster)
    quota = known.gpus_per_user if known is not None else None
    quota_left = None if quota is None else max(0, quota - quotas.user_gpus(virtual_cluster, user))

    def within(amounts: Amounts, held: Amounts, gpus: int | None) -> dict[str, int]:
        return {
            key: _least(
                count,
                None if limits is None else max(0, limits.get(key, 0) - held.get(key, 0)),
                gpus if is_gpu(key) else None,
            )
            for key, count in amounts.items()
        }

    free, empty = state.cluster.rooms(), state.cluster.empty_rooms
    if known is None or known.stopped:
        free = []
    return Available(
        within(_with_types_of(empty, _sum(free)), used, quota_left),
        within(_sum(empty), {}, quota),
        within(_with_types_of(empty, _largest(free)), used, quota_left),
        within(_largest(empty), {}, quota),
    )


def _least(count: int, *limits: int | None) -> int:
    return min(max(0, count), *(limit for limit in limits if limit is not None), count)


def _amounts(room: Room) -> Mapping[str, int]:
    gpus = {gpu_key(gpu_type): count for gpu_type, count in room.gpus.items()}
    return {CPUS: room.cpus, MEMORY: room.memory_mb, STORAGE: room.storage_gb, **gpus}


def _sum(rooms: Iterable[Room]) -> Counter[str]:
    total: Counter[str] = Counter()
    for room in rooms:
        total.update(_amounts(room))
    return total


def _largest(rooms: Iterable[Room]) -> Counter[str]:
    total: Counter[str] = Counter()
    for room in rooms:
        total |= Counter(_amounts(room))
    return total


def _with_types_of(empty: Iterable[Room], amounts: Mapping[str, int]) -> dict[str, int]:
    """Name every resource that there is, also where nothing of it is free."""
    return {**dict.fromkeys(_sum(empty), 0), **amounts}
