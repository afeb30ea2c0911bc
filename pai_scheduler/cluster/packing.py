"""Finds an arrangement of a gang of different tasks on what is free, or proves that there is none.

Vector packing seen as covering: each node can hold certain combinations of the gang's kinds of task, of which
only the largest matter; one is chosen per node until all tasks are covered. Depth first, with the remaining
tasks as the state: a state that failed once is not tried again, and one whose remaining tasks the remaining
nodes cannot hold by a simple count is not entered. Equal tasks and equal nodes are looked at once. Exact
within a budget of steps, which are counted, not timed, so that the answer is always the same.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import gcd
from operator import mul
from typing import TYPE_CHECKING

from .patterns import Kind, Pattern, copies, largest_patterns

if TYPE_CHECKING:
    from .placement import Demand

#: Steps that a search may take: some ten milliseconds.
BUDGET = 10_000

#: A node, and the type of GPU to take there (None: the task has no GPUs).
Place = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on one node: memory in MB, storage in GB, GPUs by type."""

    node: str
    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: Mapping[str, int]


class NoArrangement(Enum):
    """Why there is no arrangement to give."""

    IMPOSSIBLE = "proven not to exist"
    UNKNOWN = "not found within the budget"


class _BudgetSpent(Exception):
    pass


@dataclass(frozen=True, slots=True)
class _Group:
    """Nodes on which the same combinations of tasks have room."""

    nodes: Sequence[str]
    patterns: Sequence[Pattern]
    #: the largest weight of a pattern, for each of the search's weights
    most: tuple[int, ...]


#: how many tasks of each kind are left to place, and how many GPUs may still be used of each limited type
_State = tuple[tuple[int, ...], tuple[int, ...]]


def arrange(
    rooms: Iterable[Room],
    gang: Sequence[Demand],
    gpu_room: Mapping[str, int] | None = None,
    budget: int = BUDGET,
) -> tuple[Place, ...] | NoArrangement:
    """Find a place for every demand at once, in the order of the gang.

    Cores, memory, storage and GPUs only: ports are the caller's. `gpu_room`: the gang may use at most so many
    GPUs of a type; types that it does not name are not limited.
    """
    search = _Search(gang, gpu_room or {}, budget)
    try:
        return search.run(rooms)
    except _BudgetSpent:
        return NoArrangement.UNKNOWN


class _Search:
    """One search: the kinds of task, the groups of nodes, and the steps left."""

    def __init__(self, gang: Sequence[Demand], gpu_room: Mapping[str, int], budget: int) -> None:
        self.steps = budget
        self.tasks: dict[Kind, list[int]] = defaultdict(list)
        for index, demand in enumerate(gang):
            self.tasks[_kind(demand)].append(index)
        # the hardest kind first: combinations with many of it are tried first
        self.kinds = sorted(self.tasks, key=lambda kind: (-kind.gpus, -kind.cpus, -kind.memory_mb))
        self.wanted = tuple(len(self.tasks[kind]) for kind in self.kinds)
        self.gpu_room = gpu_room
        self.limited: tuple[str, ...] = ()

    def run(self, rooms: Iterable[Room]) -> tuple[Place, ...] | NoArrangement:
        if not self.kinds:
            return ()
        sizes = self._sizes(rooms)
        room_left = self._room_for_any_type()
        if room_left is None or not self._enough_by_count(sizes):
            return NoArrangement.IMPOSSIBLE
        groups = self._groups(sizes)
        path = self._search(groups, (self.wanted, room_left))
        return NoArrangement.IMPOSSIBLE if path is None else self._places(groups, path)

    def spend(self, steps: int = 1) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise _BudgetSpent

    # -- before the search ----------------------------------------------------------------------------------

    def _sizes(self, rooms: Iterable[Room]) -> dict[tuple[int, ...], list[str]]:
        """Group the nodes by what they have of use: cores, memory, storage, and GPUs of each type."""
        self.types = self._types(rooms := list(rooms))
        units = [gcd(*column) or 1 for column in zip(*(kind.sizes for kind in self.kinds), strict=True)]
        sums = [
            sum(map(mul, self.wanted, column))
            for column in zip(*(kind.sizes for kind in self.kinds), strict=True)
        ]
        sizes: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for room in rooms:
            if room.cpus < 0 or room.memory_mb < 0 or room.storage_gb < 0:
                continue
            exact = (
                *(
                    min(free // unit * unit, most)
                    for free, unit, most in zip(
                        (room.cpus, room.memory_mb, room.storage_gb), units, sums, strict=True
                    )
                ),
                *(room.gpus.get(gpu_type, 0) for gpu_type in self.types),
            )
            sizes[exact].append(room.node)
        useful: dict[tuple[int, ...], list[str]] = defaultdict(list)
        for exact, names in sizes.items():
            most = [
                min(copies(exact, kind, self.types), wanted)
                for kind, wanted in zip(self.kinds, self.wanted, strict=True)
            ]
            if any(most):
                # more than all of these together could use is of no use
                capped = (
                    min(exact[i], sum(n * kind.sizes[i] for n, kind in zip(most, self.kinds, strict=True)))
                    for i in range(3)
                )
                useful[*capped, *exact[3:]].extend(names)
        return useful

    def _types(self, rooms: Sequence[Room]) -> tuple[str, ...]:
        """Give the types of GPU that matter: those named and, where any will do, all."""
        named = {kind.gpu_type for kind in self.kinds if kind.gpu_type is not None}
        if any(kind.gpus and kind.gpu_type is None for kind in self.kinds):
            named.update(gpu_type for room in rooms for gpu_type in room.gpus)
        return tuple(sorted(named))

    def _room_for_any_type(self) -> tuple[int, ...] | None:
        """Give how many GPUs of each type whose limit may bind tasks of any type may use; None: too few.

        What tasks that name a type use of it does not depend on the arrangement.
        """
        fixed: Counter[str] = Counter()
        free_choice = 0
        for kind, wanted in zip(self.kinds, self.wanted, strict=True):
            if kind.gpu_type is not None:
                fixed[kind.gpu_type] += kind.gpus * wanted
            else:
                free_choice += kind.gpus * wanted
        left = {name: self.gpu_room[name] - fixed[name] for name in self.types if name in self.gpu_room}
        if any(left[name] < 0 for name in left if fixed[name]):
            return None
        self.limited = tuple(name for name in left if left[name] < free_choice)
        return tuple(max(0, left[name]) for name in self.limited)

    def _enough_by_count(self, sizes: Mapping[tuple[int, ...], Sequence[str]]) -> bool:
        """Tell whether all nodes have enough together of everything, and room for each kind by itself."""
        for i in range(3):
            asked = sum(n * kind.sizes[i] for n, kind in zip(self.wanted, self.kinds, strict=True))
            if asked > sum(size[i] * len(names) for size, names in sizes.items()):
                return False
        return all(
            sum(copies(size, kind, self.types) * len(names) for size, names in sizes.items()) >= wanted
            for kind, wanted in zip(self.kinds, self.wanted, strict=True)
        )

    def _groups(self, sizes: Mapping[tuple[int, ...], list[str]]) -> list[_Group]:
        """Find the combinations for every size of node; nodes with the same ones make one group."""
        by_patterns: dict[tuple[Pattern, ...], list[str]] = defaultdict(list)
        for size, names in sizes.items():
            found = largest_patterns(size, self.kinds, self.wanted, self.types, self.limited, self.spend)
            by_patterns[found].extend(names)
        weights = list(self._weights())
        groups = [
            # no more nodes than there are tasks can be of use
            _Group(
                names[: sum(self.wanted)],
                patterns,
                tuple(
                    max(sum(map(mul, weight, pattern.counts)) for pattern in patterns) for weight in weights
                ),
            )
            for patterns, names in by_patterns.items()
        ]
        # nodes with the least choice first, so that the others can fill the gaps
        return sorted(groups, key=lambda group: (len(group.patterns), sum(group.most)))

    def _weights(self) -> Iterator[tuple[int, ...]]:
        """Give weights under which the remaining tasks are compared with the most that nodes can hold."""
        number = len(self.kinds)
        for i in range(number):
            yield tuple(int(i == j) for j in range(number))
        if number > 2:
            for i in range(number):
                yield tuple(int(i != j) for j in range(number))
        yield (1,) * number
        yield tuple(kind.gpus for kind in self.kinds)
        for i in range(3):
            yield tuple(kind.sizes[i] for kind in self.kinds)
        for name in self.types:
            yield tuple(kind.gpus if kind.gpu_type == name else 0 for kind in self.kinds)

    # -- the search -----------------------------------------------------------------------------------------

    def _search(self, groups: Sequence[_Group], start: _State) -> list[tuple[int, Pattern]] | None:
        """Choose a combination for one node after another; give the choices as (group, pattern)."""
        weights = list(self._weights())
        after = [(0,) * len(weights)]
        for group in reversed(groups):
            rest = after[-1]
            after.append(
                tuple(more + most * len(group.nodes) for more, most in zip(rest, group.most, strict=True))
            )
        after.reverse()  # after[j]: what groups j and later hold at most

        def hopeless(j: int, left: int, counts: tuple[int, ...]) -> bool:
            most, rest = groups[j].most, after[j + 1]
            return any(
                sum(map(mul, weight, counts)) > most[i] * left + rest[i] for i, weight in enumerate(weights)
            )

        def choices(j: int, left: int, state: _State) -> Iterator[tuple[int, int, _State, int, Pattern]]:
            """Give what may follow: the next group, its nodes left, what is left to place, and the choice."""
            counts, room = state
            following: dict[_State, Pattern] = {}
            for pattern in groups[j].patterns:
                self.spend()
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

        if not groups or hopeless(0, len(groups[0].nodes), start[0]):
            return None
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
            # to be tried now: whoever comes here again has it behind it
            failed.add((j, left, state))
            path.append((chosen, pattern))
            stack.append(choices(j, left, state))
        return None

    def _weight_left(self, state: _State) -> tuple[int, ...]:
        counts = state[0]
        gpus = sum(n * kind.gpus for n, kind in zip(counts, self.kinds, strict=True))
        return gpus, sum(n * kind.cpus for n, kind in zip(counts, self.kinds, strict=True)), *counts

    def _places(self, groups: Sequence[_Group], path: Sequence[tuple[int, Pattern]]) -> tuple[Place, ...]:
        """Give every task of the gang its place by the chosen combinations."""
        names = [iter(group.nodes) for group in groups]
        waiting = {i: list(reversed(self.tasks[kind])) for i, kind in enumerate(self.kinds)}
        places: dict[int, Place] = {}
        for group, pattern in path:
            node = next(names[group])
            for i, gpu_type, count in pattern.parts:
                for _ in range(min(count, len(waiting[i]))):
                    places[waiting[i].pop()] = node, gpu_type
        return tuple(places[index] for index in sorted(places))


def _kind(demand: Demand) -> Kind:
    return Kind(
        demand.cpus,
        demand.memory_mb,
        demand.storage_gb,
        demand.gpus,
        demand.gpu_type if demand.gpus else None,
    )
