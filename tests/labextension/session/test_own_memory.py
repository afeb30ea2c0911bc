"""What control groups say of a server's memory, of both versions, on a machine and in a container."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from pai_labextension.session.memory import own_memory

V1 = "25 23 0:21 {root} {mount} rw,nosuid shared:8 - cgroup cgroup rw,memory\n"
V2 = "25 23 0:21 {root} {mount} rw,nosuid shared:8 - cgroup2 cgroup2 rw,nsdelegate\n"
NOTHING = {"limitMB": None, "killed": None}


class Machine:
    """Files as the kernel shows them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mount = folder, folder / "mount"
        self.mount.mkdir()

    def group(self, path: str, **files: str) -> None:
        (self.mount / path).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (self.mount / path / name.replace("__", ".")).write_text(text)

    def memory(self, cgroups: str, mounts: str) -> object:
        (self.folder / "cgroup").write_text(cgroups)
        (self.folder / "mountinfo").write_text(mounts.format(root="/", mount=self.mount))
        return own_memory(self.folder / "cgroup", self.folder / "mountinfo")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_version_1_on_a_machine_has_a_folder_for_the_task(machine: Machine) -> None:
    files = {"memory__limit_in_bytes": "268435456\n", "memory__oom_control": "under_oom 0\noom_kill 2\n"}
    machine.group("pai/task", **files)
    machine.group("", memory__oom_control="oom_kill 9\n")
    found = machine.memory("9:cpu:/other\n4:memory:/pai/task\n0::/\n", V2 + V1)
    assert found == {"limitMB": 256, "killed": 2}


def test_version_1_in_a_container_is_the_mount_itself(machine: Machine) -> None:
    machine.group("", memory__limit_in_bytes="1073741824\n", memory__oom_control="oom_kill 0\n")
    assert machine.memory("4:memory:/docker/0123\n", V1) == {"limitMB": 1024, "killed": 0}


def test_version_2_has_other_files(machine: Machine) -> None:
    machine.group("task", memory__max="536870912\n", memory__events="low 0\noom 4\noom_kill 3\n")
    assert machine.memory("0::/task\n", V2) == {"limitMB": 512, "killed": 3}


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n", ""])
def test_no_limit_is_none(machine: Machine, limit: str) -> None:
    name = "memory__max" if limit == "max\n" else "memory__limit_in_bytes"
    machine.group("", **{name: limit}, memory__events="oom_kill 0\n", memory__oom_control="oom_kill 0\n")
    cgroups, mounts = ("0::/\n", V2) if limit == "max\n" else ("4:memory:/\n", V1)
    assert machine.memory(cgroups, mounts) == {"limitMB": None, "killed": 0}


def test_where_there_are_no_control_groups_nothing_is_known(machine: Machine, tmp_path: Path) -> None:
    assert machine.memory("0::/\n", V2) == NOTHING
    assert machine.memory("", "") == NOTHING
    assert own_memory(tmp_path / "none", tmp_path / "none") == NOTHING


async def test_the_page_asks_for_it(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("pai/memory", params={"kernel": "no-such-kernel"})
    assert answer.status_code == 200
    assert answer.json().keys() == {"limitMB", "lost"}
    assert answer.json()["lost"] is False
