"""Chooses which free GPUs of a node a task gets, by the fast links between them.

Fast links (NVLink, a PCIe switch, one NUMA node) join the GPUs of a group. Only the numbers of the GPUs
are chosen here: on which node, and how many of which type, has been decided by then.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pai_scheduler.i18n import msg

from .definition_fields import DefinitionError, read_list

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
