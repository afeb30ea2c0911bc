"""Which limits a task can be given, by version 1 and version 2 of cgroups.

This machine has one arrangement of them; the others are folders that look the same.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pai_scheduler.engine.cgroups import CgroupMount, Cgroups, own_limits, own_mounts

LIMITS = {"cpus": 2, "memory_mb": 100, "pids": 50}


def unified_tree(point: Path, controllers: str) -> Path:
    """Make what a version 2 hierarchy looks like: a service's group in a session that was delegated to it."""
    own = point / "session" / "service"
    own.mkdir(parents=True)
    for group in (point, point / "session", own):
        (group / "cgroup.procs").write_text("")
        (group / "cgroup.subtree_control").write_text("")
    for group in (point, point / "session", own):
        (group / "cgroup.controllers").write_text(controllers)
    return own


@pytest.fixture
def made_groups_have_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Do what the kernel does: a group that is made has files, and is removed with them."""
    mkdir = Path.mkdir

    def make(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        mkdir(path, mode, parents, exist_ok)
        above = path.parent / "cgroup.controllers"
        if path.name.startswith("pai-"):
            # a group with processes in it hands nothing down
            (path / above.name).write_text("" if path.parent.name == "service" else above.read_text())
            (path / "memory.swap.max").write_text("max")

    monkeypatch.setattr(Path, "mkdir", make)
    monkeypatch.setattr(Path, "rmdir", shutil.rmtree)
    return tmp_path


def test_version_2_limits_all_where_the_session_hands_its_controllers_down(
    made_groups_have_files: Path,
) -> None:
    top = made_groups_have_files
    own = unified_tree(top, "cpu io memory pids")
    cgroups = Cgroups.find(top / "data", [CgroupMount(frozenset(), top, own)])
    assert cgroups.unlimited is None
    assert cgroups.unified is not None
    assert cgroups.unified.parent == top / "session"  # the nearest group that can
    assert not list(own.glob("pai-*"))
    (group,) = cgroups.plan("pai-j-0-main-0", **LIMITS)
    assert group["path"] == str(cgroups.unified / "pai-j-0-main-0")
    assert dict(group["files"]) == {
        "cpu.max": "200000 100000",
        "memory.max": str(100 * 1024**2),
        "memory.oom.group": "1",
        "memory.swap.max": "0",
        "pids.max": "50",
    }


def test_controllers_that_are_not_handed_down_are_named(made_groups_have_files: Path) -> None:
    top = made_groups_have_files
    own = unified_tree(top, "memory pids")
    cgroups = Cgroups.find(top / "data", [CgroupMount(frozenset(), top, own)])
    assert "without limits on cpu on this machine" in str(cgroups.unlimited)
    (group,) = cgroups.plan("pai-j-0-main-0", **LIMITS)
    assert "cpu.max" not in dict(group["files"])


def test_no_cgroups_at_all_are_no_limits(tmp_path: Path) -> None:
    cgroups = Cgroups.find(tmp_path, [])
    assert "cpu, memory, pids" in str(cgroups.unlimited)
    assert cgroups.plan("pai-j-0-main-0", **LIMITS) == []


def test_groups_that_cannot_be_made_are_the_reason_that_is_given(tmp_path: Path) -> None:
    own = tmp_path / "a-file-in-the-way"
    own.write_text("")
    cgroups = Cgroups.find(tmp_path, [CgroupMount(frozenset({"memory"}), tmp_path, own)])
    assert f"{own}/pai-" in str(cgroups.unlimited)
    assert "Not a directory" in str(cgroups.unlimited)


def test_two_data_folders_have_different_groups(tmp_path: Path) -> None:
    first, second = Cgroups.find(tmp_path / "a"), Cgroups.find(tmp_path / "b")
    try:
        if first.unlimited and second.unlimited:
            pytest.skip(f"cgroups: {first.unlimited}")
        paths = [{spec["path"] for spec in cgroups.plan("t", **LIMITS)} for cgroups in (first, second)]
        assert not paths[0] & paths[1]
    finally:
        first.remove()
        second.remove()


def test_leftovers_are_all_groups_but_those_of_known_tasks(tmp_path: Path) -> None:
    for name in ("known", "forgotten"):
        (tmp_path / name).mkdir()
    (left,) = Cgroups(None, (), {"memory": tmp_path}, "").leftovers(["known"])
    left.remove()
    assert [entry.name for entry in tmp_path.iterdir()] == ["known"]


def test_this_process_is_somewhere_in_each_hierarchy() -> None:
    for mount in own_mounts():
        assert mount.own.is_relative_to(mount.point)
        assert str(os.getpid()) in (mount.own / "cgroup.procs").read_text().split()


def test_the_tightest_limit_on_the_way_up_counts(tmp_path: Path) -> None:
    own = tmp_path / "outer" / "inner"
    own.mkdir(parents=True)
    (tmp_path / "outer" / "cpu.max").write_text("150000 100000\n")
    (own / "cpu.max").write_text("max 100000\n")
    (tmp_path / "outer" / "memory.max").write_text("max\n")
    (own / "memory.max").write_text("1000\n")
    assert own_limits([CgroupMount(frozenset(), tmp_path, own)]) == (1.5, 1000)
    (tmp_path / "outer" / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "outer" / "cpu.cfs_period_us").write_text("100000\n")
    assert own_limits([CgroupMount(frozenset({"cpu"}), tmp_path, tmp_path)]) == (None, None)
