"""The Docker daemon is not there, or goes away: what a person is told, and what becomes of tasks."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.engine.docker.client import DaemonUnreachableError, answered
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.protocol import EndCause, Ended, EngineError, NodesChanged, Started
from pai_scheduler.testing.lab import PATIENCE, Lab, eventually, make_task
from tests.testbed.docker import Daemon, socket_folder
from tests.testbed.fixtures import provide
from tests.testbed.images import tiny_image

LIVES = "echo ready; exec sleep 100000"


async def refusal(tmp_path: Path, host: str) -> str:
    with pytest.raises(EngineError) as caught:
        await DockerEngine(tmp_path / "data", DockerSettings(host=host)).start()
    return str(caught.value)


async def test_no_socket_is_one_sentence_about_installing_docker(tmp_path: Path) -> None:
    said = await refusal(tmp_path, f"unix://{tmp_path}/docker.sock")
    assert said.startswith(f"There is no Docker socket at {tmp_path}/docker.sock. Install Docker")


async def test_a_socket_that_nobody_answers_on_is_one_sentence_about_starting_docker(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(tmp_path / "s"))
    said = await refusal(tmp_path, f"unix://{tmp_path}/s")
    assert said.startswith(f"Docker does not answer at unix://{tmp_path}/s: ")
    assert "Is dockerd running?" in said


async def test_a_file_that_is_no_socket_is_named(tmp_path: Path) -> None:
    (tmp_path / "s").touch()
    assert "is no socket" in await refusal(tmp_path, f"unix://{tmp_path}/s")


async def test_a_socket_that_is_not_ours_is_one_sentence_about_the_docker_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket(socket.AF_UNIX) as theirs:
        theirs.bind(str(tmp_path / "s"))
    # root may use every socket, and the tests may run as root
    monkeypatch.setattr(os, "access", lambda path, _mode: Path(path) != tmp_path / "s")
    assert "Join the group docker" in await refusal(tmp_path, f"unix://{tmp_path}/s")


async def test_a_daemon_that_hangs_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.client.OPEN_SECONDS", 0.2)
    # (a writer that nobody holds closes its connection, from Python 3.13 on)
    held: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_unix_server(lambda _, writer: held.append(writer), tmp_path / "s")
    assert "no answer within 0.2 seconds" in await refusal(tmp_path, f"unix://{tmp_path}/s")
    silent.close()
    for writer in held:
        writer.close()
        await writer.wait_closed()


# a daemon of one's own, to be ended and started again


@pytest.fixture(scope="module", params=["plain"])
def daemon(
    request: pytest.FixtureRequest, docker_host: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    """Run one for all the tests: who ends it starts it again. Where it is asked for, with live-restore."""
    del docker_host  # only where Docker can be had at all
    live_restore = request.param == "live-restore"
    root = tmp_path_factory.mktemp("daemon") / "root"
    own = Daemon(root, socket_folder(), own_network=True, live_restore=live_restore)

    def start() -> str:
        own.start()
        return tiny_image(own.host)

    provide(start)
    yield own
    own.remove()


#: What becomes of containers while their daemon is not there differs.
both_kinds = pytest.mark.parametrize("daemon", ["plain", "live-restore"], indirect=True, scope="module")


@pytest.fixture
async def lab(daemon: Daemon, tmp_path: Path) -> AsyncIterator[Lab]:
    await asyncio.to_thread(daemon.start)  # (runs, unless the test before has failed)
    engine = DockerEngine(tmp_path / "data", DockerSettings(host=daemon.host))
    await engine.start()
    lab = await Lab.over(engine, "local/tiny")
    yield lab
    await lab.clean()
    await engine.close()


async def supervisor(daemon: Daemon, name: str) -> tuple[int, int]:
    """Find a container's first process and the supervisor above it."""
    async with aiodocker.Docker(url=daemon.host) as docker:
        pid = (await docker.containers.container(name).show())["State"]["Pid"]
    stat = await asyncio.to_thread(Path(f"/proc/{pid}/stat").read_text)
    return pid, int(stat.rpartition(")")[2].split()[1])


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("open : no such file or directory", DaemonUnreachableError),
        ("open /x: no space left on device", aiodocker.DockerError),
    ],
)
async def test_a_daemon_that_has_closed_its_store_counts_as_one_that_does_not_answer(
    said: str, error: type[Exception]
) -> None:
    async def refuse() -> None:
        raise aiodocker.DockerError(
            500, f"failed to update store for object type *libnetwork.endpointCnt: {said}"
        )

    with pytest.raises(error):
        await answered(refuse, 1)


@both_kinds
async def test_a_crash_of_the_daemon_is_survived(lab: Lab, daemon: Daemon) -> None:
    task = await lab.start(LIVES)
    await lab.printed(task, "ready")
    await asyncio.to_thread(daemon.stop, signal.SIGKILL)
    await asyncio.to_thread(daemon.start)
    if daemon.live_restore:
        # it ran on, and is still ours
        await lab.engine.kill(task, 0)
        assert (await lab.ended(task)).cause is EndCause.KILLED
    else:
        # a daemon without live-restore ends what it finds, with SIGTERM
        assert (await lab.ended(task)).exit_code in (137, 143)
    _, ended = await lab.run("exit 3")
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 3)


@both_kinds
async def test_a_task_that_ended_with_the_whole_machine_is_lost(lab: Lab, daemon: Daemon) -> None:
    task = await lab.start(LIVES)
    await lab.printed(task, "ready")
    pids = await supervisor(daemon, task.name)
    await asyncio.to_thread(daemon.stop, signal.SIGKILL)
    for pid in reversed(pids):
        os.kill(pid, signal.SIGKILL)
    await asyncio.to_thread(daemon.start)
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.LOST, None)
    assert ended.reason is not None


async def test_a_task_launched_without_the_daemon_starts_when_it_is_back(lab: Lab, daemon: Daemon) -> None:
    (launch,) = await lab.prepare(lab.make("exit 6"))
    await asyncio.to_thread(daemon.stop)
    await lab.engine.launch(launch)
    await asyncio.to_thread(daemon.start)
    assert (await lab.ended(launch.task)).exit_code == 6


async def test_a_node_is_lost_while_its_daemon_is_away(
    lab: Lab, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.engine.AWAY_SECONDS", 0.1)

    def changes() -> list[bool]:
        return [event.nodes[0].ready for event in lab.events if isinstance(event, NodesChanged)]

    await asyncio.to_thread(daemon.stop)
    await eventually(lambda: changes() == [False], "the node is said to be lost")
    await asyncio.to_thread(daemon.start)
    await eventually(lambda: changes() == [False, True], "the node is said to be there again")


@pytest.fixture
def quick_pulse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the daemon more often, from the engine's start on."""
    monkeypatch.setattr("pai_scheduler.engine.docker.engine.PULSE_SECONDS", 0.1)
    monkeypatch.setattr("pai_scheduler.engine.docker.engine.AWAY_SECONDS", 1.0)


@pytest.mark.usefixtures("quick_pulse")
async def test_a_daemon_that_hangs_is_noticed_and_what_was_asked_of_it_happens_once(
    lab: Lab, daemon: Daemon
) -> None:
    def changes() -> list[bool]:
        return [event.nodes[0].ready for event in lab.events if isinstance(event, NodesChanged)]

    (launch,) = await lab.prepare(lab.make("echo once"))
    daemon.signal(signal.SIGSTOP)
    try:
        await lab.engine.launch(launch)
        await eventually(lambda: changes() == [False], "the node is said to be lost")
    finally:
        daemon.signal(signal.SIGCONT)
    await eventually(lambda: changes() == [False, True], "the node is said to be there again")
    assert (await lab.ended(launch.task)).exit_code == 0
    assert lab.output(launch.task) == "once\n"


@pytest.mark.usefixtures("quick_pulse")
async def test_calls_that_a_hanging_daemon_comes_to_when_they_were_given_up_start_nothing_twice(
    lab: Lab, daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given up while the daemon hangs, not because the machine is busy; and asked again soon where it is
    monkeypatch.setattr("pai_scheduler.engine.docker.client._CALL_SECONDS", 1.0)
    monkeypatch.setattr("pai_scheduler.engine.docker.client._RETRY_SECONDS", (0.1, 0.5))
    launches = await lab.prepare(
        *(lab.make("echo once", task=make_task(index=index, job_id="hang")) for index in range(4))
    )
    running = await lab.start(LIVES)
    await lab.printed(running, "ready")
    # stopped again and again in the middle of whatever it does
    for launch in launches:
        await lab.engine.launch(launch)
        await asyncio.sleep(0.15)
        daemon.signal(signal.SIGSTOP)
        await asyncio.sleep(1.5)
        daemon.signal(signal.SIGCONT)
    for launch in launches:
        assert (await lab.ended(launch.task)).exit_code == 0
        assert lab.output(launch.task) == "once\n"
        assert [type(event) for event in lab.told(launch.task)] == [Started, Ended]
    assert [type(event) for event in lab.told(running)] == [Started]


@pytest.mark.usefixtures("quick_pulse")
async def test_what_a_call_made_that_was_given_up_is_removed_after_the_break(
    lab: Lab, daemon: Daemon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.engine.SWEEP_SECONDS", 0.5)
    await lab.adopt([])
    kept = await lab.start(LIVES)
    await lab.printed(kept, "ready")
    instance = (tmp_path / "data" / "docker-instance").read_text()
    late = make_task()
    async with aiodocker.Docker(url=daemon.host) as docker:
        label = {"pai.instance": instance}
        await docker.containers.create(
            {"Image": "local/tiny", "Cmd": ["sleep", "100000"], "Labels": label}, name=late.name
        )
        await docker.networks.create({"Name": f"pai-{late.job_id}-0", "Labels": label})
        daemon.signal(signal.SIGSTOP)
        await asyncio.sleep(2)
        daemon.signal(signal.SIGCONT)

        async def is_there() -> bool:
            containers = await docker.containers.list(all=1)
            names = [name for each in containers for name in each["Names"]]
            names += [network["Name"] for network in await docker.networks.list()]
            assert f"/{kept.name}" in names
            assert f"pai-{kept.job_id}-0" in names
            return late.job_id in " ".join(names)

        async with asyncio.timeout(PATIENCE):
            while await is_there():  # noqa: ASYNC110 (what is waited for happens in other processes)
                await asyncio.sleep(0.1)
