"""The process engine: what every engine does, and what only supervised processes can do."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import socket
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.engine import procfs
from pai_scheduler.engine.cgroup import Cgroups
from pai_scheduler.engine.process import ProcessEngine
from pai_scheduler.engine.protocol import EndCause, Ended, EngineError, Started
from pai_scheduler.job.task import TaskRef

from .conformance import FOREVER, EngineConformance, Reopen
from .lab import Lab, eventually, make_gang, make_task, new_job_id, processes_with

ROOT = Path(__file__).parents[3]
PYTHON = sys.executable


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def reopen(data_dir: Path) -> AsyncIterator[Reopen]:
    engines: list[ProcessEngine] = []

    async def open_engine() -> ProcessEngine:
        engines.append(ProcessEngine(data_dir, rescan_seconds=0.2))
        await engines[-1].start()
        return engines[-1]

    yield open_engine
    for engine in engines:
        await engine.close()


@pytest.fixture
async def engine(reopen: Reopen) -> ProcessEngine:
    opened = await reopen()
    assert isinstance(opened, ProcessEngine)
    return opened


@pytest.fixture
def image() -> str:
    return "any/image:will-do"


@pytest.fixture
async def lab(engine: ProcessEngine, image: str) -> AsyncIterator[Lab]:
    lab = await Lab.over(engine, image)
    yield lab
    await lab.clean()


@pytest.fixture(params=["with cgroups", "without cgroups"])
def cgroups_or_none(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: as root, and as somebody to whom no cgroup was delegated."""
    if request.param == "without cgroups":
        monkeypatch.setattr(Cgroups, "find", lambda _owner: Cgroups(None, (), {}, "not for you"))


@pytest.fixture
def marker() -> str:
    """Give a number that stands in no other process's command line."""
    return str(uuid.uuid4().int)[:9]


@pytest.fixture
async def limited(engine: ProcessEngine) -> None:
    """Skip where tasks cannot be limited."""
    if engine.limits:
        reason = f"cgroups: {engine.limits}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


def supervisor_of(started: Started) -> int:
    found = procfs.process(int(started.container_id))
    assert found is not None
    return found.parent


class TestProcessEngine(EngineConformance):
    """The conformance suite."""


# supervisors and their deaths


async def test_a_task_whose_supervisor_is_killed_is_lost_and_its_whole_tree_is_ended(
    cgroups_or_none: None, lab: Lab, marker: str
) -> None:
    task = await lab.start(
        f"setsid setsid sleep 1{marker} & (sleep 2{marker}; true) & echo ready; sleep 3{marker}; true"
    )
    await lab.printed(task, "ready")
    await eventually(lambda: len(processes_with(f"sleep 1{marker}")) == 1, "the child runs")
    os.kill(supervisor_of(await lab.started(task)), signal.SIGKILL)
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.LOST, None)
    assert "watched over" in str(ended.reason)
    assert not processes_with(marker)


async def test_a_supervisor_that_dies_while_the_service_is_down_is_a_lost_task_too(
    lab: Lab, reopen: Reopen, image: str
) -> None:
    task = await lab.start(FOREVER)
    started = await lab.started(task)
    await lab.stop_listening()
    await lab.engine.close()
    supervisor = supervisor_of(started)
    os.kill(supervisor, signal.SIGKILL)
    later = await Lab.over(await reopen(), image)
    await eventually(lambda: procfs.process(supervisor) is None, "the supervisor is dead")
    await later.adopt([task])
    assert (await later.ended(task)).cause is EndCause.LOST
    assert await later.started(task) == started
    lab.gangs.clear()
    await later.clean()


async def test_what_a_shutdown_tells_everybody_leaves_supervisors_to_write_down_the_end(lab: Lab) -> None:
    task = await lab.start(FOREVER)
    await lab.printed(task, "ready")
    started = await lab.started(task)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(supervisor_of(started), number)
    os.kill(int(started.container_id), signal.SIGTERM)
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 143)


async def test_supervisors_and_commands_have_sessions_of_their_own(lab: Lab) -> None:
    task = await lab.start(FOREVER)
    started = await lab.started(task)
    sessions = {os.getsid(pid) for pid in (0, supervisor_of(started), int(started.container_id))}
    assert len(sessions) == 3


async def test_tasks_can_be_launched_after_the_process_that_forks_supervisors_was_killed(lab: Lab) -> None:
    (zygote,) = processes_with("process_zygote import main")[-1:]
    children = [pid for pid in procfs.children(os.getpid()) if pid in processes_with("process_zygote")]
    assert zygote
    job = new_job_id()
    launches = await lab.prepare(
        *(lab.make("true", task=make_task(index=index, job_id=job)) for index in range(20))
    )
    await asyncio.gather(*(lab.engine.launch(launch) for launch in launches[:10]))
    for child in children:
        os.kill(child, signal.SIGKILL)
    await asyncio.gather(*(lab.engine.launch(launch) for launch in launches[10:]))
    for launch in launches:
        assert (await lab.ended(launch.task)).exit_code == 0
        assert len(lab.told(launch.task)) == 2


async def test_ended_tasks_leave_no_zombies(lab: Lab, marker: str) -> None:
    task, _ = await lab.run(f"sleep 1{marker} & true")
    await lab.run("true")
    mine = [os.getpid(), *procfs.children(os.getpid())]
    # (a task's supervisor is gone shortly after it has rung)
    await eventually(
        lambda: not any("Z" in _state(child) for parent in mine for child in procfs.children(parent)),
        f"nothing of {task.name} waits to be reaped",
    )


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


async def test_an_event_comes_even_where_nobody_could_ring(lab: Lab, data_dir: Path) -> None:
    task = await lab.start(FOREVER)
    await lab.started(task)
    (data_dir / "doorbell").unlink()
    await lab.engine.kill(task, 0)
    assert (await lab.ended(task)).cause is EndCause.KILLED


# the service is killed


@pytest.mark.parametrize("seed", range(8))
async def test_whenever_the_service_is_killed_each_command_runs_exactly_once(
    seed: int, data_dir: Path, tmp_path: Path, reopen: Reopen, image: str
) -> None:
    chance = random.Random(seed)
    count, job, ran = 12, new_job_id(), tmp_path / "ran"
    ran.mkdir()
    command = f'echo "$PWD" >> {ran}/$(basename $(dirname "$PWD")); sleep 0.0{chance.randrange(10)}; exit 9'
    tasks = [make_task(index=index, job_id=job) for index in range(count)]
    for _ in range(3):  # services come and go
        service = await _service(data_dir, job, count, command)
        await asyncio.sleep(chance.uniform(0, 0.15))
        service.kill()
        await service.wait()
    lab = await Lab.over(await reopen(), image)
    await lab.adopt(tasks)
    launches = await lab.prepare(*(lab.make(command, task=task) for task in tasks))
    await asyncio.gather(*(lab.engine.launch(launch) for launch in launches))
    for task in tasks:
        ended = await lab.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 9)
        assert [type(event) for event in lab.told(task)] == [Started, Ended]
    assert {file.name: len(file.read_text().splitlines()) for file in ran.iterdir()} == {
        task.name: 1 for task in tasks
    }
    await lab.clean()


async def test_who_reads_the_services_output_does_not_wait_for_its_tasks(
    data_dir: Path, reopen: Reopen, image: str
) -> None:
    job = new_job_id()
    service = await _service(data_dir, job, 1, FOREVER)
    assert service.stdout is not None
    assert await service.stdout.readline() == b"launched\n"
    service.kill()
    assert await asyncio.wait_for(service.stdout.read(), 60) == b""
    lab = await Lab.over(await reopen(), image)
    task = make_task(job_id=job)
    await lab.adopt([task])
    await lab.printed(task, "ready")
    await lab.engine.kill(task, 0)
    await lab.ended(task)
    await lab.stop_listening()


async def _service(data_dir: Path, job: str, count: int, command: str) -> asyncio.subprocess.Process:
    service = await asyncio.create_subprocess_exec(
        *(PYTHON, "-m", "tests.scheduler.engine.service_host"),
        *(str(data_dir), job, str(count), command),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert service.stdout is not None
    assert await service.stdout.readline() == b"ready\n"
    return service


# limits


async def test_more_memory_than_asked_for_is_an_oom_kill_with_exit_code_137(limited: None, lab: Lab) -> None:
    _, ended = await lab.run(f"exec {PYTHON} -c 'x = bytearray(400_000_000)'", memory_mb=100)
    assert (ended.cause, ended.exit_code) == (EndCause.OOM, 137)
    assert str(ended.reason) == "The task used more than its 100 MB of memory, and was ended."


async def test_an_oom_kill_that_the_command_survives_is_not_its_end(limited: None, lab: Lab) -> None:
    _, ended = await lab.run(f"{PYTHON} -c 'x = bytearray(400_000_000)' || true", memory_mb=100)
    assert ended.exit_code in (0, 137)  # cgroups of version 2 end the task as a whole
    assert ended.cause is (EndCause.OOM if ended.exit_code else EndCause.EXITED)


async def test_processes_beyond_the_limit_cannot_be_made(data_dir: Path, image: str) -> None:
    engine = ProcessEngine(data_dir, pids_limit=20)
    await engine.start()
    lab = await Lab.over(engine, image)
    if engine.limits is None:
        script = (
            "import os, time\n"
            "made = 0\n"
            "try:\n"
            "    while made < 100:\n"
            "        if os.fork() == 0:\n"
            "            time.sleep(1000)\n"
            "        made += 1\n"
            "except OSError:\n"
            "    print(made)\n"
        )
        task, _ = await lab.run(f'exec {PYTHON} -c "$SCRIPT"', env={"SCRIPT": script})
        assert lab.output(task) == "19\n"
    await lab.clean()
    await engine.close()


async def test_a_processor_limit_slows_a_task_down(limited: None, lab: Lab) -> None:
    # two seconds of work for one processor are four threads' half a second each, were it not for the limit
    script = "import os; os.fork(); os.fork()\nimport time\nwhile time.process_time() < 0.25: pass"
    task = await lab.start(f'{PYTHON} -c "$SCRIPT"; echo ready; sleep 1000', cpus=1, env={"SCRIPT": script})
    await lab.printed(task, "ready")
    usage = await lab.engine.usage(task)
    assert usage is not None
    assert 0 < usage.cpu_percent < 130


async def test_without_cgroups_the_engine_says_so_and_runs_tasks_unlimited(
    monkeypatch: pytest.MonkeyPatch, data_dir: Path, image: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Cgroups, "find", lambda _owner: Cgroups(None, (), {}, "not for you"))
    engine = ProcessEngine(data_dir)
    await engine.start()
    lab = await Lab.over(engine, image)
    assert "cpu, memory, pids" in str(engine.limits)
    assert "not for you" in caplog.text
    task = await lab.start("x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ready; sleep 1000; echo $x")
    await lab.printed(task, "ready")
    usage = await engine.usage(task)
    assert usage is not None
    assert usage.memory_mb > 15
    await lab.clean()
    await engine.close()


async def test_the_cgroups_of_ended_tasks_are_removed(limited: None, lab: Lab, engine: ProcessEngine) -> None:
    task, _ = await lab.run("true")
    await eventually(lambda: not _groups_of(task), "the task's cgroups are removed")


def _groups_of(task: TaskRef) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"**/{task.name}"))


# what cannot be started


@pytest.fixture
def listener() -> Iterator[int]:
    """Give a port on which somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_a_port_that_another_program_has_is_a_port_conflict_that_names_it(
    lab: Lab, listener: int
) -> None:
    launch = lab.make("echo ran")
    (prepared,) = await lab.prepare(launch, ports={launch.task: {"http": (listener,), "ssh": (0,)}})
    await lab.engine.launch(prepared)
    ended = await lab.ended(launch.task)
    assert (ended.cause, ended.exit_code) == (EndCause.PORT_CONFLICT, None)
    assert str(listener) in str(ended.reason)
    assert lab.told(launch.task) == [ended]
    assert lab.output(launch.task) == ""


@pytest.mark.parametrize("command", ["echo " + "x" * 200_000, "echo \0"])
async def test_a_command_that_no_shell_can_be_given_is_refused(lab: Lab, command: str) -> None:
    _, ended = await lab.run(command)
    assert (ended.cause, ended.exit_code) == (EndCause.REFUSED, None)
    assert "The command" in str(ended.reason)


async def test_a_command_may_begin_with_a_dash(lab: Lab) -> None:
    task, ended = await lab.run("-e no option of the shell's")
    assert ended.exit_code == 127
    assert "-e" in lab.output(task, "stderr")


async def test_a_task_whose_name_is_too_long_for_a_folder_fails_with_a_sentence(lab: Lab) -> None:
    launch = lab.make("true", task=make_task("r" * 300))
    await lab.engine.launch(launch)
    ended = await lab.ended(launch.task)
    assert ended.cause is EndCause.LAUNCH_FAILED
    assert "File name too long" in str(ended.reason)


async def test_a_data_folder_that_cannot_be_used_is_said_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    engine = ProcessEngine(tmp_path / "file")
    with pytest.raises(
        EngineError, match=r"The folder for tasks cannot be used \(.*file.*\): Not a directory"
    ):
        await engine.start()
    await engine.close()


async def test_a_very_long_path_to_the_data_folder_is_no_hindrance(tmp_path: Path, image: str) -> None:
    engine = ProcessEngine(tmp_path / ("long" * 30) / ("longer" * 30))
    await engine.start()
    lab = await Lab.over(engine, image)
    assert (await lab.run("exit 3"))[1].exit_code == 3
    await lab.clean()
    await engine.close()


# a full disk


@pytest.fixture
async def tight_lab(tiny_disk: Path, image: str) -> AsyncIterator[Lab]:
    """Work in a data folder on a disk of 1 MB."""
    engine = ProcessEngine(tiny_disk / "data", rescan_seconds=0.2)
    await engine.start()
    lab = await Lab.over(engine, image)
    yield lab
    await lab.clean()
    await engine.close()


async def test_a_disk_filled_with_output_loses_output_and_says_so_but_not_the_exit_code(
    tight_lab: Lab,
) -> None:
    _, ended = await tight_lab.run("echo begin; head -c 5000000 /dev/zero; exit 7")
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 7)
    assert "The disk for logs is full" in str(ended.reason)


async def test_a_disk_filled_by_the_task_itself_does_not_lose_its_end(tight_lab: Lab) -> None:
    task, ended = await tight_lab.run("echo begin; cat /dev/zero > fill; exit 8")
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 8)
    assert tight_lab.output(task, "stdout") == "begin\n"


async def test_on_a_full_disk_tasks_are_killed_and_launches_fail_with_a_sentence(
    tight_lab: Lab, tiny_disk: Path
) -> None:
    running = await tight_lab.start(FOREVER)
    await tight_lab.printed(running, "ready")
    with pytest.raises(OSError, match="No space"):
        (tiny_disk / "ballast").write_bytes(b"x" * 2_000_000)
    _, failed = await tight_lab.run("echo ran")
    assert (failed.cause, failed.exit_code) == (EndCause.LAUNCH_FAILED, None)
    assert "no room on the scheduler's disk" in str(failed.reason)
    never = make_task()
    await tight_lab.engine.kill(never, 1)
    assert (await tight_lab.ended(never)).cause is EndCause.KILLED
    await tight_lab.engine.kill(running, 0)
    assert (await tight_lab.ended(running)).cause is EndCause.KILLED


# what a task sees


async def test_a_task_sees_home_and_path_but_nothing_private_of_the_services(
    monkeypatch: pytest.MonkeyPatch, lab: Lab
) -> None:
    for name in ("JUPYTERHUB_API_TOKEN", "PAI_TOKEN", "GITHUB_TOKEN", "MY_SECRET", "CONFIGPROXY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "private")
    monkeypatch.setenv("FAVOURITE_COLOUR", "blue")
    task, _ = await lab.run("env; pwd", env={"JUPYTERHUB_API_TOKEN": "the task's own"})
    output = lab.output(task)
    assert "private" not in output
    assert "JUPYTERHUB_API_TOKEN=the task's own\n" in output
    assert "FAVOURITE_COLOUR=blue\n" in output
    assert f"HOME={os.environ['HOME']}\n" in output
    assert output.endswith(f"{task.name}/work\n")


async def test_the_python_of_the_scheduler_is_the_python_of_its_tasks(
    monkeypatch: pytest.MonkeyPatch, lab: Lab
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    task, _ = await lab.run("command -v python3")
    assert Path(lab.output(task).strip()).parent == Path(PYTHON).parent


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash")
async def test_bash_runs_the_command_where_there_is_one(lab: Lab) -> None:
    task, _ = await lab.run("[[ abc == a* ]] && echo $BASH_VERSION")
    assert lab.output(task).strip()


@pytest.mark.parametrize(
    ("gpus", "visible"), [((), "||void"), ((Gpu(1, "P100", "GPU-1"), Gpu(3, "P100", "GPU-3")), "|1,3|1,3")]
)
async def test_a_task_is_shown_its_gpus_and_no_others(lab: Lab, gpus: tuple[Gpu, ...], visible: str) -> None:
    task, _ = await lab.run('echo "|$CUDA_VISIBLE_DEVICES|$NVIDIA_VISIBLE_DEVICES"', gpus=gpus)
    assert lab.output(task).strip() == visible


# what is left


async def test_release_removes_the_working_folder_and_the_environment_but_not_log_and_end(
    lab: Lab, data_dir: Path
) -> None:
    (launch,) = await lab.prepare(
        lab.make("mkdir -p deep/er; chmod 0 deep; echo kept", env={"KEY": "private"})
    )
    await lab.engine.launch(launch)
    first = await lab.ended(launch.task)
    await lab.engine.release(make_gang(launch))
    folder = data_dir / "tasks" / launch.task.name
    assert {entry.name for entry in folder.iterdir()} == {"lock", "log", "exit.json"}
    assert "private" not in (folder / "exit.json").read_text()
    await lab.engine.launch(launch)
    assert lab.told(launch.task)[-1] == first
    assert lab.output(launch.task) == "kept\n"


async def test_the_folders_of_other_users_tasks_cannot_be_looked_into(
    engine: ProcessEngine, data_dir: Path
) -> None:
    assert (data_dir / "tasks").stat().st_mode & 0o077 == 0


async def test_tasks_that_other_engines_run_are_left_alone(lab: Lab, tmp_path: Path, image: str) -> None:
    task = await lab.start(FOREVER)
    await lab.printed(task, "ready")
    other = ProcessEngine(tmp_path / "another")
    await other.start()
    await other.adopt([])
    assert await lab.engine.usage(task) is not None
    assert replace(await lab.started(task)) == lab.told(task)[-1]
    await other.close()
