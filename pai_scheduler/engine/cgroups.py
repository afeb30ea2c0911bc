"""Usable cgroup hierarchies (version 2, version 1, or both) of this process.

Facts: the kernel's Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/*.rst.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.i18n import Message, msg

from .process.task_cgroup import TaskGroup
from .process.task_folder import GroupSpec

_PERIOD_US = 100_000
_CONTROLLERS = ("cpu", "memory", "pids")


@dataclass(frozen=True, slots=True)
class CgroupMount:
    """A mounted cgroup hierarchy, and where this process is in it. No `controllers`: version 2."""

    controllers: frozenset[str]
    point: Path
    own: Path


class Cgroups:
    """The parent groups below which each task gets groups of its own.

    `unified` (version 2) with its `controllers`, and a version 1 parent for each other controller.
    """

    def __init__(
        self, unified: Path | None, controllers: Iterable[str], parents: dict[str, Path], problem: str
    ) -> None:
        self.unified, self.controllers, self.parents = unified, frozenset(controllers), parents
        self._problem = problem

    @classmethod
    def find(cls, owner: Path, mounts: Sequence[CgroupMount] | None = None) -> Cgroups:
        """Try what works here, for the tasks below the folder `owner`. Makes the parent groups, no more."""
        name = f"pai-{hashlib.sha256(os.fsencode(owner.resolve())).hexdigest()[:10]}"
        problem = "there are no control groups here"
        unified, controllers, parents = None, frozenset[str](), {}
        for mount in own_mounts() if mounts is None else mounts:
            try:
                if not mount.controllers:
                    unified, controllers = _unified_parent(mount, name)
                    continue
                for controller in mount.controllers.intersection(_CONTROLLERS):
                    parents[controller] = _parent(mount, name, controller)
            except OSError as error:
                problem = f"{error.filename}: {error.strerror}"
        return cls(unified, controllers, parents, problem)

    @property
    def unlimited(self) -> Message | None:
        """Return what cannot be limited, and why; None where all can."""
        missing = [name for name in _CONTROLLERS if name not in self.controllers and name not in self.parents]
        if not missing:
            return None
        return msg(
            "Tasks run without limits on {controllers} on this machine, because the scheduler may not use "
            "the kernel's control groups for them ({problem}). Run it as root, or where they are delegated "
            "to it.",
            controllers=", ".join(missing),
            problem=self._problem,
        )

    def plan(self, task: str, *, cpus: int, memory_mb: int, pids: int) -> list[GroupSpec]:
        """Return which groups a task is to be in, with which limits (memory in MB)."""
        memory = str(memory_mb * 1024 * 1024)
        specs: dict[str, GroupSpec] = {}

        def limit(parent: Path, *files: tuple[str, str]) -> None:
            path = str(parent / task)
            specs.setdefault(path, {"path": path, "files": []})["files"].extend(files)

        if self.unified:
            limit(self.unified)
            if "cpu" in self.controllers:
                limit(self.unified, ("cpu.max", f"{cpus * _PERIOD_US} {_PERIOD_US}"))
            if "memory" in self.controllers:
                # one process too many is the whole task's end, not a training run without one of its workers
                limit(self.unified, ("memory.max", memory), ("memory.oom.group", "1"))
                if (self.unified / "memory.swap.max").exists():
                    limit(self.unified, ("memory.swap.max", "0"))
            if "pids" in self.controllers:
                limit(self.unified, ("pids.max", str(pids)))
        if parent := self.parents.get("cpu"):
            limit(
                parent, ("cpu.cfs_period_us", str(_PERIOD_US)), ("cpu.cfs_quota_us", str(cpus * _PERIOD_US))
            )
        if parent := self.parents.get("memory"):
            limit(parent, ("memory.limit_in_bytes", memory))
            if (parent / "memory.memsw.limit_in_bytes").exists():
                limit(parent, ("memory.memsw.limit_in_bytes", memory))
        if parent := self.parents.get("pids"):
            limit(parent, ("pids.max", str(pids)))
        return list(specs.values())

    def leftovers(self, but: Iterable[str]) -> list[TaskGroup]:
        """Find the groups of tasks other than those named."""
        keep = set(but)
        return [
            TaskGroup([{"path": str(entry), "files": []}])
            for parent in self._all_parents()
            for entry in _folders(parent)
            if entry.name not in keep
        ]

    def remove(self) -> None:
        """Remove the parent groups that hold no task."""
        for parent in self._all_parents():
            with contextlib.suppress(OSError):
                parent.rmdir()

    def _all_parents(self) -> set[Path]:
        return {*self.parents.values(), *([self.unified] if self.unified else [])}


def own_mounts() -> list[CgroupMount]:
    """Read from /proc which hierarchies there are and where this process stands in them."""
    own: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        own.update(dict.fromkeys(names.split(","), path))
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        root, point = left.split(" ")[3:5]
        controllers = (
            frozenset(options.split(",")).intersection(own) if kind == "cgroup" else frozenset[str]()
        )
        if kind == "cgroup" and not controllers.intersection(_CONTROLLERS):
            continue
        mine = Path(own[next(iter(controllers)) if controllers else ""])
        inside = Path(point) / mine.relative_to(root) if mine.is_relative_to(root) else Path(point)
        # inside a container /proc may tell the path as the host sees it
        mounts.append(CgroupMount(controllers, Path(point), inside if inside.is_dir() else Path(point)))
    return mounts


def own_limits(mounts: Sequence[CgroupMount]) -> tuple[float | None, int | None]:
    """Return the processors and the memory (bytes) that this process is limited to itself; None: no limit."""
    cpus: list[float] = []
    memory: list[int] = []
    for mount in mounts:
        group = mount.own
        while group.is_relative_to(mount.point):
            quota = _numbers(group / "cpu.max") or [
                *_numbers(group / "cpu.cfs_quota_us"),
                *_numbers(group / "cpu.cfs_period_us"),
            ]
            if len(quota) == 2 and quota[0] > 0:
                cpus.append(quota[0] / quota[1])
            memory += _numbers(group / "memory.max") or _numbers(group / "memory.limit_in_bytes")
            group = group.parent
    return min(cpus, default=None), min(memory, default=None)


def _parent(mount: CgroupMount, name: str, controller: str) -> Path:
    """Make the parent group of a version 1 controller, and prove that limits can be set below it."""
    parent = mount.own / name
    parent.mkdir(exist_ok=True)
    probe = parent / f"probe-{os.getpid()}"
    probe.mkdir(exist_ok=True)
    try:
        limit = {"cpu": "cpu.cfs_quota_us", "memory": "memory.limit_in_bytes", "pids": "pids.max"}[controller]
        (probe / limit).write_text("-1" if controller != "pids" else "max")
    finally:
        probe.rmdir()
    return parent


def _unified_parent(mount: CgroupMount, name: str) -> tuple[Path | None, frozenset[str]]:
    """Make the version 2 parent where most controllers can be had: here, or further up if we may go there.

    A group with processes in it cannot hand controllers down, so our own is seldom the place; and to move a
    process one must be allowed to write to the group that has both places below it.
    """
    best: tuple[Path | None, frozenset[str]] = (None, frozenset())
    problem: OSError | None = None
    group = mount.own
    while group.is_relative_to(mount.point):
        try:
            found = _try_unified(group, name)
        except OSError as error:
            problem = problem or error
        else:
            if best[0] is None or len(found[1]) > len(best[1]):
                if best[0] is not None:
                    best[0].rmdir()
                best = found
            elif found[0] != best[0]:
                found[0].rmdir()
        if len(best[1]) == len(_CONTROLLERS):
            break
        group = group.parent
    if best[0] is None and problem:
        raise problem
    return best


def _try_unified(group: Path, name: str) -> tuple[Path, frozenset[str]]:
    if not os.access(group / "cgroup.procs", os.W_OK):
        raise PermissionError(13, os.strerror(13), str(group / "cgroup.procs"))
    for controller in _CONTROLLERS:
        with contextlib.suppress(OSError):
            (group / "cgroup.subtree_control").write_text(f"+{controller}")
    parent = group / name
    parent.mkdir(exist_ok=True)
    available = (parent / "cgroup.controllers").read_text().split()
    usable = frozenset(available).intersection(_CONTROLLERS)
    for controller in usable:
        (parent / "cgroup.subtree_control").write_text(f"+{controller}")
    return parent, usable


def _folders(parent: Path) -> list[Path]:
    try:
        return [entry for entry in parent.iterdir() if entry.is_dir()]
    except FileNotFoundError:
        return []


def _numbers(file: Path) -> list[int]:
    try:
        return [int(word) for word in file.read_text().split() if word.lstrip("-").isdigit()]
    except OSError:
        return []
