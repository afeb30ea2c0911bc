"""The Docker engine: what every engine does, and what only containers can do."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiodocker
import pytest

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.context import EngineContext, KillMark
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.protocol import EndCause, Ended, NodesChanged, Notice, Progress, Started
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.engine import FOREVER, EngineConformance, Reopen
from pai_scheduler.testing.lab import Lab, eventually, make_gang, make_task

OpenDocker = Callable[..., Awaitable[DockerEngine]]


class TestDockerEngine(EngineConformance):
    """The conformance suite."""

    @pytest.fixture
    def reopen(self, open_docker: OpenDocker) -> Reopen:
        return open_docker

    @pytest.fixture
    async def engine(self, open_docker: OpenDocker, runtime_image: str) -> DockerEngine:
        return await open_docker(runtime_image=runtime_image)

    @pytest.fixture
    def image(self, debian_image: str) -> str:
        return debian_image


async def test_a_task_was_killed_also_when_the_clock_is_set_back_between_the_kill_and_its_end(
    docker_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember = EngineContext.remember

    def an_hour_ahead(self: EngineContext, kill_mark: KillMark, task: TaskRef) -> int:
        """Tell the time of the kill as it is before the clock is set back by an hour."""
        return remember(self, kill_mark, task) + 3_600_000

    monkeypatch.setattr(EngineContext, "remember", an_hour_ahead)
    task = await docker_lab.start(FOREVER)
    await docker_lab.engine.kill(task, 0)
    assert (await docker_lab.ended(task)).cause is EndCause.KILLED


# limits


async def test_a_task_over_its_memory_limit_ends_as_out_of_memory_with_its_child_too(docker_lab: Lab) -> None:
    hog = "python3 -c 'x = bytearray(400 << 20)'"
    (_, itself), (_, parent) = await docker_lab.run_gang(
        hog, f"{hog} || {{ echo lost a worker; exit 1; }}", memory_mb=100
    )
    assert (itself.cause, itself.exit_code) == (EndCause.OOM, 137)
    assert (parent.cause, parent.exit_code) == (EndCause.OOM, 1)


async def test_a_process_killed_for_memory_is_noticed_while_the_task_goes_on_and_at_its_end(
    docker_lab: Lab,
) -> None:
    hog = "python3 -c 'x = bytearray(400 << 20)'"
    goes_on, at_its_end = await docker_lab.start_gang(
        f"{hog}; exec sleep 100000", f"{hog} || true", memory_mb=100
    )
    ended = await docker_lab.ended(at_its_end)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 0)
    await eventually(lambda: bool(docker_lab.noticed(goes_on)), "that a process was killed is noticed")
    for task in (goes_on, at_its_end):
        (noticed,) = docker_lab.noticed(task)
        assert noticed.notice is Notice.PROCESS_KILLED
        assert "used more than its 100 MB" in str(noticed.message)
    assert docker_lab.events.index(docker_lab.noticed(at_its_end)[0]) < docker_lab.events.index(ended)


async def test_a_container_has_what_was_asked_for_and_no_more_rights_than_docker_gives_by_default(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    (task,) = await docker_lab.start_gang(
        {
            "command": """python3 - <<'END'
from pathlib import Path
def read(*names):
    for name in names:
        if Path("/sys/fs/cgroup", name).exists():
            return Path("/sys/fs/cgroup", name).read_text().split()[0]
print(int(read("memory/memory.limit_in_bytes", "memory.max")) >> 20)
print(int(read("pids/pids.max", "pids.max")))
print(int(read("cpu/cpu.cfs_quota_us", "cpu.max")) // 1000)
import os
disk = os.statvfs("/dev/shm")
print(disk.f_blocks * disk.f_frsize >> 20)
END
echo $NVIDIA_VISIBLE_DEVICES
grep NoNewPrivs /proc/self/status
exec sleep 100000""",
            "env": {"NVIDIA_VISIBLE_DEVICES": "0,1"},
        },
        memory_mb=150,
        shm_mb=32,
        cpus=1,
    )
    await docker_lab.printed(task, "NoNewPrivs")
    # (no GPU was asked for: whatever a variable says, the container sees no real one)
    assert docker_lab.output(task).split() == ["150", "4096", "100", "32", "void", "NoNewPrivs:", "1"]
    found = await inspect(docker, task)
    host = found["HostConfig"]
    assert host["Privileged"] is False
    assert not host["CapAdd"]
    assert not host["Binds"]
    assert not host["PortBindings"]
    assert host["NetworkMode"] == f"pai-{task.job_id}-{task.attempt}"
    assert host["RestartPolicy"]["Name"] == "no"
    # whose it is
    keys = ("user", "job-name", "job-id", "attempt", "role", "index")
    assert {key: found["Config"]["Labels"][f"pai.{key}"] for key in keys} == {
        "user": "alice",
        "job-name": "a-job",
        "job-id": task.job_id,
        "attempt": "0",
        "role": task.role,
        "index": "0",
    }


async def test_a_task_that_forks_without_end_is_stopped_by_its_process_limit(docker_lab: Lab) -> None:
    task, ended = await docker_lab.run(
        """python3 -c '
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
count = 0
try:
    while count < 5000:
        if os.fork() == 0:
            signal.pause()
        count += 1
except OSError as error:
    print(count < 4096, error.strerror)
'""",
        memory_mb=4000,
    )
    assert ended.exit_code == 0
    assert docker_lab.output(task) == "True Resource temporarily unavailable\n"


async def test_a_disk_that_cannot_be_limited_here_after_all_is_not_limited(
    open_docker: OpenDocker, debian_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.engine.limits_storage", lambda _info: True)
    lab = await Lab.over(await open_docker(), debian_image)
    for _ in range(2):
        _, ended = await lab.run("exit 3", storage_gb=5)
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 3)
    await lab.clean()


# what a container may do


async def test_the_working_folder_is_the_one_that_is_named_and_anybody_may_write_in_it(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str
) -> None:
    image = "local/not-root"
    await make_image(docker, image, f'FROM {debian_image}\nUSER 1234\nENTRYPOINT ["false"]\n')
    task, ended = await docker_lab.run('pwd; echo "$PAI_WORK_DIR"; id -u; touch file && ls', image=image)
    work_dir = docker_lab.engine.work_dir(task)
    assert ended.exit_code == 0
    assert docker_lab.output(task) == f"{work_dir}\n{work_dir}\n1234\nfile\n"


# what goes wrong


async def test_what_cannot_be_started_is_said_in_one_sentence(docker_lab: Lab) -> None:
    ends = await docker_lab.run_gang(
        {"image": "../../containers/json?x"},
        "#" * 2**17,
        {"env": {"LONG": "#" * 2**18}},
        {"image": "127.0.0.1:1/no/registry:here"},
    )
    no_name, long_command, long_variable, no_registry = (ended for _, ended in ends)
    for refused in (no_name, long_command, long_variable):
        assert refused.cause is EndCause.REFUSED
    assert str(no_name.reason) == "../../containers/json?x is not a name an image can have."
    assert str(long_command.reason) == "The command is 128 KiB long; Linux allows no more than 127."
    assert str(long_variable.reason).startswith("The environment variable LONG is 256 KiB long;")
    assert (no_registry.cause, no_registry.exit_code) == (EndCause.LAUNCH_FAILED, None)
    assert str(no_registry.reason).startswith("The image 127.0.0.1:1/no/registry:here could not be pulled.")


async def test_what_is_unusual_runs_as_ever(docker_lab: Lab) -> None:
    (_, longest), (_, code_255), (task, wants_more) = await docker_lab.run_gang(
        # (as long as Linux allows)
        "exit 3".ljust(127 * 1024),
        "exit 255",
        # (a declared node may have more CPUs than the machine)
        {"command": "true", "cpus": 1000},
    )
    assert longest.exit_code == 3
    assert (code_255.cause, code_255.exit_code) == (EndCause.EXITED, 255)
    assert wants_more.exit_code == 0
    kinds = [
        type(event)
        for event in docker_lab.events
        if not isinstance(event, Progress | NodesChanged) and event.task == task
    ]
    assert kinds == [Started, Ended]
    assert docker_lab.told(task)[0].time <= docker_lab.told(task)[1].time


async def test_an_image_without_a_shell_is_named_as_the_reason(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    await make_image(docker, "local/empty", "FROM scratch\nLABEL nothing=here\n")
    _, ended = await docker_lab.run("true", image="local/empty")
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 127)
    assert str(ended.reason) == "The image has no /bin/sh, which is needed to run a job's command."


async def test_a_container_that_somebody_removes_ends_as_docker_saw_it(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    task = await docker_lab.start("exec sleep 100000")
    await docker_lab.started(task)
    await docker.containers.container(task.name).delete(force=True)
    ended = await docker_lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 137)


async def test_another_schedulers_container_of_the_same_name_is_left_alone(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str
) -> None:
    task = make_task()
    theirs = await docker.containers.run({"Image": debian_image, "Cmd": ["sleep", "100000"]}, name=task.name)
    try:
        _, ended = await docker_lab.run("true", task=task)
        assert ended.cause is EndCause.LAUNCH_FAILED
        assert "another scheduler" in str(ended.reason)
        await docker_lab.adopt([])
        assert (await inspect(docker, task))["State"]["Running"]
    finally:
        await theirs.delete(force=True)


# what is left


async def test_release_leaves_no_container_and_no_network_behind(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    job = make_task().job_id
    launches = await docker_lab.prepare(
        *(docker_lab.make("true", task=make_task(role, 0, job_id=job)) for role in ("a", "b"))
    )
    for launch in launches:
        await docker_lab.engine.launch(launch)
    for launch in launches:
        await docker_lab.ended(launch.task)
    assert job in await listed(docker)
    await docker_lab.engine.release(make_gang(*launches))
    assert job not in await listed(docker)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


async def test_adoption_forgets_what_was_remembered_of_tasks_that_are_over(
    docker_lab: Lab, tmp_path: Path
) -> None:
    kept, over = make_task(), make_task(role="a.b")
    for task in (kept, over):
        (launch,) = await docker_lab.prepare(docker_lab.make(FOREVER, task=task, hold_on_failure=True))
        await docker_lab.engine.launch(launch)
        await docker_lab.started(task)
        await docker_lab.engine.kill(task, 0)
        await docker_lab.ended(task)
    remembered = {folder: tmp_path / "data" / folder for folder in ("killed", "holds")}
    assert all({kept.name, over.name} <= names(path) for path in remembered.values())
    await docker_lab.adopt([kept])
    assert {folder: names(path) for folder, path in remembered.items()} == {
        folder: {kept.name} for folder in remembered
    }


async def test_a_task_that_ends_while_docker_is_asked_about_it_is_seen_to_end(
    docker_lab: Lab,
    docker: aiodocker.Docker,
    open_docker: Callable[..., Awaitable[DockerEngine]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    task = await docker_lab.start("exec sleep 100000")
    await docker_lab.started(task)
    ask = DockerApi.inspect

    async def answer_late(self: DockerApi, container: str) -> dict[str, Any] | None:
        answer = await ask(self, container)
        if container == task.name and answer is not None and answer["State"]["Running"]:
            await docker.containers.container(task.name).kill(signal="SIGKILL")
            await docker.containers.container(task.name).wait()
            await asyncio.sleep(0.5)  # the event of its end is here before the answer is
        return answer

    await docker_lab.stop_listening()
    monkeypatch.setattr(DockerApi, "inspect", answer_late)
    next_one = await Lab.over(await open_docker(), docker_lab.image)
    await next_one.adopt([task])
    ended = await next_one.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 137)
    await next_one.engine.release(docker_lab.gangs.pop())


async def test_adoption_leaves_only_the_networks_of_expected_tasks(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    (kept,) = await docker_lab.prepare(docker_lab.make("true"))
    (dropped,) = await docker_lab.prepare(docker_lab.make("true"))
    await docker_lab.adopt([kept.task])
    assert kept.task.job_id in await listed(docker)
    assert dropped.task.job_id not in await listed(docker)


async def test_two_schedulers_on_one_docker_do_not_touch_each_others_tasks(
    docker_lab: Lab, docker: aiodocker.Docker, docker_host: str, tmp_path: Path
) -> None:
    task = await docker_lab.start("exec sleep 100000")
    await docker_lab.started(task)
    other = DockerEngine(tmp_path / "other", DockerSettings(host=docker_host))
    await other.start()
    await other.adopt([])
    await other.close()
    assert (await inspect(docker, task))["State"]["Running"]


async def test_a_kill_while_the_image_is_pulled_ends_the_task_at_once(docker_lab: Lab) -> None:
    # (a writer that nobody holds closes its connection, from Python 3.13 on)
    held: list[object] = []
    silent = await asyncio.start_server(lambda *streams: held.append(streams), "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    task = await docker_lab.start("true", image=f"127.0.0.1:{port}/slow:1")
    await docker_lab.engine.kill(task, 60)
    ended = await docker_lab.ended(task)
    silent.close()
    assert (ended.cause, ended.exit_code) == (EndCause.KILLED, None)


async def inspect(docker: aiodocker.Docker, task: TaskRef) -> dict[str, Any]:
    return await docker.containers.container(task.name).show()


async def listed(docker: aiodocker.Docker) -> str:
    """List the names of all containers and networks."""
    containers = [name for each in await docker.containers.list(all=1) for name in each["Names"]]
    return " ".join([*containers, *(network["Name"] for network in await docker.networks.list())])


async def make_image(docker: aiodocker.Docker, name: str, recipe: str) -> None:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(recipe)
        tar.addfile(entry, io.BytesIO(recipe.encode()))
    archive.seek(0)
    await docker.images.build(fileobj=archive, encoding="identity", tag=name)
