"""Feasibility of a gang: whether it would start, what is missing, and what a user could have."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial

from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.i18n import Message, counted, msg

from .bin_packing import NoArrangement, NodeRoom, arrange, room_for, room_of
from .node import Maintenance, in_words
from .placement import PORT_RANGE, Cluster
from .preemption import JobHolding
from .quota import Bound, QuotaViolation
from .resources import ANY_GPU, CPUS, MEMORY, STORAGE, Amounts, Demand, describe, fixed_ports, gpu_key, is_gpu
from .scheduler_state import SchedulerState, Shape
from .wait_reasons import (
    Finding,
    MostGpus,
    NoNodeHas,
    NoNodes,
    NoReadyNode,
    NoRoomTogether,
    NotFound,
    NotWithinLimits,
    OnlyOnOtherNodes,
    PortsInUse,
    PortsNamedTwice,
    RoomForSome,
    TaskTooBig,
    TooFewPorts,
    TooManyGpus,
    TotalTooSmall,
    UnknownGpuType,
    amounts_in,
    named,
)

# Why a gang does not fit: what is missing, of which kind, and whether it could ever fit.
#
# Findings are tried from the plainest to the subtlest, and each is exact: totals, then one task by itself,
# then all tasks of one kind, then ports, then all together (bin_packing.py). What is not proven is not said.


class _View:
    """Nodes under consideration, with equal nodes grouped.

    `ports`: those taken of the one machine that all nodes share; None: no sharing.
    """

    def __init__(self, rooms: Iterable[NodeRoom], ports: Collection[int] | None, *, empty: bool) -> None:
        self.ports = ports
        self.empty = empty
        self._nodes: dict[tuple[object, ...], list[tuple[int, NodeRoom]]] = defaultdict(list)
        for number, room in enumerate(rooms):
            key = room.cpus, room.memory_mb, room.storage_gb, *room.gpus.items()
            self._nodes[key].append((number, room))
        #: one of each kind of node
        self.kinds = [nodes[0][1] for nodes in self._nodes.values()]

    def count(self, of: Callable[[NodeRoom], int]) -> int:
        """Add up what each node has."""
        return sum(
            of(kind) * len(nodes) for kind, nodes in zip(self.kinds, self._nodes.values(), strict=True)
        )

    def where(self, of: Callable[[NodeRoom], int]) -> tuple[tuple[str, int], ...]:
        """List the nodes that have some, and how much."""
        found = [
            (number, room.node, have)
            for kind, nodes in zip(self.kinds, self._nodes.values(), strict=True)
            if (have := of(kind))
            for number, room in nodes
        ]
        return tuple((name, have) for _, name, have in sorted(found))

    def rooms(self, most: int) -> list[NodeRoom]:
        """List the nodes, of equal ones so many at most."""
        return [room for nodes in self._nodes.values() for _, room in nodes[:most]]


def never_fits(cluster: Cluster, gang: Sequence[Demand]) -> Message | None:
    """Return why a gang does not fit even on the empty cluster; None where it does, or might."""
    finding = find_never(cluster, gang)
    if finding is None:
        return None
    others = [node for node in cluster.nodes if not node.ready]
    if others and not isinstance(finding, NoReadyNode | OnlyOnOtherNodes):
        all_ready = [replace(node, state=NodeState.READY, closing=None) for node in cluster.nodes]
        if find_never(Cluster(all_ready, shares_host_ports=cluster.shares_host_ports), gang) is None:
            # whoever reads it need not ask for less, but wait for these
            return msg(
                "Never fits at present: {reason} Not counted, as not ready: {nodes}.",
                reason=finding.message,
                nodes=named(_with_states(others)),
            )
    return msg("Never fits at present: {reason}", reason=finding.message)


def missing(
    cluster: Cluster, gang: Sequence[Demand], gpu_room: Mapping[str, int] | None = None
) -> Message | None:
    """Return what a gang waits for; None where it fits now. `gpu_room` as for `Cluster.place`."""
    finding = find_missing(cluster, gang, gpu_room)
    return None if finding is None else finding.message


def find_never(cluster: Cluster, gang: Sequence[Demand]) -> Finding | None:
    """Find why a gang does not fit even on the empty cluster; None where it does, or where nobody knows."""
    view = _View(cluster.empty_rooms, () if cluster.shares_host_ports else None, empty=True)
    finding = (
        _without_nodes(cluster)
        or next(_too_big(cluster, view, gang), None)
        or next(_in_total(view, gang), None)
        or _of_one_kind(view, gang)
        or _ports(view, gang)
    )
    if finding is None and arrange(view.rooms(len(gang)), gang) is NoArrangement.IMPOSSIBLE:
        return NoRoomTogether(empty=True)
    return finding


def find_missing(
    cluster: Cluster, gang: Sequence[Demand], gpu_room: Mapping[str, int] | None = None
) -> Finding | None:
    """Find what keeps a gang from being placed now; None where nothing does."""
    ports = set().union(*(use.ports for use in cluster.uses.values())) if cluster.shares_host_ports else None
    view = _View(cluster.rooms(), ports, empty=False)
    finding = (
        _without_nodes(cluster)
        or next(_in_total(view, gang), None)
        or _of_one_kind(view, gang)
        or _ports(view, gang)
    )
    if finding is not None:
        return finding
    rooms = view.rooms(len(gang))
    found = arrange(rooms, gang)
    if found is NoArrangement.IMPOSSIBLE:
        return NoRoomTogether(empty=False)
    if found is not NoArrangement.UNKNOWN and gpu_room is not None:
        found = arrange(rooms, gang, gpu_room)
        if found is NoArrangement.IMPOSSIBLE:
            return NotWithinLimits(gpu_room)
    return NotFound() if found is NoArrangement.UNKNOWN else None


def _without_nodes(cluster: Cluster) -> Finding | None:
    if not cluster.nodes:
        return NoNodes()
    return None if any(node.ready for node in cluster.nodes) else NoReadyNode(_with_states(cluster.nodes))


def _with_states(nodes: Iterable[Node]) -> tuple[str | Message, ...]:
    return tuple(map(_with_state, nodes))


def _with_state(node: Node) -> str | Message:
    # one that is lost as well gets nothing by being opened: that is said first
    if node.closing is None or node.state is not NodeState.READY:
        return f"{node.name} ({node.state})"
    if node.closing.until is not None:
        return msg(
            "{node} (in maintenance until {end}: {reason})",
            node=node.name,
            end=in_words(node.closing.until),
            reason=node.closing.reason,
        )
    return msg(
        "{node} (closed by {user}: {reason})",
        node=node.name,
        user=node.closing.by,
        reason=node.closing.reason,
    )


def _too_big(cluster: Cluster, view: _View, gang: Sequence[Demand]) -> Iterator[Finding]:
    """Find tasks that no node can hold."""
    for demand in dict.fromkeys(gang):
        if any(room_for(demand, room) for room in view.kinds):
            continue
        others = [node for node in cluster.nodes if not node.ready and room_for(demand, room_of(node))]
        if others:
            yield OnlyOnOtherNodes(demand, _with_states(others))
            continue
        with_gpus = [room for room in view.kinds if _largest(room, demand.gpu_type) >= demand.gpus]
        if not with_gpus:
            yield _too_many_gpus(view, demand)
            continue
        for resource in (CPUS, MEMORY, STORAGE):
            asked = _asked(demand, resource)
            largest = max(_free(room, resource) for room in with_gpus)
            if asked > largest:
                yield TaskTooBig(demand, resource, asked, largest)
        yield NoNodeHas(demand, _nearest(view.kinds, demand), empty=True)


def _too_many_gpus(view: _View, demand: Demand) -> Finding:
    offers = [
        max(
            (MostGpus(gpu_type, room.gpus.get(gpu_type, 0), room.node) for room in view.kinds),
            key=lambda offer: offer.gpus,
        )
        for gpu_type in sorted({gpu_type for room in view.kinds for gpu_type in room.gpus})
    ]
    if demand.gpu_type is None:
        return TooManyGpus(demand.gpus, None, max((offer.gpus for offer in offers), default=0))
    own = [offer.gpus for offer in offers if offer.gpu_type == demand.gpu_type]
    if not own:
        return UnknownGpuType(demand.gpu_type, tuple(offers))
    others = tuple(offer for offer in offers if offer.gpus >= demand.gpus)
    return TooManyGpus(demand.gpus, demand.gpu_type, own[0], others)


def _in_total(view: _View, gang: Sequence[Demand]) -> Iterator[Finding]:
    """Find resources of which all nodes together have too little."""
    gpus: Counter[str] = Counter()
    for demand in gang:
        if demand.gpus:
            gpus[gpu_key(demand.gpu_type) if demand.gpu_type else ANY_GPU] += demand.gpus
    if gpus[ANY_GPU]:
        # tasks that name a type take theirs from the same GPUs
        gpus[ANY_GPU] = gpus.total()
    asked = {key: gpus[key] for key in sorted(gpus, reverse=True) if gpus[key]}
    asked |= {key: sum(_asked(demand, key) for demand in gang) for key in (CPUS, MEMORY, STORAGE)}
    for key, count in asked.items():
        have = partial(_free, key=key)
        total = view.count(have)
        if count > total:
            where = view.where(have) if key in gpus else ()
            yield TotalTooSmall(key, count, total, where, view.empty)


def _of_one_kind(view: _View, gang: Sequence[Demand]) -> Finding | None:
    """Find tasks of one kind for all of which there is no room, even without the others."""
    for demand, count in Counter(replace(demand, ports=()) for demand in gang).items():
        have = partial(room_for, demand)
        possible = view.count(have)
        if not possible:
            return NoNodeHas(demand, _nearest(view.kinds, demand), view.empty)
        if possible < count:
            return RoomForSome(demand, count, possible, view.where(have), view.empty)
    return None


def _ports(view: _View, gang: Sequence[Demand]) -> Finding | None:
    # tasks that share no ports each choose from the whole range
    machines = [gang] if view.ports is not None else [[demand] for demand in dict.fromkeys(gang)]
    taken = set(view.ports or ())
    for tasks in machines:
        named = Counter(port for demand in tasks for port in fixed_ports(demand.ports))
        twice = sorted(port for port, count in named.items() if count > 1)
        if twice and view.ports is not None:
            return PortsNamedTwice(tuple(twice))
        if taken.intersection(named):
            return PortsInUse(tuple(sorted(taken.intersection(named))))
        chosen = sum(port.count for demand in tasks for port in demand.ports if not port.begin_at)
        free = len(set(PORT_RANGE) - taken - named.keys()) if chosen else 0
        if chosen > free:
            return TooFewPorts(chosen, free, view.empty)
    return None


def _nearest(rooms: Sequence[NodeRoom], demand: Demand) -> NodeRoom:
    """Find the node that lacks the smallest part of what a task needs, resource by resource."""

    def lack(room: NodeRoom) -> float:
        asked = {CPUS: demand.cpus, MEMORY: demand.memory_mb, STORAGE: demand.storage_gb}
        return sum(
            max(0.0, 1 - have / wanted)
            for key, have in amounts_in(room, demand).items()
            if (wanted := asked.get(key, demand.gpus))
        )

    return min(rooms, key=lack)


def _largest(room: NodeRoom, gpu_type: str | None) -> int:
    """Count the GPUs of one type that a node has; of any type: of that of which it has most."""
    return room.gpus.get(gpu_type, 0) if gpu_type is not None else max(room.gpus.values(), default=0)


def _asked(demand: Demand, key: str) -> int:
    return {CPUS: demand.cpus, MEMORY: demand.memory_mb, STORAGE: demand.storage_gb}[key]


def _free(room: NodeRoom, key: str) -> int:
    """Return what is free of a resource; nothing on a node that shrank under what runs there."""
    if key == ANY_GPU:
        return sum(room.gpus.values())
    if key.startswith(ANY_GPU):
        return room.gpus.get(key.removeprefix(ANY_GPU), 0)
    return max(0, {CPUS: room.cpus, MEMORY: room.memory_mb, STORAGE: room.storage_gb}[key])


# What one user's next job could have in a virtual cluster: now, and if nobody held anything.


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
        within(_with_types_of(empty, _largest_of_each(free)), used, quota_left),
        within(_largest_of_each(empty), {}, quota),
    )


def _least(count: int, *limits: int | None) -> int:
    return min(max(0, count), *(limit for limit in limits if limit is not None), count)


def _amounts(room: NodeRoom) -> Mapping[str, int]:
    gpus = {gpu_key(gpu_type): count for gpu_type, count in room.gpus.items()}
    return {CPUS: room.cpus, MEMORY: room.memory_mb, STORAGE: room.storage_gb, **gpus}


def _sum(rooms: Iterable[NodeRoom]) -> Counter[str]:
    total: Counter[str] = Counter()
    for room in rooms:
        total.update(_amounts(room))
    return total


def _largest_of_each(rooms: Iterable[NodeRoom]) -> Counter[str]:
    total: Counter[str] = Counter()
    for room in rooms:
        total |= Counter(_amounts(room))
    return total


def _with_types_of(empty: Iterable[NodeRoom], amounts: Mapping[str, int]) -> dict[str, int]:
    """Name every resource that there is, also where nothing of it is free."""
    return {**dict.fromkeys(_sum(empty), 0), **amounts}


# Whether a gang would start, and what keeps it from that: which limit, which resource, or who is first.


class Fits(StrEnum):
    """Time at which a gang would start."""

    NOW = "now"
    LATER = "later"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Feasibility:
    """Predicted outcome for a gang, and its reason. `borrows`: it would hold more than its share guarantees.

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
    state: SchedulerState,
    user: str,
    cluster: str,
    gang: Sequence[Demand],
    *,
    preemptible: bool,
    run_ms: int | None = None,
) -> Feasibility:
    """Return what would happen to a job that came now. `run_ms`: its time limit; None: it has none."""
    shape = state.shape(user, cluster, gang, preemptible, run_ms)
    found = _look(state, user, cluster, shape)
    if found.fits is not Fits.LATER or found.borrows or found.violation is not None:
        return found
    awaits = state.would_preempt(user, cluster, shape)
    if not awaits:
        return found
    text = counted(
        "it is guaranteed to virtual cluster {vc}: {count} borrowing job of others is stopped for it.",
        "it is guaranteed to virtual cluster {vc}: {count} borrowing jobs of others are stopped for it.",
        vc=cluster,
        count=sum(not holding.ending for holding in awaits),
    )
    return replace(found, reason=text, awaits=awaits)


def obstacle(state: SchedulerState, job_id: str) -> Feasibility:
    """Return what a job waits for that is in line."""
    user, cluster = state.whose(job_id)
    return _look(state, user, cluster, state.queue.shape(job_id), job_id)


def _look(
    state: SchedulerState, user: str, cluster: str, shape: Shape, job_id: str | None = None
) -> Feasibility:
    closed = _closed(state, cluster)
    if closed is not None:
        return Feasibility(Fits.LATER, closed)
    most = Bound.MAXIMUM if shape.preemptible else Bound.GUARANTEE
    never = _never(state, user, cluster, shape, most)
    if never is not None:
        return never
    with state.without_reservation(job_id):
        found = state.fits(user, cluster, shape, Bound.GUARANTEE)
        if found is True:
            return Feasibility(Fits.NOW)
        borrows = shape.preemptible and isinstance(found, QuotaViolation)
        if shape.preemptible:
            found = state.fits(user, cluster, shape, most)
        if found is True:
            return Feasibility(Fits.NOW, borrows=True)
        if isinstance(found, QuotaViolation):
            return Feasibility(Fits.LATER, _beyond(state, found), borrows, found)
        if state.fits(user, cluster, shape, most, beside_reservations=False) is True:
            text = msg("what it needs is free, but kept for jobs that have waited longer or come first.")
            return Feasibility(Fits.LATER, text, borrows, behind=True)
        room = state.quota_accounting.gpu_room(cluster, most)
        with state.without_reservations():
            barred = state.barred(shape)
            if barred and state.cluster.fits(shape.gang, room):
                return Feasibility(Fits.LATER, _maintenance(state, shape, barred), borrows)
            reason = missing(state.cluster, shape.gang, room)
        # (what the exact search finds here, it may not have had the time to find when the job was tried)
        return Feasibility(
            Fits.LATER, reason or msg("an arrangement of its tasks is being looked for."), borrows
        )


def _closed(state: SchedulerState, cluster: str) -> Message | None:
    known = state.quota_accounting.clusters.get(cluster)
    if known is None:
        return msg("there is no virtual cluster {vc} any more.", vc=cluster)
    if known.stopped:
        return msg("an administrator has stopped virtual cluster {vc}.", vc=cluster)
    return None


def _maintenance(state: SchedulerState, shape: Shape, barred: Collection[int]) -> Message:
    """Say which maintenance keeps a job from what is free."""
    nodes: dict[Maintenance, list[str]] = {}
    for use in state.cluster.uses.values():
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


def _never(state: SchedulerState, user: str, cluster: str, shape: Shape, bound: Bound) -> Feasibility | None:
    reason = never_fits(state.cluster, shape.gang)
    if reason is not None:
        return Feasibility(Fits.NEVER, reason)
    violation = state.quota_accounting.never_within(cluster, user, shape.asked, bound)
    if violation is None and not state.ever_fits(cluster, shape, bound):
        # GPUs of any type, too few of each within the limits
        reason = msg("the limits of virtual cluster {vc} leave no arrangement of its tasks.", vc=cluster)
        return Feasibility(Fits.NEVER, msg("Never fits at present: {reason}", reason=reason))
    if violation is None:
        return None
    reason = msg("Never fits at present: {reason}", reason=_beyond(state, violation))
    return Feasibility(Fits.NEVER, reason, violation=violation)


def _beyond(state: SchedulerState, violation: QuotaViolation) -> Message:
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
    cluster = state.quota_accounting.clusters[violation.virtual_cluster]
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
