"""The SSH server of a task: started when somebody wants in, found again, gone with the task."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.engine.process import procfs, ssh_server
from pai_scheduler.engine.protocol import EndCause, NoSshEndpointError, SshEndpoint
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.task_files import AUTHORIZED_KEYS, HOST_KEY
from pai_scheduler.testing.engine import FOREVER, Reopen
from pai_scheduler.testing.lab import Lab, eventually, processes_with
from pai_scheduler.testing.ports import free_port
from pai_scheduler.testing.ssh_tasks import log_in, server_files


@pytest.fixture(name="free_port")
def own_free_port() -> int:
    return free_port()


@pytest.fixture
def with_ssh(free_port: int) -> dict[str, Any]:
    """Return what a launch has of an SSH server."""
    return {"ssh_port": free_port}


def servers(data_dir: Path, task: TaskRef) -> list[int]:
    """Find the servers of a task."""
    folder = str(data_dir / "tasks" / task.name)
    return [pid for pid in processes_with(folder) if "ssh.runtime.process" in _command(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def greets(way: SshEndpoint) -> bool:
    """Return whether an SSH server answers there."""
    try:
        with socket.create_connection((way.host, way.port), timeout=10) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


async def test_a_task_that_runs_has_a_server_once_somebody_asks(
    lab: Lab, with_ssh: dict[str, Any], data_dir: Path
) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    assert not servers(data_dir, task)
    way = await lab.engine.ssh_endpoint(task)
    assert way == SshEndpoint("127.0.0.1", with_ssh["ssh_port"], isolated=False)
    assert await asyncio.to_thread(greets, way)


async def test_keys_come_with_the_server_and_are_the_jobs_also_where_the_task_spoilt_its_own(
    lab: Lab, reopen: Reopen, image: str, with_ssh: dict[str, Any], data_dir: Path
) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    private = data_dir / "tasks" / task.name / "private"
    assert not private.exists()
    # whoever was killed meanwhile left half of a file
    private.mkdir(mode=0o700)
    (private / f"{HOST_KEY}.new").write_bytes(b"half")
    (private / AUTHORIZED_KEYS).write_text("ssh-ed25519 somebody's\n")
    await lab.stop_listening()
    later = await Lab.over(await reopen(), image)
    later.gangs, lab.gangs = lab.gangs, []
    await later.adopt([task])
    await later.started(task)
    async with await log_in(await later.engine.ssh_endpoint(task), task.job_id):
        pass
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in private.iterdir()} == {
        HOST_KEY: 0o600,
        AUTHORIZED_KEYS: 0o600,
    }
    await later.clean()


async def test_a_release_waits_for_keys_that_are_being_written(
    lab: Lab, with_ssh: dict[str, Any], data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, go = threading.Event(), threading.Event()

    def slowly(of: TaskRef) -> Mapping[str, bytes]:
        going.set()
        go.wait(60)
        return server_files(of)

    monkeypatch.setattr(lab.engine, "_ssh_files", slowly)
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    asked = asyncio.create_task(lab.engine.ssh_endpoint(task))
    assert await asyncio.to_thread(going.wait, 60)
    await lab.engine.kill(task, 0)
    await lab.ended(task)
    releasing = asyncio.create_task(lab.engine.release(lab.gangs[0]))
    done, _ = await asyncio.wait([releasing], timeout=0.1)
    assert not done
    go.set()
    with pytest.raises(NoSshEndpointError, match="does not run"):
        await asked
    await releasing
    assert not list(data_dir.rglob(f"{HOST_KEY}*"))


async def test_simultaneous_requests_get_the_same_server(
    lab: Lab, with_ssh: dict[str, Any], data_dir: Path
) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    ways = await asyncio.gather(*(lab.engine.ssh_endpoint(task) for _ in range(20)))
    assert len(set(ways)) == 1
    (server,) = servers(data_dir, task)
    assert await lab.engine.ssh_endpoint(task) == ways[0]
    assert servers(data_dir, task) == [server]


async def test_the_server_is_found_again_after_a_restart_of_the_service(
    lab: Lab, reopen: Reopen, image: str, with_ssh: dict[str, Any], data_dir: Path
) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    way = await lab.engine.ssh_endpoint(task)
    found = servers(data_dir, task)
    await lab.stop_listening()
    later = await Lab.over(await reopen(), image)
    later.gangs, lab.gangs = lab.gangs, []
    await later.adopt([task])
    await later.started(task)
    assert await later.engine.ssh_endpoint(task) == way
    assert servers(data_dir, task) == found
    await later.clean()


async def test_a_server_that_was_killed_is_started_again_and_the_task_runs_on(
    lab: Lab, with_ssh: dict[str, Any], data_dir: Path
) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    way = await lab.engine.ssh_endpoint(task)
    (first,) = servers(data_dir, task)
    os.kill(first, signal.SIGKILL)
    folder = data_dir / "tasks" / task.name
    await eventually(lambda: not ssh_server.look(folder).alive, "the server is dead")
    assert await lab.engine.ssh_endpoint(task) == way
    assert await asyncio.to_thread(greets, way)
    assert servers(data_dir, task) != [first]
    assert await lab.engine.usage(task) is not None


@pytest.mark.usefixtures("cgroups_or_none")
async def test_the_server_ends_with_the_task(lab: Lab, with_ssh: dict[str, Any], data_dir: Path) -> None:
    task = await lab.start("read line < fifo || mkfifo fifo; read line < fifo; exit 5", **with_ssh)
    await lab.started(task)
    way = await lab.engine.ssh_endpoint(task)
    fifo = data_dir / "tasks" / task.name / "work" / "fifo"
    await eventually(fifo.exists, "the command waits")
    fifo.write_text("go\n")
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 5)
    assert not servers(data_dir, task)
    assert not greets(way)
    with pytest.raises(NoSshEndpointError, match="does not run"):
        await lab.engine.ssh_endpoint(task)


async def test_the_server_does_not_outlive_a_supervisor_that_is_killed(
    lab: Lab, with_ssh: dict[str, Any], data_dir: Path
) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    started = await lab.started(task)
    await lab.engine.ssh_endpoint(task)
    command = procfs.process(int(started.container_id))
    assert command is not None
    os.kill(command.parent, signal.SIGKILL)
    assert (await lab.ended(task)).cause is EndCause.LOST
    await eventually(lambda: not servers(data_dir, task), "the server is gone too")


async def test_a_held_task_can_be_entered(lab: Lab, with_ssh: dict[str, Any]) -> None:
    task = await lab.start("exit 3", hold_on_failure=True, **with_ssh)
    await lab.held(task)
    assert await asyncio.to_thread(greets, await lab.engine.ssh_endpoint(task))


async def test_a_released_task_leaves_nothing_of_its_server(
    lab: Lab, with_ssh: dict[str, Any], data_dir: Path
) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    await lab.engine.ssh_endpoint(task)
    await lab.engine.kill(task, 0)
    await lab.ended(task)
    await lab.engine.release(lab.gangs[0])
    left = {entry.name for entry in (data_dir / "ended" / task.name).iterdir()}
    assert left == {"exit.json", "lock", "log"}


# no way in


@pytest.fixture
def occupied(free_port: int) -> Iterator[int]:
    """Return the port to another program."""
    with socket.create_server(("127.0.0.1", free_port)):
        yield free_port


async def test_a_port_that_another_program_has_is_named_and_is_no_failure_of_the_task(
    lab: Lab, with_ssh: dict[str, Any], occupied: int, data_dir: Path
) -> None:
    launch = lab.make(FOREVER, **with_ssh)
    task = launch.task
    # it is among those that the scheduler gave the task
    await lab.prepare(launch, ports={task: {"ssh": (occupied,)}})
    await lab.engine.launch(launch)
    await lab.started(task)
    with pytest.raises(NoSshEndpointError, match=rf"Port {occupied} of this machine, .* is taken by another"):
        await lab.engine.ssh_endpoint(task)
    assert not servers(data_dir, task)
    assert await lab.engine.usage(task) is not None


async def test_a_port_that_was_taken_is_tried_again(lab: Lab, with_ssh: dict[str, Any]) -> None:
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    with socket.create_server(("127.0.0.1", with_ssh["ssh_port"])), pytest.raises(NoSshEndpointError):
        await lab.engine.ssh_endpoint(task)
    assert await asyncio.to_thread(greets, await lab.engine.ssh_endpoint(task))


async def test_what_is_wrong_with_its_files_is_told(
    lab: Lab, with_ssh: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lab.engine, "_ssh_files", lambda task: {**server_files(task), HOST_KEY: b"no key"})
    task = await lab.start(FOREVER, **with_ssh)
    await lab.started(task)
    with pytest.raises(NoSshEndpointError, match=r"cannot work: .*[Kk]ey"):
        await lab.engine.ssh_endpoint(task)


async def test_a_task_that_was_started_without_a_port_has_no_way_in(lab: Lab) -> None:
    task = await lab.start(FOREVER)
    await lab.started(task)
    with pytest.raises(NoSshEndpointError, match="without an SSH server"):
        await lab.engine.ssh_endpoint(task)


async def test_a_task_that_never_ran_has_no_way_in(lab: Lab, with_ssh: dict[str, Any]) -> None:
    launch = lab.make(FOREVER, **with_ssh)
    with pytest.raises(NoSshEndpointError, match="does not run"):
        await lab.engine.ssh_endpoint(launch.task)


async def test_a_server_that_cannot_start_is_given_up_in_the_end(
    lab: Lab, with_ssh: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.process.ssh._PATIENCE", 0.5)
    task = await lab.start(FOREVER, **with_ssh)
    started = await lab.started(task)
    command = procfs.process(int(started.container_id))
    assert command is not None
    # a supervisor that obeys nobody
    os.kill(command.parent, signal.SIGSTOP)
    try:
        with pytest.raises(NoSshEndpointError, match="did not start within"):
            await lab.engine.ssh_endpoint(task)
    finally:
        os.kill(command.parent, signal.SIGCONT)
