"""Exact search for a gang of different tasks, where best fit finds no room."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd
from operator import gt, mul
from typing import NamedTuple

from .node import Node
from .resources import Demand

# Which combinations of a gang's kinds of task one node can hold: the part of packing that knows a node.


class TaskKind(NamedTuple):
    """Demand of each of several equal tasks; `gpu_type` None: any, but all of one type."""

    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: int
    gpu_type: str | None

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return cores, memory and storage."""
        return self.cpus, self.memory_mb, self.storage_gb


#: More tasks than a gang has.
_MANY = 1 << 30


class Pattern(NamedTuple):
    """Tasks that have room on one node together."""

    #: how many of each kind
    counts: tuple[int, ...]
    #: GPUs of each limited type that tasks which do not name a type use
    use: tuple[int, ...]
    #: the same as (kind, type of GPU, how many)
    parts: tuple[tuple[int, str | None, int], ...]


def copies(size: Sequence[int], kind: TaskKind, types: Sequence[str]) -> int:
    """Count how many tasks of one kind a node holds alone; `size`: cores, MB, GB, GPUs of each of `types`."""
    # (a task may ask for GPUs alone)
    most = min((free // each for free, each in zip(size, kind.sizes, strict=False) if each), default=_MANY)
    if kind.gpus:
        by_gpus = (
            free // kind.gpus
            for free, name in zip(size[3:], types, strict=True)
            if kind.gpu_type in (None, name)
        )
        most = min(most, sum(by_gpus))
    return most


def fill(
    size: Sequence[int],
    kinds: Sequence[TaskKind],
    types: Sequence[str],
    order: Sequence[int],
    left: list[int],
    room: dict[str, int],
) -> Pattern:
    """Put as many tasks of the first kind in `order` on a node as it holds, then of the next, and so on.

    They are taken off `left` (by kind), and their GPUs off `room` where they may choose the type.
    """
    free = list(size[:3])
    gpus = dict(zip(types, size[3:], strict=True))
    counts, parts = [0] * len(kinds), []
    for i in order:
        kind = kinds[i]
        names: list[str | None] = [kind.gpu_type]
        if kind.gpus and kind.gpu_type is None:
            names = [name for _, name in sorted((have, name) for name, have in gpus.items())]
        for name in names:
            fit = (have // each for have, each in zip(free, kind.sizes, strict=True) if each)
            # (recorded jobs may ask for GPUs only)
            count = min((left[i], *fit))
            if name is not None:
                count = min(count, gpus[name] // kind.gpus)
                if kind.gpu_type is None and name in room:
                    count = min(count, room[name] // kind.gpus)
                    room[name] -= count * kind.gpus
                gpus[name] -= count * kind.gpus
            if count:
                free = [have - count * each for have, each in zip(free, kind.sizes, strict=True)]
                left[i] -= count
                counts[i] += count
                parts.append((i, name, count))
    return Pattern(tuple(counts), (), tuple(parts))


def largest_patterns(
    size: Sequence[int],
    kinds: Sequence[TaskKind],
    wanted: Sequence[int],
    types: Sequence[str],
    limited: Sequence[str],
    spend: Callable[[int], None],
) -> tuple[Pattern, ...]:
    """List the combinations that no other one includes, at most `wanted` of each kind.

    Where tasks may choose their type of GPU and use of a type is limited, one that uses less of it counts as
    larger in that respect. `spend` is told of every step.
    """
    items = [
        (i, name)
        for i, kind in enumerate(kinds)
        for name in ((None,) if not kind.gpus else types if kind.gpu_type is None else (kind.gpu_type,))
    ]
    where = {name: 3 + position for position, name in enumerate(types)}
    found: dict[tuple[tuple[int, ...], tuple[int, ...]], Pattern] = {}

    def most(i: int, name: str | None, free: Sequence[int], held: int) -> int:
        kind = kinds[i]
        room = min(left // each for left, each in zip(free, kind.sizes, strict=False) if each)
        if name is not None:
            room = min(room, free[where[name]] // kind.gpus)
        return min(room, wanted[i] - held)

    def extend(position: int, free: list[int], chosen: list[int]) -> None:
        spend(1 + len(items) // 4)
        if position == len(items):
            finish(free, chosen)
            return
        i, name = items[position]
        held = sum(n for (other, _), n in zip(items, chosen, strict=False) if other == i)
        room = most(i, name, free, held)
        # the last one fills what is left, unless it may be better not to use this type
        may_spare = kinds[i].gpu_type is None and name in limited
        least = 0 if position + 1 < len(items) or may_spare else room
        for count in range(room, least - 1, -1):
            left = list(free)
            for r, each in enumerate(kinds[i].sizes):
                left[r] -= count * each
            if name is not None:
                left[where[name]] -= count * kinds[i].gpus
            extend(position + 1, left, [*chosen, count])

    def finish(free: Sequence[int], chosen: Sequence[int]) -> None:
        counts, use = [0] * len(kinds), dict.fromkeys(limited, 0)
        for (i, name), count in zip(items, chosen, strict=True):
            counts[i] += count
            if kinds[i].gpu_type is None and name in use:
                use[name] += count * kinds[i].gpus
        for i, name in items:
            spares = kinds[i].gpu_type is None and name in use
            if not spares and most(i, name, free, counts[i]):
                return  # one more would fit: another combination includes this one
        parts = tuple((i, name, n) for (i, name), n in zip(items, chosen, strict=True) if n)
        key = tuple(counts), tuple(use.values())
        found.setdefault(key, Pattern(*key, parts))

    extend(0, list(size), [])
    if len({name for _, name in items}) > 1 or limited:
        return tuple(pattern for pattern in found.values() if not _included(pattern, found, spend))
    return tuple(found.values())


def _included(
    pattern: Pattern,
    others: dict[tuple[tuple[int, ...], tuple[int, ...]], Pattern],
    spend: Callable[[int], None],
) -> bool:
    """Return whether another combination has at least as many of each kind and uses no more."""
    spend(1 + len(others) // 8)
    return any(
        other is not pattern
        and all(map(int.__ge__, other.counts, pattern.counts))
        and all(map(int.__le__, other.use, pattern.use))
        for other in others.values()
    )


# Finds an arrangement of a gang of different tasks on what is free, or proves that there is none.
#
# Vector packing seen as covering: each node can hold certain combinations of the gang's kinds of task, of
# which only the largest matter; one is chosen per node until all tasks are covered. Depth first, with the
# remaining tasks as the state: a state that failed once is not tried again, and one whose remaining tasks
# the remaining nodes cannot hold by a simple count is not entered. Equal tasks and equal nodes are looked
# at once. Exact within a budget of steps, which are counted, not timed, so that the answer is always the
# same.

#: Steps that one search may take: some ten milliseconds.
BUDGET = 4_000
#: Nodes that can hold more combinations than these are looked at only when it is their turn.
_FEW_PATTERNS = 20
#: With so many kinds of task, all but one of them are looked at together too.
_FEW_KINDS = 6

#: A node, and the type of GPU to take there (None: the task has no GPUs).
Place = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """Free resources of one node: memory in MB, storage in GB, GPUs by type."""

    node: str
    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: Mapping[str, int]


class NoArrangement(Enum):
    """Reason that no arrangement is available."""

    IMPOSSIBLE = "proven not to exist"
    UNKNOWN = "not found within the budget"


class BudgetSpentError(Exception):
    """The steps are used up."""


@dataclass(slots=True)
class Budget:
    """The steps that are left to one or more searches."""

    left: int = BUDGET

    def spend(self, steps: int) -> None:
        """Take steps off; BudgetSpentError where there are not so many."""
        if steps > self.left:
            self.left = 0
            raise BudgetSpentError
        self.left -= steps


@dataclass(slots=True)
class _Group:
    """Nodes of one size: cores, memory, storage, GPUs by type, as far as they are of use."""

    size: tuple[int, ...]
    nodes: Sequence[str]
    #: for each of the search's weights, the most that one of these nodes can hold
    most: tuple[int, ...]
    #: the combinations of tasks that have room on one of them; None: not looked at yet
    patterns: Sequence[Pattern] | None = None


#: how many tasks of each kind are left to place, and how many GPUs may still be used of each limited type
_State = tuple[tuple[int, ...], tuple[int, ...]]


def arrange(
    rooms: Iterable[NodeRoom],
    gang: Sequence[Demand],
    gpu_room: Mapping[str, int] | None = None,
    budget: Budget | None = None,
) -> tuple[Place, ...] | NoArrangement:
    """Find a place for every demand at once, in the order of the gang.

    Cores, memory, storage and GPUs only: ports are the caller's. `gpu_room`: the gang may use at most so many
    GPUs of each type, of others none; None: no limit. `budget`: what it takes is taken off.
    """
    try:
        return _Search(gang, gpu_room, budget or Budget()).run(list(rooms))
    except BudgetSpentError:
        return NoArrangement.UNKNOWN


def room_of(node: Node) -> NodeRoom:
    """Return what a node has with nothing running on it."""
    return NodeRoom(node.name, node.cpus, node.memory_mb, node.storage_gb, dict(node.gpu_counts))


def room_for(demand: Demand, room: NodeRoom) -> int:
    """Count how many tasks of one kind a node holds by themselves; none where it shrank under what runs."""
    if room.cpus < 0 or room.memory_mb < 0 or room.storage_gb < 0:
        return 0
    types = tuple(room.gpus)
    size = room.cpus, room.memory_mb, room.storage_gb, *room.gpus.values()
    return copies(size, _kind(demand), types)


class _Search:
    """One search: the kinds of task, the groups of nodes, and the steps left."""

    def __init__(self, gang: Sequence[Demand], gpu_room: Mapping[str, int] | None, budget: Budget) -> None:
        self.spend = budget.spend
        self.tasks: dict[TaskKind, list[int]] = defaultdict(list)
        for index, demand in enumerate(gang):
            self.tasks[_kind(demand)].append(index)
        # the hardest kind first: combinations with many of it are tried first
        self.kinds = sorted(self.tasks, key=lambda kind: (-kind.gpus, -kind.cpus, -kind.memory_mb))
        self.wanted = tuple(len(self.tasks[kind]) for kind in self.kinds)
        self.gpu_room = gpu_room
        self.limited: tuple[str, ...] = ()

    def run(self, rooms: Sequence[NodeRoom]) -> tuple[Place, ...] | NoArrangement:
        if not self.kinds:
            return ()
        self.types = self._types(rooms)
        room_left = self._room_for_any_type()
        if room_left is None:
            return NoArrangement.IMPOSSIBLE
        self.weights = list(self._weights())
        groups = self._groups(rooms)
        if self._hopeless(self._most_of_all(groups)):
            return NoArrangement.IMPOSSIBLE
        path = self._fill_up(groups, room_left) or self._search(groups, (self.wanted, room_left))
        return NoArrangement.IMPOSSIBLE if path is None else self._places(groups, path)

    def _hopeless(self, most: Sequence[Sequence[int]]) -> bool:
        """Return whether all nodes together hold too little by some weight."""
        return any(map(gt, self._weigh(self.wanted), most[0]))

    def _weigh(self, counts: Sequence[int]) -> tuple[int, ...]:
        """Return the number of tasks of each kind, and their weights."""
        return *counts, *[sum(map(mul, weight, counts)) for weight in self.weights]

    # -- before the search ----------------------------------------------------------------------------------

    def _types(self, rooms: Sequence[NodeRoom]) -> tuple[str, ...]:
        """Return the types of GPU that matter: those named and, where any will do, all."""
        named = {kind.gpu_type for kind in self.kinds if kind.gpu_type is not None}
        if any(kind.gpus and kind.gpu_type is None for kind in self.kinds):
            named.update(gpu_type for room in rooms for gpu_type in room.gpus)
        return tuple(sorted(named))

    def _room_for_any_type(self) -> tuple[int, ...] | None:
        """Return how many GPUs of each type whose limit may bind tasks of any type may use; None: too few.

        What tasks that name a type use of it does not depend on the arrangement.
        """
        fixed: Counter[str] = Counter()
        free_choice = 0
        for kind, wanted in zip(self.kinds, self.wanted, strict=True):
            if kind.gpu_type is not None:
                fixed[kind.gpu_type] += kind.gpus * wanted
            else:
                free_choice += kind.gpus * wanted
        if self.gpu_room is None:
            return ()
        left = {name: self.gpu_room.get(name, 0) - fixed[name] for name in self.types}
        if any(left[name] < 0 for name in left if fixed[name]):
            return None
        self.limited = tuple(name for name in left if left[name] < free_choice)
        return tuple(max(0, left[name]) for name in self.limited)

    def _groups(self, rooms: Sequence[NodeRoom]) -> list[_Group]:
        """Group the nodes by what they have of use; those with the least choice first."""
        groups = []
        for size, names in self._sizes(rooms).items():
            self.spend(1 + len(self.kinds) // 4)
            alone = [min(n, most) for n, most in zip(self.wanted, self._copies(size), strict=True)]
            if any(alone):
                # no more nodes than there are tasks can be of use
                groups.append(_Group(size, names[: sum(self.wanted)], self._most(size, alone)))
        groups.sort(key=lambda group: (-group.most[: len(self.kinds)].count(0), sum(group.most)))
        return groups

    def _sizes(self, rooms: Sequence[NodeRoom]) -> dict[tuple[int, ...], list[str]]:
        """Group the nodes by cores, memory, storage, and GPUs of each type, without what is of no use."""
        self.spend(len(rooms) // 16)
        columns = list(zip(*(kind.sizes for kind in self.kinds), strict=True))
        # all that tasks can use is a multiple of their greatest common divisor, and at most their sum
        cpus, memory_mb, storage_gb = (gcd(*column) or 1 for column in columns)
        most_cpus, most_mb, most_gb = (sum(map(mul, self.wanted, column)) for column in columns)
        sizes: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for room in rooms:
            if room.cpus > 0 and room.memory_mb > 0 and room.storage_gb >= 0:
                size = (
                    min(room.cpus // cpus * cpus, most_cpus),
                    min(room.memory_mb // memory_mb * memory_mb, most_mb),
                    min(room.storage_gb // storage_gb * storage_gb, most_gb),
                    *[room.gpus.get(gpu_type, 0) for gpu_type in self.types],
                )
                sizes[size].append(room.node)
        return sizes

    def _copies(self, size: Sequence[int]) -> list[int]:
        return [copies(size, kind, self.types) for kind in self.kinds]

    def _most(self, size: Sequence[int], alone: Sequence[int]) -> tuple[int, ...]:
        """Return what a node of this size can hold at most by each weight, found by simple counting."""
        # the last weights are amounts, of which a node cannot hold more than it has
        caps = [*size[:3], sum(size[3:]), *size[3:]]
        weights = self._weigh(alone)
        return *weights[: -len(caps)], *map(min, weights[-len(caps) :], caps)

    def _look_at(self, group: _Group) -> Sequence[Pattern]:
        """Find the combinations that a node of a group can hold."""
        if group.patterns is None:
            group.patterns = largest_patterns(
                group.size, self.kinds, self.wanted, self.types, self.limited, self.spend
            )
            group.most = tuple(
                map(max, zip(*(self._weigh(one.counts) for one in group.patterns), strict=True))
            )
        return group.patterns

    def _weights(self) -> Iterator[tuple[int, ...]]:
        """Return weights under which the remaining tasks are compared with the most that nodes can hold.

        Last come cores, memory, storage, GPUs, and GPUs of each type.
        """
        number = len(self.kinds)
        if 2 < number <= _FEW_KINDS:
            for i in range(number):
                yield tuple(int(i != j) for j in range(number))
        yield (1,) * number
        yield from zip(*(kind.sizes for kind in self.kinds), strict=True)
        yield tuple(kind.gpus for kind in self.kinds)
        for name in self.types:
            yield tuple(kind.gpus if kind.gpu_type == name else 0 for kind in self.kinds)

    # -- quick tries ----------------------------------------------------------------------------------------

    def _fill_up(
        self, groups: Sequence[_Group], room_left: Sequence[int]
    ) -> list[tuple[int, Pattern]] | None:
        """Fill node after node and never go back, in a few orders: where much is free, that will do."""
        by_cpus = sorted(
            range(len(self.kinds)), key=lambda i: (-self.kinds[i].cpus, -self.kinds[i].memory_mb)
        )
        for order in (range(len(groups)), range(len(groups) - 1, -1, -1)):
            for kinds in (range(len(self.kinds)), by_cpus):
                path = self._fill(groups, order, kinds, room_left)
                if path is not None:
                    return path
        return None

    def _fill(
        self,
        groups: Sequence[_Group],
        order: Iterable[int],
        kinds: Sequence[int],
        room_left: Sequence[int],
    ) -> list[tuple[int, Pattern]] | None:
        left, room = list(self.wanted), dict(zip(self.limited, room_left, strict=True))
        path: list[tuple[int, Pattern]] = []
        for j in order:
            here = [i for i in kinds if left[i] and groups[j].most[i]]
            for _ in groups[j].nodes if here else ():
                self.spend(1 + len(here) // 4)
                pattern = fill(groups[j].size, self.kinds, self.types, here, left, room)
                if not pattern.parts:
                    break
                path.append((j, pattern))
                if not any(left):
                    return path
        return None

    # -- the search -----------------------------------------------------------------------------------------

    def _search(self, groups: Sequence[_Group], start: _State) -> list[tuple[int, Pattern]] | None:
        """Choose a combination for one node after another; return the choices as (group, pattern)."""
        # small nodes' combinations are few and tell more than counting does; all of large ones' may be many
        for group in groups:
            if len(self._look_at(group)) > _FEW_PATTERNS:
                break
        after = self._most_of_all(groups)
        if self._hopeless(after):
            return None

        def hopeless(j: int, left: int, counts: tuple[int, ...]) -> bool:
            return any(
                asked > here * left + there
                for asked, here, there in zip(self._weigh(counts), groups[j].most, after[j + 1], strict=True)
            )

        def choices(j: int, left: int, state: _State) -> Iterator[tuple[int, int, _State, int, Pattern]]:
            """Return what may follow: the next group, its nodes left, what is left to place, the choice."""
            counts, room = state
            following: dict[_State, Pattern] = {}
            for pattern in self._look_at(groups[j]):
                self.spend(1)
                if any(map(int.__gt__, pattern.use, room)):
                    continue
                rest = tuple(max(0, n - held) for n, held in zip(counts, pattern.counts, strict=True))
                following.setdefault(
                    (rest, tuple(n - used for n, used in zip(room, pattern.use, strict=True))), pattern
                )
            # what leaves least first; where nothing changes here, it does on none of the group's nodes
            next_group = j + 1, len(groups[j + 1].nodes) if j + 1 < len(groups) else 0
            for after_this in sorted(following, key=self._weight_left):
                there = (j, left - 1) if left > 1 and after_this != state else next_group
                yield *there, after_this, j, following[after_this]

        failed: set[tuple[int, int, _State]] = set()
        path: list[tuple[int, Pattern]] = []
        stack = [choices(0, len(groups[0].nodes), start)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                if path:
                    path.pop()
                continue
            j, left, state, chosen, pattern = step
            if not any(state[0]):
                return [*path, (chosen, pattern)]
            if j >= len(groups) or (j, left, state) in failed or hopeless(j, left, state[0]):
                continue
            # to be tried now: a search that comes here again has it behind it
            failed.add((j, left, state))
            path.append((chosen, pattern))
            stack.append(choices(j, left, state))
        return None

    def _most_of_all(self, groups: Sequence[_Group]) -> list[tuple[int, ...]]:
        """Return what each group and all after it hold at most, by each weight."""
        sums = [(0,) * (len(self.kinds) + len(self.weights))]
        for group in reversed(groups):
            number = len(group.nodes)
            sums.append(tuple(n + most * number for n, most in zip(sums[-1], group.most, strict=True)))
        return sums[::-1]

    def _weight_left(self, state: _State) -> tuple[int, ...]:
        counts = state[0]
        gpus = sum(n * kind.gpus for n, kind in zip(counts, self.kinds, strict=True))
        return gpus, sum(n * kind.cpus for n, kind in zip(counts, self.kinds, strict=True)), *counts

    def _places(self, groups: Sequence[_Group], path: Sequence[tuple[int, Pattern]]) -> tuple[Place, ...]:
        """Return every task of the gang its place by the chosen combinations."""
        names = [iter(group.nodes) for group in groups]
        waiting = {i: list(reversed(self.tasks[kind])) for i, kind in enumerate(self.kinds)}
        places: dict[int, Place] = {}
        for group, pattern in path:
            node = next(names[group])
            for i, gpu_type, count in pattern.parts:
                for _ in range(min(count, len(waiting[i]))):
                    places[waiting[i].pop()] = node, gpu_type
        return tuple(places[index] for index in sorted(places))


def _kind(demand: Demand) -> TaskKind:
    return TaskKind(
        demand.cpus,
        demand.memory_mb,
        demand.storage_gb,
        demand.gpus,
        demand.gpu_type if demand.gpus else None,
    )


# Asks the exact search where best fit found no room, within an allowance, and remembers refusals.

#: Steps that searches may take per event, and how many can be saved up.
ALLOWANCE, MOST_SAVED = 2_000, 20_000
#: Refusals remembered at most.
_MEMORY = 1_000


class ExactSearch:
    """The searches of one cluster: how many steps they may still take, and what they did not find."""

    def __init__(self) -> None:
        self._left = Budget(MOST_SAVED)
        self._refused: dict[Hashable, None] = {}

    def allow_more(self) -> None:
        """Something happened: more steps may be taken."""
        self._left.left = min(MOST_SAVED, self._left.left + ALLOWANCE)

    def arrange(
        self,
        state: int,
        rooms: Callable[[], Sequence[NodeRoom]],
        gang: Sequence[Demand],
        gpu_room: Mapping[str, int] | None,
    ) -> tuple[Place, ...] | None:
        """Find an arrangement of a gang; None where there is none, or none is found within the steps allowed.

        `state` stands for what is free: where that was refused before, it is at once.
        """
        key = state, tuple(gang), None if gpu_room is None else tuple(sorted(gpu_room.items()))
        if key in self._refused:
            return None
        budget = Budget(min(BUDGET, self._left.left))
        allowed = budget.left
        found = arrange(rooms(), gang, gpu_room, budget)
        self._left.left -= allowed - budget.left
        if not isinstance(found, NoArrangement):
            return found
        if found is NoArrangement.IMPOSSIBLE or allowed == BUDGET:
            if len(self._refused) >= _MEMORY:
                self._refused.clear()
            self._refused[key] = None
        return None


def best_fit_may_err(gang: Sequence[Demand], gpu_room: Mapping[str, int] | None) -> bool:
    """Return whether best fit may overlook an arrangement.

    It does not for one task, nor where all tasks are equal, unless they may choose among types of GPU that
    are limited apart.
    """
    if len(gang) == 1:
        return False
    kinds = {(one.cpus, one.memory_mb, one.storage_gb, one.gpus, one.gpu_type) for one in gang}
    return len(kinds) > 1 or (gpu_room is not None and any(one.gpus and not one.gpu_type for one in gang))


def enough_gpus(gang: Sequence[Demand], free: Mapping[str, int]) -> bool:
    """Return whether there are enough GPUs of each type, and of all together, wherever they are."""
    asked: Counter[str] = Counter()
    for demand in gang:
        asked[demand.gpu_type or ""] += demand.gpus
    return sum(asked.values()) <= sum(free.values()) and all(
        count <= free.get(gpu_type, 0) for gpu_type, count in asked.items() if gpu_type and count
    )
