"""The process engine: what every engine does, and what a task sees, leaves, and cannot be."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.cluster.node import Gpu
from pai_scheduler.engine.process import engine as process_engine
from pai_scheduler.engine.process import folder_operations as process_files
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.process.task_folder import TaskFolder
from pai_scheduler.engine.protocol import EndCause, Ended, EngineError, Notice, Started
from pai_scheduler.testing.engine import FOREVER, EngineConformance
from pai_scheduler.testing.lab import Lab, eventually, make_gang, make_task
from tests.testbed.wheels import make_wheel

ROOT = Path(__file__).parents[3]
PYTHON = sys.executable


class TestProcessEngine(EngineConformance):
    """The conformance suite."""


# what cannot be started


@pytest.fixture
def listener() -> Iterator[int]:
    """Return a port on which somebody listens."""
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
    task, ended = await lab.run("-e is no option of the shell")
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


# what a task sees


async def test_a_task_sees_home_and_path_but_nothing_private_of_the_services(
    monkeypatch: pytest.MonkeyPatch, lab: Lab
) -> None:
    for name in ("JUPYTERHUB_API_TOKEN", "PAI_TOKEN", "GITHUB_TOKEN", "MY_SECRET", "CONFIGPROXY_AUTH_TOKEN"):
        monkeypatch.setenv(name, "a-secret")
    monkeypatch.setenv("FAVOURITE_COLOUR", "blue")
    task, _ = await lab.run("env; pwd", env={"JUPYTERHUB_API_TOKEN": "the task's own"})
    output = lab.output(task)
    assert "a-secret" not in output
    assert "JUPYTERHUB_API_TOKEN=the task's own\n" in output
    assert "FAVOURITE_COLOUR=blue\n" in output
    assert f"HOME={os.environ['HOME']}\n" in output
    assert output.endswith(f"{task.name}/work\n")


async def test_tasks_have_the_packages_of_the_scheduler_and_install_others_elsewhere(
    monkeypatch: pytest.MonkeyPatch, lab: Lab, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    # one that would end the scheduler, if it found it
    wheel = make_wheel(tmp_path, "tornado", "0.1", "raise SystemExit('not this one')")
    task, _ = await lab.run(
        f"pip install -q --no-index --no-deps {wheel} && pip list --format freeze | grep -i tornado;"
        "python3 -c 'import msgspec; print(msgspec.__name__)'; command -v pai-scheduler"
    )
    assert lab.output(task).split() == [
        "tornado==0.1",
        "msgspec",
        str(Path(PYTHON).with_name("pai-scheduler")),
    ]
    other, _ = await lab.run("python3 -c 'import tornado'")
    assert "not this one" in lab.output(other)
    await asyncio.to_thread(subprocess.run, [PYTHON, "-c", "import tornado.web"], check=True)


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


# when it is told


@pytest.fixture
def no_rescan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have an engine look only where somebody rang: on a busy machine a rescan comes before a short end."""

    async def rescan(_: ProcessEngine) -> None:
        pass

    monkeypatch.setattr(ProcessEngine, "_rescan", rescan)


@pytest.mark.usefixtures("no_rescan")
async def test_the_end_of_a_short_task_is_told_with_its_start_and_not_later(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_engine, "_TOGETHER", 100_000)
    looks: list[Path] = []
    look = process_files.look

    def count(folder: TaskFolder) -> process_files.TaskObservation:
        looks.append(folder.path)
        return look(folder)

    monkeypatch.setattr(process_files, "look", count)
    task, _ = await lab.run("true")
    assert [type(event) for event in lab.told(task)] == [Started, Ended]
    assert len(looks) == 1


async def test_the_start_of_a_task_that_goes_on_is_told_without_another_signal(lab: Lab) -> None:
    task = await lab.start(FOREVER)
    assert await lab.started(task) == lab.told(task)[0]
    assert len(lab.told(task)) == 1


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
    assert list((data_dir / "tasks").iterdir()) == []
    folder = data_dir / "ended" / launch.task.name
    assert {entry.name for entry in folder.iterdir()} == {"lock", "log", "exit.json"}
    assert "private" not in (folder / "exit.json").read_text()
    await lab.engine.launch(launch)
    assert lab.told(launch.task)[-1] == first
    assert lab.output(launch.task) == "kept\n"


@pytest.mark.usefixtures("engine")
async def test_the_folders_of_tasks_cannot_be_looked_into_by_others(data_dir: Path) -> None:
    assert (data_dir / "tasks").stat().st_mode & 0o077 == 0


async def test_a_task_is_ended_though_its_supervisor_was_gone_before_it_could_obey(
    lab: Lab, data_dir: Path
) -> None:
    task = make_task()
    folder = TaskFolder(data_dir / "tasks" / task.name)
    folder.path.mkdir()
    folder.prepare({"argv": ["/bin/true"], "env": {}, "groups": [], "memory_mb": 100})
    # as a supervisor has them that is about to begin
    control, lock = os.open(folder.control, os.O_RDWR | os.O_NONBLOCK), folder.lock()
    assert lock is not None
    await lab.engine.kill(task, 0)
    assert os.read(control, 100) == b"0.0\n"
    assert lab.told(task) == []
    os.close(lock)
    os.close(control)
    assert (await lab.ended(task)).cause is EndCause.KILLED
    assert len(lab.told(task)) == 1


async def test_tasks_that_other_engines_run_are_left_alone(lab: Lab, tmp_path: Path) -> None:
    task = await lab.start(FOREVER)
    await lab.printed(task, "ready")
    other = ProcessEngine(tmp_path / "another")
    await other.start()
    await other.adopt([])
    assert await lab.engine.usage(task) is not None
    assert lab.told(task) == [await lab.started(task)]
    await other.close()


async def test_a_log_that_is_not_kept_whole_is_noticed_while_the_task_runs_and_at_its_end(
    tmp_path: Path, image: str
) -> None:
    engine = ProcessEngine(tmp_path / "short", logs=LogKeeping(max_mb_per_task=1))
    await engine.start()
    lab = await Lab.over(engine, image)
    flood = "head -c 3000000 /dev/zero"
    goes_on = await lab.start(f"{flood}; exec sleep 100000")
    at_its_end, ended = await lab.run(flood)
    whole, _ = await lab.run("echo little")
    await eventually(lambda: bool(lab.noticed(goes_on)), "that the log was shortened is noticed")
    for task in (goes_on, at_its_end):
        (noticed,) = lab.noticed(task)
        assert noticed.notice is Notice.LOG_SHORTENED
        assert "longer than 1 MB" in str(noticed.message)
    assert lab.events.index(lab.noticed(at_its_end)[0]) < lab.events.index(ended)
    assert lab.noticed(whole) == []
    await lab.clean()
    await engine.close()
