"""A node, what it has and how its GPUs are linked, and the maintenance planned for it."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from fnmatch import fnmatchcase

from pai_scheduler.i18n import msg

from .config_fields import DefinitionError, read_list

# Maintenance: when machines will be down, as planned, and who must not start there any more before.


@dataclass(frozen=True, slots=True)
class Maintenance:
    """That machines are down from `begin` to `end` (ms since the epoch): why, and who says so.

    `nodes`: names, in which `*` stands for any part, and `?` for one letter.
    """

    name: str
    nodes: tuple[str, ...]
    begin: int
    end: int
    reason: str
    by: str

    def covers(self, node: str) -> bool:
        """Return whether a machine of this name is one of those."""
        return any(fnmatchcase(node, pattern) for pattern in self.nodes)


def in_words(time: int) -> str:
    """Write a time (ms since the epoch) as sentences about maintenance have it."""
    try:
        return datetime.fromtimestamp(time / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):
        return str(time)


_NONE: frozenset[int] = frozenset()


class Barring:
    """Tells on which nodes a job must not start, by how long it may run.

    `planned`: for each node, by its number, what is planned there. `notice_ms`: so long before maintenance
    nothing starts there that has no time limit.
    """

    def __init__(self, planned: Iterable[tuple[int, tuple[Maintenance, ...]]], notice_ms: int) -> None:
        numbers: dict[tuple[int, int], set[int]] = {}
        for number, windows in planned:
            for window in windows:
                numbers.setdefault((window.begin, window.end), set()).add(number)
        self._windows = sorted((begin, end, frozenset(there)) for (begin, end), there in numbers.items())
        self._begins = [begin for begin, _, _ in self._windows]
        self._first_end = min((end for _, end, _ in self._windows), default=0)
        self._notice_ms = notice_ms
        #: the nodes of the first windows, by how many they are, where none of them is over
        self._of_first: dict[int, frozenset[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._windows)

    @property
    def ends(self) -> list[int]:
        """Return when nodes come back, each time once."""
        return sorted({end for _, end, _ in self._windows})

    def numbers(self, now: int, run_ms: int | None) -> frozenset[int]:
        """Return the nodes where maintenance begins before a job would have ended that starts now.

        `run_ms`: its time limit; None: it has none. What is over bars nobody.
        """
        count = bisect_left(self._begins, now + (self._notice_ms if run_ms is None else run_ms))
        if not count:
            return _NONE
        if now >= self._first_end:
            return _NONE.union(*(there for _, end, there in self._windows[:count] if end > now))
        known = self._of_first.get(count)
        if known is None:
            known = self._of_first[count] = _NONE.union(*(there for *_, there in self._windows[:count]))
        return known


# A machine that tasks run on, and what it has.


class NodeState(StrEnum):
    """Scheduling state of a node: open to new tasks or not; running tasks go on, unless it is lost."""

    READY = "READY"
    PAUSED = "PAUSED"  # by an administrator, for a while
    DRAINED = "DRAINED"  # by an administrator, who wants it empty: nothing new, what runs may end by itself
    FULL = "FULL"  # hardly any room is left on its disk
    LOST = "LOST"  # it does not answer


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `index` is its number on the node; `simulated`: declared, not found.

    `memory_mb`: how much memory it has; None: it is not known.
    """

    index: int
    type: str
    uuid: str = ""
    simulated: bool = False
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """Free space and total size of a disk; both in MB."""

    free_mb: int
    total_mb: int

    def differs_noticeably(self, other: DiskSpace | None) -> bool:
        """Return whether who knows `other` is to be told of this.

        That is so where another tenth of what was free is free or is not, or another hundredth of the disk:
        of a disk that fills, the last gigabytes are told in small steps, and a large one with much room is
        told seldom.
        """
        if other is None or self.total_mb != other.total_mb:
            return True
        step = min(other.free_mb / 10, self.total_mb / 100)
        return self.free_mb != other.free_mb and abs(self.free_mb - other.free_mb) >= step


@dataclass(frozen=True, slots=True)
class Closing:
    """That an administrator keeps new tasks from a machine: who, why, and since when (ms since the epoch).

    `until`: when it is opened again by itself, as after maintenance; None: when somebody opens it.
    """

    by: str
    reason: str
    since: int
    until: int | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A machine and its capacity: memory in MB, storage in GB. Not what is free.

    `rack`: the same for machines near each other (a rack, or a switch); empty: not known. `state` is what its
    engine tells; `closing` is beside it, and None where it is open. `maintenance`: what is planned there and
    not over, the first to begin first. `gpu_links`: groups of GPUs, by index, that are joined by fast links,
    each GPU in one at most; one that the node does not have is no matter.
    """

    name: str
    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: tuple[Gpu, ...] = ()
    state: NodeState = NodeState.READY
    rack: str = ""
    closing: Closing | None = None
    maintenance: tuple[Maintenance, ...] = ()
    gpu_links: tuple[tuple[int, ...], ...] = ()

    @property
    def ready(self) -> bool:
        """Return whether it may get something new."""
        return self.state is NodeState.READY and self.closing is None

    @property
    def gpu_counts(self) -> Mapping[str, int]:
        """Count the GPUs by type."""
        return Counter(gpu.type for gpu in self.gpus)


# Chooses which free GPUs of a node a task gets, by the fast links between them.
#
# Fast links (NVLink, a PCIe switch, one NUMA node) join the GPUs of a group. Only the numbers of the GPUs
# are chosen here: on which node, and how many of which type, has been decided by then.

#: GPUs by number that are joined by a fast link.
Group = tuple[int, ...]


def read_gpu_links(value: object, path: str) -> tuple[Group, ...]:
    """Read the groups of a node in the cluster file; DefinitionError where a GPU is none, or in two."""
    groups: list[Group] = []
    taken: set[int] = set()
    for number, group in enumerate(read_list([] if value is None else value, path)):
        here = read_list(group, f"{path}[{number}]")
        for index in here:
            if not isinstance(index, int) or isinstance(index, bool) or index < 0:
                text = msg("A GPU is its number on the machine, 0 or more: for example [[0, 1], [2, 3]].")
                raise DefinitionError(f"{path}[{number}]", text)
            if index in taken:
                raise DefinitionError(f"{path}[{number}]", msg("GPU {index} is named twice.", index=index))
            taken.add(index)
        groups.append(tuple(here))
    return tuple(groups)


def groups_of(links: Sequence[Group], gpus: Sequence[int]) -> tuple[Group, ...]:
    """Return the groups of some GPUs of a node; one that is linked to none of them is a group by itself."""
    here = [tuple([index for index in group if index in gpus]) for group in links]
    linked = {index for group in here for index in group}
    return (*filter(None, here), *((index,) for index in gpus if index not in linked))


def choose(groups: Sequence[Group], free: Collection[int], count: int) -> tuple[int, ...]:
    """Choose `count` of the `free` GPUs, lowest first; there are so many.

    From as few groups as possible, of these from those that have the fewest left over; one GPU comes from a
    group that is broken already, where there is one. `groups` holds each GPU once.
    """
    left = [(group, [index for index in group if index in free]) for group in groups]
    # (the first of equally good ones is taken, so those that are broken already come first)
    left.sort(key=lambda one: len(one[1]) == len(one[0]))
    parts = [part for _, part in left if part]
    if count == 1:
        whole = {part[0]: len(part) == len(group) and len(group) > 1 for group, part in left if part}
        return (min(parts, key=lambda part: (whole[part[0]], len(part)))[0],)
    # which groups, by how many they are and how many GPUs they have together
    found: dict[tuple[int, int], tuple[int, ...]] = {(0, 0): ()}
    for place, part in enumerate(parts):
        for (used, gpus), places in list(found.items()):
            if gpus < count:
                found.setdefault((used + 1, gpus + len(part)), (*places, place))
    best = min(key for key in found if key[1] >= count)
    # what is left over stays together: each group but the largest is taken whole
    chosen = sorted((parts[place] for place in found[best]), key=len)
    return tuple(sorted([index for part in chosen for index in part][:count]))
