"""Whether a gang would start, and what keeps it from that: which limit, which resource, or who is first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pai_scheduler.i18n import Message, counted, msg

from .amounts import describe
from .demand import Demand
from .diagnosis import missing, never_fits
from .maintenance import Maintenance, in_words
from .preemption import JobHolding
from .quota import Bound, QuotaViolation
from .shortages import named
from .state import SchedulerState, Shape


class Fits(StrEnum):
    """When a gang would start."""

    NOW = "now"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Feasibility:
    """What would happen to a gang, and why. `borrows`: it would hold more than its share guarantees.

    `violation`: the limit in the way, where it is one; `behind`: resources are free, but kept for others;
    `awaits`: the jobs whose end it waits for, where borrowing ones are stopped for it.
    """

    fits: Fits
    reason: Message | None = None
    borrows: bool = False
    violation: QuotaViolation | None = None
    behind: bool = False
    awaits: Sequence[JobHolding] = ()


def feasibility(
    dispatcher: SchedulerState,
    user: str,
    cluster: str,
    gang: Sequence[Demand],
    *,
    preemptible: bool,
    run_ms: int | None = None,
) -> Feasibility:
    """Return what would happen to a job that came now. `run_ms`: its time limit; None: it has none."""
    shape = dispatcher.shape(user, cluster, gang, preemptible, run_ms)
    found = _look(dispatcher, user, cluster, shape)
    if found.fits is not Fits.LATER or found.borrows or found.violation is not None:
        return found
    awaits = dispatcher.would_preempt(user, cluster, shape)
    if not awaits:
        return found
    text = counted(
        "it is guaranteed to virtual cluster {vc}: {count} borrowing job of others is stopped for it.",
        "it is guaranteed to virtual cluster {vc}: {count} borrowing jobs of others are stopped for it.",
        vc=cluster,
        count=sum(not holding.ending for holding in awaits),
    )
    return replace(found, reason=text, awaits=awaits)


def obstacle(dispatcher: SchedulerState, job_id: str) -> Feasibility:
    """Return what a job waits for that is in line."""
    user, cluster = dispatcher.whose(job_id)
    return _look(dispatcher, user, cluster, dispatcher.queue.shape(job_id), job_id)


def _look(
    dispatcher: SchedulerState, user: str, cluster: str, shape: Shape, job_id: str | None = None
) -> Feasibility:
    closed = _closed(dispatcher, cluster)
    if closed is not None:
        return Feasibility(Fits.LATER, closed)
    most = Bound.MAXIMUM if shape.preemptible else Bound.GUARANTEE
    never = _never(dispatcher, user, cluster, shape, most)
    if never is not None:
        return never
    with dispatcher.without_reservation(job_id):
        found = dispatcher.fits(user, cluster, shape, Bound.GUARANTEE)
        if found is True:
            return Feasibility(Fits.NOW)
        borrows = shape.preemptible and isinstance(found, QuotaViolation)
        if shape.preemptible:
            found = dispatcher.fits(user, cluster, shape, most)
        if found is True:
            return Feasibility(Fits.NOW, borrows=True)
        if isinstance(found, QuotaViolation):
            return Feasibility(Fits.LATER, _beyond(dispatcher, found), borrows, found)
        if dispatcher.fits(user, cluster, shape, most, beside_reservations=False) is True:
            text = msg("what it needs is free, but kept for jobs that have waited longer or come first.")
            return Feasibility(Fits.LATER, text, borrows, behind=True)
        room = dispatcher.quota_accounting.gpu_room(cluster, most)
        with dispatcher.without_reservations():
            barred = dispatcher.barred(shape)
            if barred and dispatcher.cluster.fits(shape.gang, room):
                return Feasibility(Fits.LATER, _maintenance(dispatcher, shape, barred), borrows)
            reason = missing(dispatcher.cluster, shape.gang, room)
        # (what the exact search finds here, it may not have had the time to find when the job was tried)
        return Feasibility(
            Fits.LATER, reason or msg("an arrangement of its tasks is being looked for."), borrows
        )


def _closed(dispatcher: SchedulerState, cluster: str) -> Message | None:
    known = dispatcher.quota_accounting.clusters.get(cluster)
    if known is None:
        return msg("there is no virtual cluster {vc} any more.", vc=cluster)
    if known.stopped:
        return msg("an administrator has stopped virtual cluster {vc}.", vc=cluster)
    return None


def _maintenance(dispatcher: SchedulerState, shape: Shape, barred: Collection[int]) -> Message:
    """Say which maintenance keeps a job from what is free."""
    nodes: dict[Maintenance, list[str]] = {}
    for use in dispatcher.cluster.uses.values():
        if use.number in barred and use.node.ready:
            nodes.setdefault(use.node.maintenance[0], []).append(use.node.name)
    planned = [
        msg(
            "{nodes} from {begin} to {end}: {reason}",
            nodes=named(names),
            begin=in_words(window.begin),
            end=in_words(window.end),
            reason=window.reason,
        )
        for window, names in sorted(nodes.items(), key=lambda one: one[0].begin)
    ]
    if shape.run_ms is None:
        return msg(
            "what it needs is free, but so shortly before maintenance nothing without a time limit starts "
            "({planned}). With one (extras.maxRunSeconds) that ends before, it starts at once.",
            planned=named(planned),
        )
    return msg(
        "what it needs is free, but its time limit of {seconds} s ends after the beginning of maintenance "
        "({planned}). With a shorter one (extras.maxRunSeconds) that ends before, it starts at once.",
        seconds=-(-shape.run_ms // 1000),
        planned=named(planned),
    )


def _never(
    dispatcher: SchedulerState, user: str, cluster: str, shape: Shape, bound: Bound
) -> Feasibility | None:
    reason = never_fits(dispatcher.cluster, shape.gang)
    if reason is not None:
        return Feasibility(Fits.NEVER, reason)
    violation = dispatcher.quota_accounting.never_within(cluster, user, shape.asked, bound)
    if violation is None and not dispatcher.ever_fits(cluster, shape, bound):
        # GPUs of any type, too few of each within the limits
        reason = msg("the limits of virtual cluster {vc} leave no arrangement of its tasks.", vc=cluster)
        return Feasibility(Fits.NEVER, msg("Never fits at present: {reason}", reason=reason))
    if violation is None:
        return None
    reason = msg("Never fits at present: {reason}", reason=_beyond(dispatcher, violation))
    return Feasibility(Fits.NEVER, reason, violation=violation)


def _beyond(dispatcher: SchedulerState, violation: QuotaViolation) -> Message:
    asked = describe(violation.resource, violation.asked)
    limit = describe(violation.resource, violation.limit)
    values = {"vc": violation.virtual_cluster, "asked": asked, "limit": limit, "used": violation.used}
    if violation.user is not None:
        return msg(
            "a user may hold {limit} in virtual cluster {vc}; {user} holds {used}, "
            "and the job asks for {asked}.",
            **values,
            user=violation.user,
        )
    cluster = dispatcher.quota_accounting.clusters[violation.virtual_cluster]
    if violation.bound is Bound.GUARANTEE:
        return msg(
            "virtual cluster {vc} has {limit} of its own ({share:g} %), of which {used} are in use, and "
            "{asked} are asked for. What other virtual clusters do not use is only for jobs that may be "
            "stopped for them.",
            **values,
            share=cluster.capacity,
        )
    return msg(
        "virtual cluster {vc} may hold {limit} at most ({share:g} %), its jobs hold {used}, "
        "and the job asks for {asked}.",
        **values,
        share=cluster.max_capacity,
    )
