"""In which order jobs wait: whose turn comes first, and how somebody moves a job within its queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.dispatch import Dispatcher
from pai_scheduler.i18n import Message, msg

from .events import Reordered
from .model import Job

#: For so long a job without a time limit is taken to run, where shorter jobs come first.
ASSUMED_RUN_SECONDS = 7 * 24 * 3600


def turn(cluster: VirtualCluster | None, run_seconds: int | None, submitted: int) -> int | None:
    """Return when a job's turn comes (ms), from its time limit; None: jobs wait in the order of submission.

    As it never changes, nobody who comes after it can get before a job for ever.
    """
    if cluster is None or not cluster.shorter_first:
        return None
    seconds = ASSUMED_RUN_SECONDS if run_seconds is None else run_seconds
    return submitted + 1000 * cluster.shorter_first * seconds


def reorder(jobs: Mapping[str, Job], dispatcher: Dispatcher, job: Job, event: Reordered) -> list[Job]:
    """Change the orders and priorities that make a job's new rank; return the jobs that were changed.

    Those between its old and its new place move up or down by one: each gets its neighbour's order.
    """
    changed: dict[str, Job] = {}
    # (where users take turns, nobody moves a job past another user's)
    owner_only = event.owner_only or dispatcher.usage.shares(job.spec.virtual_cluster)
    if event.priority is not None and job.present_priority != event.priority:
        job.priority = event.priority
        changed[job.id] = job
    if event.place is None or job.id not in dispatcher.queue:
        return list(changed.values())
    ids = dispatcher.queue.in_order(job.spec.virtual_cluster)
    among = [
        other
        for other in map(jobs.__getitem__, ids)
        if other.id == job.id or (other.rank[0] == job.rank[0] and (not owner_only or other.user == job.user))
    ]
    # where the job's priority has just changed, it is not among its like yet
    among.sort(key=lambda other: other.rank)
    old, new = among.index(job), min(max(event.place, 1), len(among)) - 1
    if new == 0 and not owner_only and old > 0:
        job.order = _order_before(among[0], jobs.values())
        changed[job.id] = job
        return list(changed.values())
    low, high = min(old, new), max(old, new)
    orders = [other.order for other in among[low : high + 1]]
    among.insert(new, among.pop(old))
    for other, order in zip(among[low : high + 1], orders, strict=True):
        if other.order != order:
            other.order = order
            changed[other.id] = other
    return list(changed.values())


def _order_before(first: Job, jobs: Iterable[Job]) -> int:
    """Return an order before the first job's that no other has.

    Who runs now may come back to the queue with the order it has: of two with the same, neither could move.
    """
    taken = {job.order for job in jobs if job.spec.virtual_cluster == first.spec.virtual_cluster}
    order = first.order - 1
    while order in taken:
        order -= 1
    return order


def message(job: Job, event: Reordered) -> Message:
    """Return what was done."""
    if event.place is None:
        return msg("{user} gave it priority {priority}.", user=event.by, priority=job.present_priority)
    return msg("{user} moved it in the queue.", user=event.by)
