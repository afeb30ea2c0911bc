"""Which combinations of a gang's kinds of task one node can hold: the part of packing that knows a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Kind(NamedTuple):
    """What equal tasks need each; `gpu_type` None: any, but all of one type."""

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


def copies(size: Sequence[int], kind: Kind, types: Sequence[str]) -> int:
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
    kinds: Sequence[Kind],
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
    kinds: Sequence[Kind],
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
