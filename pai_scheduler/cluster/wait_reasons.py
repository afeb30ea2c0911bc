"""Reasons for which a gang cannot be placed: a type for each, with its numbers and its sentence.

`empty` tells whether a finding is about the cluster with nothing running on it: then it will not change by
waiting, and its sentence says what to ask for instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pai_scheduler.i18n import Message, msg

from .bin_packing import NodeRoom
from .resources import ANY_GPU, CPUS, MEMORY, STORAGE, Demand, describe, gpu_key, is_gpu

#: Nodes named in one sentence at most.
_MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class NoNodes:
    """There is no node at all."""

    @property
    def message(self) -> Message:
        """Return a sentence about it."""
        return msg("the cluster has no nodes.")


@dataclass(frozen=True, slots=True)
class NoReadyNode:
    """There are nodes, but none may get something new. `nodes`: with their states."""

    nodes: tuple[str | Message, ...]

    @property
    def message(self) -> Message:
        """Return a sentence about it."""
        return msg("no node is ready: {nodes}.", nodes=named(self.nodes))


@dataclass(frozen=True, slots=True)
class OnlyOnOtherNodes:
    """Only nodes that are not ready could hold one of the tasks."""

    demand: Demand
    nodes: tuple[str | Message, ...]

    @property
    def message(self) -> Message:
        """Return a sentence about it, and which nodes."""
        return msg(
            "only nodes that are not ready have {what}: {nodes}.",
            what=needs(self.demand),
            nodes=named(self.nodes),
        )


@dataclass(frozen=True, slots=True)
class MostGpus:
    """The most GPUs of a type that one node has."""

    gpu_type: str
    gpus: int
    node: str

    @property
    def message(self) -> Message:
        """Return a sentence about it."""
        return msg("{type} × {gpus} on {node}", type=self.gpu_type, gpus=self.gpus, node=self.node)


@dataclass(frozen=True, slots=True)
class UnknownGpuType:
    """No node has a GPU of the type that is asked for."""

    gpu_type: str
    known: tuple[MostGpus, ...]

    @property
    def message(self) -> Message:
        """Return a sentence about it, and which types there are."""
        known = listed([offer.message for offer in self.known]) if self.known else msg("none")
        return msg("there is no GPU of type {type}; there are: {known}.", type=self.gpu_type, known=known)


@dataclass(frozen=True, slots=True)
class TooManyGpus:
    """No node has so many GPUs of one type as one task asks for. `others`: types of which one has."""

    asked: int
    gpu_type: str | None
    largest: int
    others: tuple[MostGpus, ...] = ()

    @property
    def message(self) -> Message:
        """Return a sentence about it, and what to ask for instead."""
        if not self.largest:
            return msg("a task asks for {gpus} × GPU, and no node has a GPU.", gpus=self.asked)
        values = {"gpus": self.asked, "type": self.gpu_type or "GPU", "best": self.largest}
        if self.others:
            return msg(
                "a task asks for {gpus} × {type}, the largest node has {best}. "
                "Ask for at most {best} per task, or for another type: {others}.",
                **values,
                others=listed([offer.message for offer in self.others]),
            )
        return msg(
            "a task asks for {gpus} × {type}, the largest node has {best}. Ask for at most {best} per task.",
            **values,
        )


@dataclass(frozen=True, slots=True)
class TaskTooBig:
    """No node has so much of a resource as one task asks for. Where it needs GPUs: no node that has them."""

    demand: Demand
    resource: str
    asked: int
    largest: int

    @property
    def message(self) -> Message:
        """Return a sentence about it, and what to ask for instead."""
        values = {"asked": describe(self.resource, self.asked), "best": self.largest}
        if self.demand.gpus:
            return msg(
                "a task asks for {asked}, the largest node with {gpus} has {best}. "
                "Ask for at most {best} per task.",
                **values,
                gpus=_gpus(self.demand),
            )
        return msg(
            "a task asks for {asked}, the largest node has {best}. Ask for at most {best} per task.", **values
        )


@dataclass(frozen=True, slots=True)
class NoNodeHas:
    """No node has all that one task needs; each resource by itself some node has. `nearest` lacks least."""

    demand: Demand
    nearest: NodeRoom
    empty: bool

    @property
    def message(self) -> Message:
        """Return a sentence about it, and which node comes nearest."""
        values = {
            "what": needs(self.demand),
            "node": self.nearest.node,
            "has": listed(
                [describe(key, have) for key, have in amounts_in(self.nearest, self.demand).items()]
            ),
        }
        if self.empty:
            return msg(
                "no node has {what} at once; {node} comes nearest, with {has}. Ask for less per task.",
                **values,
            )
        return msg(
            "enough is free in all, but no node has {what} at once; {node} comes nearest, with {has}.",
            **values,
        )


@dataclass(frozen=True, slots=True)
class TotalTooSmall:
    """All tasks ask for more of a resource than there is on all nodes; `where` it is, for GPUs."""

    resource: str
    asked: int
    free: int
    where: tuple[tuple[str, int], ...]
    empty: bool

    @property
    def message(self) -> Message:
        """Return a sentence about it, with the numbers."""
        values = {"asked": describe(self.resource, self.asked), "free": self.free}
        if is_gpu(self.resource) and not self.empty:
            if not self.free:
                return msg("the job asks for {asked}, none is free.", asked=values["asked"])
            return msg(
                "the job asks for {asked}, {free} free ({where}).", **values, where=_spread(self.where)
            )
        if is_gpu(self.resource):
            return msg(
                "the job asks for {asked}, the nodes have {free} ({where}). Ask for at most {free} in all.",
                **values,
                where=_spread(self.where),
            )
        if self.empty:
            return msg(
                "the job asks for {asked}, the nodes have {free}. Ask for at most {free} in all.", **values
            )
        return msg("the job asks for {asked}, {free} free.", **values)


@dataclass(frozen=True, slots=True)
class RoomForSome:
    """The nodes have room for some of the tasks of one kind only, even without the others."""

    demand: Demand
    asked: int
    possible: int
    where: tuple[tuple[str, int], ...]
    empty: bool

    @property
    def message(self) -> Message:
        """Return a sentence about it: for how many, and where."""
        values = {
            "possible": self.possible,
            "asked": self.asked,
            "what": needs(self.demand),
            "where": _spread(self.where),
        }
        if self.empty:
            return msg(
                "of its {asked} tasks that need {what} each, the nodes hold {possible} ({where}). "
                "Ask for at most {possible} of them, or for less in each.",
                **values,
            )
        return msg(
            "enough is free in all, but of its {asked} tasks that need {what} each "
            "there is room for {possible} ({where}).",
            **values,
        )


@dataclass(frozen=True, slots=True)
class NoRoomTogether:
    """There is room for the tasks of each kind, but, proven, not for all of them together."""

    empty: bool

    @property
    def message(self) -> Message:
        """Return a sentence about it."""
        if self.empty:
            return msg(
                "even the empty nodes cannot hold all of its tasks together. "
                "Ask for fewer tasks, or for less in each."
            )
        return msg(
            "enough is free for each kind of its tasks, but not for all of them together, "
            "as it is spread over the nodes."
        )


@dataclass(frozen=True, slots=True)
class NotFound:
    """The search for an arrangement was given up: it is not known whether there is one."""

    @property
    def message(self) -> Message:
        """Return a sentence about it."""
        return msg(
            "enough is free in all, but no way was found to spread its tasks over the nodes; "
            "another try follows whenever something ends."
        )


@dataclass(frozen=True, slots=True)
class NotWithinLimits:
    """There is room, but not with so many GPUs of each type as the virtual cluster may still hold."""

    gpu_room: Mapping[str, int]

    @property
    def message(self) -> Message:
        """Return a sentence about it, with the number."""
        return msg(
            "there is room, but on other types of GPU than its virtual cluster may still hold ({room}).",
            room=_spread(tuple(self.gpu_room.items())) if self.gpu_room else msg("none"),
        )


@dataclass(frozen=True, slots=True)
class PortsInUse:
    """Ports that the job names are taken."""

    ports: tuple[int, ...]

    @property
    def message(self) -> Message:
        """Return a sentence about it that names them."""
        return msg("its fixed ports ({ports}) are taken.", ports=named(self.ports))


@dataclass(frozen=True, slots=True)
class PortsNamedTwice:
    """Tasks name the same port, and all nodes share those of one machine."""

    ports: tuple[int, ...]

    @property
    def message(self) -> Message:
        """Return a sentence about it: which ports, and what to do."""
        return msg(
            "several of its tasks name the same ports ({ports}), which one machine has only once. "
            "Let the ports be chosen (beginAt 0), or have one task only.",
            ports=named(self.ports),
        )


@dataclass(frozen=True, slots=True)
class TooFewPorts:
    """More ports are to be chosen than can be."""

    asked: int
    free: int
    empty: bool

    @property
    def message(self) -> Message:
        """Return a sentence about it, with the numbers."""
        values = {"asked": self.asked, "free": self.free}
        if self.empty:
            return msg(
                "{asked} ports are to be chosen for it, {free} can be. Ask for at most {free}.", **values
            )
        return msg("{asked} ports are to be chosen for it, {free} can be.", **values)


Finding = (
    NoNodes
    | NoReadyNode
    | OnlyOnOtherNodes
    | UnknownGpuType
    | TooManyGpus
    | TaskTooBig
    | NoNodeHas
    | TotalTooSmall
    | RoomForSome
    | NoRoomTogether
    | NotFound
    | NotWithinLimits
    | PortsInUse
    | PortsNamedTwice
    | TooFewPorts
)


def needs(demand: Demand) -> Message:
    """Return what one task needs: `2 × P100, 4 CPUs and 100 MB of memory`."""
    amounts = {CPUS: demand.cpus, MEMORY: demand.memory_mb, STORAGE: demand.storage_gb}
    parts = [describe(key, count) for key, count in amounts.items() if count]
    return listed([_gpus(demand), *parts] if demand.gpus else parts)


def amounts_in(room: NodeRoom, demand: Demand) -> dict[str, int]:
    """Return what a node has of what a task needs; of any type of GPU, that of which it has most."""
    amounts = {}
    if demand.gpus and demand.gpu_type:
        amounts[gpu_key(demand.gpu_type)] = room.gpus.get(demand.gpu_type, 0)
    elif demand.gpus:
        gpu_type = max(room.gpus, key=lambda name: room.gpus[name], default="")
        amounts[gpu_key(gpu_type)] = room.gpus.get(gpu_type, 0)
    amounts |= {CPUS: max(0, room.cpus), MEMORY: max(0, room.memory_mb)}
    if demand.storage_gb:
        amounts[STORAGE] = max(0, room.storage_gb)
    return amounts


def listed(parts: Sequence[Message]) -> Message:
    """Join parts of a sentence: `a, b and c`."""
    if len(parts) == 1:
        return parts[0]
    if len(parts) == 2:
        return msg("{first} and {rest}", first=parts[0], rest=parts[1])
    return msg("{first}, {rest}", first=parts[0], rest=listed(parts[1:]))


def _gpus(demand: Demand) -> Message:
    return describe(gpu_key(demand.gpu_type) if demand.gpu_type else ANY_GPU, demand.gpus)


def named(names: Sequence[object]) -> Message | str:
    """List names; of many the first ones, and how many more there are."""
    shown = _joined(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return msg("{shown} and {more} more", shown=shown, more=more) if more > 0 else shown


def _joined(names: Sequence[object]) -> Message | str:
    if not any(isinstance(name, Message) for name in names):
        return ", ".join(map(str, names))
    first, *others = names
    if others:
        return msg("{first}, {others}", first=first, others=_joined(others))
    return first if isinstance(first, Message) else str(first)


def _spread(where: Sequence[tuple[str, int]]) -> Message | str:
    return named([f"{name}: {count}" for name, count in where])
