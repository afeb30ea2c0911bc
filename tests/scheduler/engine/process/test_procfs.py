"""What /proc tells: processes, families, environments."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pai_scheduler.engine.process import procfs


def wait_for(true: Callable[[], bool]) -> None:
    for _ in range(1000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it does not come true")


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """Return a child and a grandchild of this process, marked in their environment."""
    child = subprocess.Popen(
        ["bash", "-c", "sleep 1000 & echo $!; wait"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "A_MARK": f"of {os.getpid()}"},
    )
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    # between its fork and its `sleep` it has, for a moment, no memory at all
    wait_for(lambda: Path(f"/proc/{grandchild}/cmdline").read_bytes() == b"sleep\x001000\x00")
    yield child.pid, grandchild
    os.kill(grandchild, 9)
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_process_has_a_parent_and_uses_memory(family: tuple[int, int]) -> None:
    child, grandchild = family
    found = procfs.process(grandchild)
    assert found is not None
    assert found.parent == child
    assert found.memory_bytes > 0
    assert procfs.process(os.getpid()).cpu_seconds > 0  # type: ignore[union-attr]


def test_there_is_nothing_to_tell_of_a_zombie_or_of_nobody() -> None:
    child = subprocess.Popen(["true"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert procfs.process(child.pid) is None
    child.wait()
    assert procfs.process(child.pid) is None


def test_children_and_descendants_are_found(family: tuple[int, int]) -> None:
    child, grandchild = family
    assert procfs.children(child) == [grandchild]
    assert {process.pid for process in procfs.tree(os.getpid())} >= {child, grandchild}
    assert os.getpid() not in {process.pid for process in procfs.tree(os.getpid())}


def test_children_are_found_on_a_kernel_that_does_not_list_them(
    family: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    read_text = Path.read_text

    def without_lists(path: Path) -> str:
        if path.name == "children":
            raise FileNotFoundError(path)
        return read_text(path)

    monkeypatch.setattr(Path, "read_text", without_lists)
    assert procfs.children(family[0]) == [family[1]]


def test_processes_are_found_by_their_environment(family: tuple[int, int]) -> None:
    assert set(procfs.with_variable("A_MARK", f"of {os.getpid()}")) == set(family)
    assert procfs.with_variable("A_MARK", "of") == []


def test_a_name_with_brackets_and_spaces_confuses_nobody() -> None:
    with open("/proc/self/comm") as comm:
        before = comm.read().strip()
    try:
        with open("/proc/self/comm", "w") as comm:
            comm.write("a) Z (b")
        found = procfs.process(os.getpid())
    finally:
        with open("/proc/self/comm", "w") as comm:
            comm.write(before)
    assert found is not None
    assert found.parent == os.getppid()
