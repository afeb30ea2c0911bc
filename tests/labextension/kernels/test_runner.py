"""The program in a kernel's task, as a process of its own with a real kernel, without a scheduler."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pai_labextension.kernels import runner
from pai_labextension.kernels.runner import DELIMITER, Activity

PATIENCE = 60.0


def frames(kind: str, cause: str | None, **content: object) -> list[bytes]:
    parent = {} if cause is None else {"msg_type": cause}
    parts: tuple[object, ...] = ({"msg_type": kind}, parent, {}, content)
    return [b"topic", DELIMITER, b"signature", *(json.dumps(part).encode() for part in parts)]


def test_a_kernel_is_busy_from_the_begin_of_a_cell_to_its_end():
    activity = Activity(0.0)
    assert activity.note(frames("status", "execute_request", execution_state="busy"), 10.0)
    assert activity.idle(500.0) == 0.0
    assert not activity.note(frames("stream", "execute_request", text="…"), 600.0)
    assert activity.note(frames("status", "execute_request", execution_state="idle"), 700.0)
    assert activity.idle(705.0) == 5.0


def test_what_front_ends_ask_by_themselves_is_no_use_of_a_kernel():
    activity = Activity(0.0)
    for cause in ("kernel_info_request", "comm_info_request", None):
        assert not activity.note(frames("status", cause, execution_state="busy"), 50.0)
    assert activity.idle(60.0) == 60.0


def test_a_message_that_is_none_changes_nothing():
    activity = Activity(0.0)
    for broken in ([], [b"x"], [DELIMITER, b"s"], [DELIMITER, b"s", b"{", b"{}", b"{}", b"{}"]):
        assert not activity.note(broken, 1.0)
    assert activity.idle(3.0) == 3.0


def test_each_channel_has_a_port_of_its_own():
    assert len(set(runner.free_ports().values())) == len(runner.PORTS)


@pytest.mark.parametrize(
    ("own", "file"),
    [
        ("0::/pai/task\n", "pai/task/memory.events"),
        # in a container, which sees its own group as the root of all
        ("0::/\n", "memory.events"),
        ("4:memory:/pai/task\n0::/\n", "memory/pai/task/memory.oom_control"),
        ("4:memory:/docker/8d2f\n", "memory/memory.oom_control"),
    ],
    ids=["version 2", "version 2 in a container", "version 1", "version 1 in a container"],
)
def test_what_was_killed_for_want_of_memory_is_counted_in_either_version_of_control_groups(
    tmp_path: Path, own: str, file: str
) -> None:
    said = tmp_path / "cgroup"
    said.write_text(own)
    groups = tmp_path / "groups"
    counter = groups / file
    counter.parent.mkdir(parents=True)
    assert runner.oom_kills(str(groups), str(said)) == 0
    counter.write_text("low 0\noom 3\noom_kill 2\n")
    assert runner.oom_kills(str(groups), str(said)) == 2


def test_where_nothing_is_told_of_memory_nothing_was_killed_for_it(tmp_path: Path) -> None:
    assert runner.oom_kills(str(tmp_path), str(tmp_path / "none")) == 0


class Task:
    """A runner's process, and somebody who is attached to it."""

    def __init__(self, folder: Path, process: asyncio.subprocess.Process) -> None:
        self.folder, self.process = folder, process

    async def attach(self) -> asyncio.subprocess.Process:
        async with asyncio.timeout(PATIENCE):
            while not (self.folder / runner.SOCKET).exists():  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0.02)
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", runner.__file__, "attach", str(self.folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )


async def said(link: asyncio.subprocess.Process, **wanted: object) -> dict[str, Any]:
    """Return the next thing that has these values."""
    assert link.stdout is not None
    async with asyncio.timeout(PATIENCE):
        while line := await link.stdout.readline():
            heard: dict[str, Any] = json.loads(line)
            if wanted.items() <= heard.items():
                return heard
    raise AssertionError(f"it ended without {wanted}")


async def ask(link: asyncio.subprocess.Process, what: str, **values: object) -> dict[str, Any]:
    assert link.stdin is not None
    link.stdin.write(json.dumps({"id": what, "do": what, **values}).encode() + b"\n")
    return await said(link, id=what)


async def start(link: asyncio.subprocess.Process, folder: Path) -> dict[str, Any]:
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    return await ask(
        link, "start", argv=argv, env={"MINE": "5"}, cwd=str(folder), name="python3", key="secret"
    )


@pytest.fixture
async def task(request: pytest.FixtureRequest) -> AsyncIterator[Task]:
    """Run a runner; the parameter is its limit of idleness."""
    with tempfile.TemporaryDirectory(prefix="pai-runner-") as name:
        limit = getattr(request, "param", 0)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, runner.__file__, "serve", name, str(limit)), stdout=asyncio.subprocess.PIPE
        )
        yield Task(Path(name), process)
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_it_starts_signals_and_ends_a_kernel_and_whoever_attaches_later_knows_it(task: Task) -> None:
    link = await task.attach()
    assert (await said(link, event="hello"))["kernel"] is None
    answer = await start(link, task.folder)
    assert answer["ok"]["cwd"] == str(task.folder)
    connection = json.loads((task.folder / "connection.json").read_text())
    assert connection == answer["ok"]["connection"]
    assert (task.folder / "connection.json").stat().st_mode & 0o777 == 0o600
    assert "already" in (await start(link, task.folder))["error"]

    other = await task.attach()
    assert (await said(other, event="hello"))["kernel"]["connection"] == connection
    other.terminate()
    await other.wait()

    await ask(link, "signal", number=int(signal.SIGKILL))
    assert (await said(link, event="exited"))["kernel"]["code"] == -signal.SIGKILL
    # the task has its kernel's resources still, and takes another one
    assert "connection" in (await start(link, task.folder))["ok"]
    assert "error" in await ask(link, "dance")
    await ask(link, "end")
    assert await task.process.wait() == 0
    await link.wait()
    # nothing is left of it, the key least of all
    assert not task.folder.exists()


async def test_when_the_task_is_stopped_its_kernel_goes_with_it(task: Task) -> None:
    link = await task.attach()
    answer = await start(link, task.folder)
    assert "ok" in answer
    os.kill(task.process.pid, signal.SIGTERM)
    assert await task.process.wait() == 128 + signal.SIGTERM
    await link.wait()


@pytest.mark.parametrize("task", [1.5], indirect=True)
async def test_a_kernel_that_nobody_uses_ends_though_nobody_is_attached(task: Task) -> None:
    link = await task.attach()
    assert "ok" in await start(link, task.folder)
    link.terminate()
    await link.wait()
    assert await task.process.wait() == 0
    assert task.process.stdout is not None
    assert b"Nobody has used the kernel for 2 s: it ends." in await task.process.stdout.read()


async def test_a_folder_that_is_not_there_in_the_task_is_no_obstacle(task: Task) -> None:
    link = await task.attach()
    answer = await start(link, task.folder / "not there")
    assert answer["ok"]["cwd"] == os.environ.get("PAI_WORK_DIR", "/")
    await ask(link, "end")
    await link.wait()
