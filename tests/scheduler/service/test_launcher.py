"""The launcher over an engine that fails and waits when told to; real engines are in the service's tests."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler import logging_config
from pai_scheduler.cluster.placement import PORT_RANGE
from pai_scheduler.core.events import EndCause, Ended, Event, PortsTaken, Progress, Tick
from pai_scheduler.core.instructions import KillTask, ReleaseAttempt, WakeAt
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.protocol import EngineError, Gang, Launch, RegistryLogin
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import Principal
from pai_scheduler.service.input_identity import JobIdentities
from pai_scheduler.service.inputs import JobInputs
from pai_scheduler.service.launcher import Launcher
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus, Storage
from tests.scheduler.core.world import World
from tests.scheduler.making import make_node, make_role

A, B = TaskRef("j", 0, "main", 0), TaskRef("j", 0, "main", 1)


class FaultyEngine(ProcessEngine):
    """Notes what it is asked and does nothing of it; a call fails or waits where the test says so."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.asked: list[tuple[str, Any]] = []
        self.launches: list[Launch] = []
        self.faults: dict[str, list[Exception]] = {}
        self.gates: dict[str, asyncio.Event] = {}
        #: whether it looks which ports other programs of this machine have
        self.looks = False

    async def _note(self, what: str, about: Any) -> None:
        self.asked.append((what, about))
        if what in self.gates:
            await self.gates[what].wait()
        if self.faults.get(what):
            raise self.faults[what].pop()

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        await self._note("prepare", tuple(member.task for member in gang.members))
        return {member.task: f"10.0.0.{number}" for number, member in enumerate(gang.members)}

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:
        return await super().taken_ports(gang, ports) if self.looks else ()

    async def launch(self, launch: Launch) -> None:
        self.launches.append(launch)
        await self._note("launch", launch.task)

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:
        await self._note("kill", (task, grace_seconds))

    async def release(self, gang: Gang) -> None:
        await self._note("release", tuple(member.task for member in gang.members))

    async def forget(self, task: TaskRef) -> None:
        await self._note("forget", task)


class Pad:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = FaultyEngine(folder)
        self.reported: list[Event] = []
        self.now = 1000
        self.launcher = Launcher(self.engine, None, "hdfs://fs", self.reported.append, lambda: self.now)
        self.world = World(make_node(gpus={"P100": 2}))

    async def launch_over(self, storage: Storage) -> Files:
        """Have a storage; return what is in it."""
        job_files = JobIdentities(storage, self.folder, self.find_user)
        await job_files.start("http://fs:1")
        self.launcher = Launcher(
            self.engine,
            JobInputs(job_files),
            "",
            self.reported.append,
            lambda: self.now,
        )
        return job_files.files

    async def find_user(self, name: str) -> Principal | None:
        return Principal(name, admin=True, groups=("vision",))

    def submit(self, *roles: Mapping[str, Any], **fields: Any) -> None:
        for instruction in self.world.submit(*roles, **fields):
            self.launcher.carry_out(instruction, self.world.core)

    def carry_out(self, *instructions: Any) -> None:
        for instruction in instructions:
            self.launcher.carry_out(instruction, self.world.core)

    async def until(self, condition: Callable[[], object], what: str) -> None:
        for _ in range(3000):
            if condition():
                return
            await asyncio.sleep(0.01)
        pytest.fail(f"never: {what}")

    async def idle(self) -> None:
        await self.until(lambda: not self.launcher._running, "everything is done")


@pytest.fixture
async def pad(tmp_path: Path) -> AsyncIterator[Pad]:
    made = Pad(tmp_path)
    yield made
    await made.launcher.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.service.launcher._FIRST_PAUSE", 0.01)


async def test_a_gang_is_prepared_then_each_task_is_launched(pad: Pad) -> None:
    pad.submit(make_role(tasks=2))
    await pad.idle()
    assert pad.engine.asked == [("prepare", (A, B)), ("launch", A), ("launch", B)]


async def test_each_task_has_the_home_that_the_job_asks_for(pad: Pad) -> None:
    pad.submit(make_role(tasks=2), extras={"home": "/home/me"})
    await pad.idle()
    assert [launch.home for launch in pad.engine.launches] == ["/home/me", "/home/me"]


async def test_a_task_is_launched_with_everything_it_needs(pad: Pad) -> None:
    role = make_role(tasks=2, command="run me", cpus=2, memory_mb=300, gpus=1, storage_gb=5)
    pad.submit(role, gpuType="P100")
    await pad.idle()
    launch = pad.engine.launches[1]
    assert (launch.task, launch.node, launch.user, launch.job_name) == (B, "a", "alice", "j")
    assert (launch.image, launch.command) == ("local/image", "run me")
    assert (launch.cpus, launch.memory_mb, launch.shm_mb, launch.storage_gb) == (2, 300, 64, 5)
    assert [(gpu.index, gpu.type) for gpu in launch.gpus] == [(1, "P100")]
    assert launch.address == "10.0.0.1"
    assert launch.hosts == {"main-0": "10.0.0.0", "main-1": "10.0.0.1"}
    assert launch.env["PAI_DEFAULT_FS_URI"] == "hdfs://fs"
    assert launch.env["PAI_HOST_IP_main_0"] == "10.0.0.0"
    port = pad.world.task(A).assignment.ports["http"][0]
    assert launch.env["PAI_PORT_LIST_main_0_http"] == str(port)
    assert launch.env["PAI_WORK_DIR"] == pad.engine.work_dir(B)


@pytest.fixture
def held() -> Iterator[set[int]]:
    """Hold many of the ports that are chosen first, as other programs do."""
    with ExitStack() as open_sockets:
        ports = set()
        for port in PORT_RANGE[:2000:7]:
            with suppress(OSError):  # a program of this machine has it already
                open_sockets.enter_context(socket.create_server(("127.0.0.1", port)))
            ports.add(port)
        yield ports


async def test_a_gang_of_a_thousand_starts_whatever_ports_other_programs_hold(
    pad: Pad, held: set[int]
) -> None:
    pad.engine.looks = True
    pad.world = World(make_node(cpus=1000, memory_mb=10**6, storage_gb=10**6), shares_host_ports=True)
    pad.submit(make_role(tasks=1000))
    await pad.idle()
    assert not pad.engine.asked, "no task is told of ports that may change"
    (found,) = pad.reported
    assert isinstance(found, PortsTaken)
    assert held <= found.ports
    before = {task.ref: task.assignment.ports for task in pad.world.attempt().tasks.values()}
    pad.carry_out(*pad.world.handle(found))
    await pad.idle()
    assert len(pad.engine.launches) == 1000
    after = {task.ref: task.assignment.ports for task in pad.world.attempt().tasks.values()}
    numbers = [port for ports in after.values() for label in ports.values() for port in label]
    assert len(set(numbers)) == len(numbers) == 2000
    assert not held & set(numbers)
    # who had none of theirs keeps what was chosen
    assert all(
        after[ref] == ports
        for ref, ports in before.items()
        if not found.ports & {port for label in ports.values() for port in label}
    )
    (last,) = {launch.env["PAI_PORT_LIST_main_0_http"] for launch in pad.engine.launches}
    assert last == str(after[A]["http"][0])
    assert "ports-changed" in pad.world.told()
    assert pad.world.attempt().number == 0


async def test_a_gang_of_which_something_may_have_run_keeps_its_ports(pad: Pad, held: set[int]) -> None:
    pad.engine.looks = True
    pad.world = World(shares_host_ports=True)
    (pad.folder / "tasks" / A.name).mkdir(parents=True)
    pad.submit(make_role(tasks=2))
    await pad.idle()
    assert held & {*PORT_RANGE[:4]}
    assert not pad.reported
    assert [launch.task for launch in pad.engine.launches] == [A, B]


async def test_ports_that_the_job_names_are_not_changed(pad: Pad) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        pad.engine.looks = True
        pad.world = World(shares_host_ports=True)
        pad.submit(make_role(ports=[{"label": "web", "beginAt": port, "portNumber": 1}]))
        await pad.idle()
        # (what was chosen beside it may be anybody's)
        if pad.reported:
            pad.carry_out(*pad.world.handle(*pad.reported))
            await pad.idle()
        (launch,) = pad.engine.launches
        assert launch.env["PAI_PORT_LIST_main_0_web"] == str(port)


async def test_a_task_that_cannot_be_launched_has_failed_with_the_engines_reason(pad: Pad) -> None:
    pad.engine.faults = {"launch": [EngineError(msg("Docker does not answer."))]}
    pad.submit()
    await pad.idle()
    assert pad.reported == [
        Ended(A, 1000, EndCause.LAUNCH_FAILED, None, msg("Docker does not answer.")),
    ]


@pytest.mark.parametrize("fault", [OSError("no such file"), TimeoutError("no such file"), KeyError("x")])
async def test_whatever_goes_wrong_at_a_launch_ends_the_task_and_is_told(pad: Pad, fault: Exception) -> None:
    pad.engine.faults = {"launch": [fault]}
    pad.submit()
    await pad.idle()
    (event,) = pad.reported
    assert isinstance(event, Ended)
    assert event.cause is EndCause.LAUNCH_FAILED
    assert str(event.reason) == f"The task could not be started: {fault}."


async def test_a_task_whose_launch_failed_is_ended_in_case_it_was_started_all_the_same(pad: Pad) -> None:
    pad.engine.faults = {"launch": [TimeoutError()]}
    pad.submit()
    await pad.idle()
    assert ("kill", (A, 0)) in pad.engine.asked


async def test_a_gang_that_cannot_be_prepared_has_failed_with_all_of_its_tasks(pad: Pad) -> None:
    pad.engine.faults = {"prepare": [EngineError(msg("No network is left."))]}
    pad.submit(make_role(tasks=2))
    await pad.idle()
    assert [(event.task, event.cause) for event in pad.reported if isinstance(event, Ended)] == [
        (A, EndCause.LAUNCH_FAILED),
        (B, EndCause.LAUNCH_FAILED),
    ]
    assert [what for what, _ in pad.engine.asked] == ["prepare", "kill", "kill"]


async def test_after_a_restart_only_those_are_launched_that_have_not_started(pad: Pad) -> None:
    pad.world.submit(make_role(tasks=2))
    pad.world.started(A)
    pad.carry_out(*pad.world.restart())
    await pad.idle()
    assert pad.engine.asked == [("prepare", (A, B)), ("launch", B)]


async def test_a_kill_is_handed_on_with_its_grace(pad: Pad) -> None:
    pad.submit()
    await pad.idle()
    pad.carry_out(KillTask(A, pad.now + 10_000))
    await pad.idle()
    assert pad.engine.asked[-1] == ("kill", (A, 10.0))


async def test_a_kill_that_comes_late_has_only_what_is_left_of_its_grace(pad: Pad) -> None:
    pad.submit()
    until = pad.now + 10_000
    pad.now += 4_000
    pad.carry_out(KillTask(A, until))
    await pad.idle()
    assert pad.engine.asked[-1] == ("kill", (A, 6.0))
    pad.now += 60_000
    pad.carry_out(KillTask(A, until))
    await pad.idle()
    assert pad.engine.asked[-1] == ("kill", (A, 0.0))


async def test_a_kill_that_fails_is_tried_again_until_it_works(pad: Pad) -> None:
    pad.submit()
    pad.engine.faults = {"kill": [TimeoutError(), EngineError(msg("Docker does not answer."))]}
    pad.carry_out(KillTask(A, 11_000))
    await pad.idle()
    assert [what for what, _ in pad.engine.asked].count("kill") == 3


async def test_a_release_that_fails_is_tried_again_until_it_works(pad: Pad) -> None:
    pad.submit(make_role(tasks=2))
    await pad.idle()
    pad.engine.faults = {"release": [OSError()]}
    pad.carry_out(ReleaseAttempt("j", 0))
    await pad.idle()
    assert pad.engine.asked[-2:] == [("release", (A, B))] * 2


async def test_a_task_that_is_to_end_before_its_launch_is_not_launched(pad: Pad) -> None:
    pad.engine.gates["prepare"] = asyncio.Event()
    pad.submit(make_role(tasks=2))
    await pad.until(lambda: pad.engine.asked, "it is prepared")
    pad.carry_out(KillTask(A, 11_000))
    pad.engine.gates["prepare"].set()
    await pad.idle()
    assert ("launch", A) not in pad.engine.asked
    assert ("launch", B) in pad.engine.asked


async def test_a_gang_is_not_released_while_a_launch_of_it_is_under_way(pad: Pad) -> None:
    pad.engine.gates["launch"] = asyncio.Event()
    pad.submit()
    await pad.until(lambda: pad.engine.launches, "it is launched")
    pad.carry_out(KillTask(A, 11_000), ReleaseAttempt("j", 0))
    await asyncio.sleep(0.05)
    assert "release" not in [what for what, _ in pad.engine.asked]
    pad.engine.gates["launch"].set()
    await pad.idle()
    assert pad.engine.asked[-1] == ("release", (A,))


async def test_a_slow_launch_delays_no_other_job(pad: Pad) -> None:
    pad.engine.gates["prepare"] = asyncio.Event()
    pad.submit()
    await pad.until(lambda: pad.engine.asked, "it is prepared")
    del pad.engine.gates["prepare"]
    pad.submit(id="k")
    await pad.until(lambda: pad.engine.launches, "the other one is launched")
    assert [launch.task.job_id for launch in pad.engine.launches] == ["k"]


async def test_a_gang_that_was_launched_before_a_restart_can_be_released(pad: Pad) -> None:
    pad.world.run(make_role(tasks=2))
    pad.world.restart()
    pad.launcher.remember(pad.world.core.jobs["j"])
    pad.carry_out(ReleaseAttempt("j", 0))
    await pad.idle()
    assert pad.engine.asked == [("release", (A, B))]


async def test_it_wakes_the_core_at_the_earliest_time_asked_for(pad: Pad) -> None:
    pad.carry_out(WakeAt(1_000_000), WakeAt(1020), WakeAt(2_000_000))
    await pad.until(lambda: pad.reported, "it wakes")
    assert pad.reported == [Tick(1000)]


async def test_a_time_that_has_passed_is_now(pad: Pad) -> None:
    pad.carry_out(WakeAt(5))
    await pad.until(lambda: pad.reported, "it wakes")


async def test_a_deleted_job_is_forgotten_after_its_release_and_that_is_told(
    pad: Pad,
) -> None:
    told: list[str] = []

    async def then() -> None:
        told.append("gone")

    pad.submit(make_role(tasks=2))
    await pad.idle()
    pad.engine.asked.clear()
    pad.engine.gates["release"] = asyncio.Event()
    pad.engine.faults["forget"] = [OSError("disk")]
    pad.carry_out(ReleaseAttempt("j", 0))
    pad.launcher.forget([A, B], then)
    await pad.until(lambda: pad.engine.asked == [("release", (A, B))], "it is being released")
    assert told == []
    pad.engine.gates["release"].set()
    await pad.until(lambda: told == ["gone"], "it is forgotten")
    assert pad.engine.asked[1:] == [("forget", A), ("forget", A), ("forget", B)]


async def test_closing_leaves_what_is_under_way(pad: Pad) -> None:
    pad.engine.gates["launch"] = asyncio.Event()
    pad.submit()
    pad.carry_out(WakeAt(2_000_000))
    await pad.until(lambda: pad.engine.launches, "it is launched")
    await pad.launcher.close()
    assert pad.reported == []
    assert not pad.launcher._running


async def test_what_all_tasks_are_told_alike_is_held_once(pad: Pad) -> None:
    pad.submit(make_role(tasks=8))
    await pad.idle()
    environments = [launch.env for launch in pad.engine.launches]
    assert [env["PAI_TASK_INDEX"] for env in environments] == [str(number) for number in range(8)]
    about_others = {id(env["PAI_PORT_LIST_main_7_http"]) for env in environments}
    assert len(about_others) == 1


async def test_a_debugged_job_is_held_when_it_fails_and_no_other(pad: Pad) -> None:
    pad.submit(make_role(), jobEnvs={"isDebug": True})
    pad.submit(make_role(), id="k")
    await pad.idle()
    assert [launch.hold_on_failure for launch in pad.engine.launches] == [True, False]


async def test_a_task_that_names_no_disk_may_write_the_clusters_default_and_reserves_little(pad: Pad) -> None:
    role = make_role()
    del role["storageGB"]
    pad.submit(role, make_role("none", storage_gb=0))
    await pad.idle()
    assert [launch.storage_gb for launch in pad.engine.launches] == [20, 0]
    (use,) = pad.world.core.cluster.uses.values()
    assert use.node.storage_gb - use.storage_gb == 1


async def put(files: Files, path: str, contents: bytes = b"x") -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield contents

    await files.create(Principal("root", admin=True), StoragePath.parse(path), pieces())


async def test_the_login_of_the_authfile_goes_with_the_launch_and_nowhere_else(pad: Pad) -> None:
    files = await pad.launch_over(FolderStorage(pad.folder / "storage"))
    await put(files, "/alice/auth", b"lab\nal\ntop-secret\n")
    pad.submit(make_role(), authFile="$PAI_DEFAULT_FS_URI/alice/auth")
    await pad.idle()
    (launch,) = pad.engine.launches
    assert launch.login == RegistryLogin("lab", "al", "top-secret")
    assert "top-secret" not in repr(launch)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"authFile": "http://fs:1/alice/none"}, "The authFile http://fs:1/alice/none cannot be read. "),
        ({"codeDir": "http://fs:1/alice/none"}, "codeDir http://fs:1/alice/none cannot be used. "),
        ({"codeDir": "/bob/code"}, "codeDir /bob/code cannot be used. User alice may not read /bob/code."),
        ({"codeDir": "/alice/file"}, "codeDir /alice/file cannot be used. /alice/file is a file."),
        ({"codeDir": "http://fs:1/"}, "codeDir http://fs:1/ cannot be used. The storage as a whole"),
        (
            {"codeDir": "s3://x/y"},
            "codeDir s3://x/y cannot be used. s3://x/y is not in the cluster's storage",
        ),
        (
            {"outputDir": "/bob/out"},
            "outputDir /bob/out cannot be used. User alice may not write to /bob/out.",
        ),
    ],
)
async def test_a_file_that_a_job_cannot_have_ends_the_task_for_good_with_the_reason(
    pad: Pad, fields: dict[str, str], words: str
) -> None:
    files = await pad.launch_over(FolderStorage(pad.folder / "storage"))
    await put(files, "/alice/file")
    pad.submit(make_role(), **fields)
    await pad.idle()
    (ended,) = pad.reported
    assert isinstance(ended, Ended)
    assert (ended.cause, ended.exit_code) == (EndCause.REFUSED, None)
    assert str(ended.reason).startswith(words)
    assert not pad.engine.launches


async def test_without_a_storage_a_job_that_names_a_file_is_refused(pad: Pad) -> None:
    pad.submit(make_role(), codeDir="hdfs://fs/alice/code")
    await pad.idle()
    (ended,) = pad.reported
    assert isinstance(ended, Ended)
    assert ended.cause is EndCause.REFUSED
    assert str(ended.reason) == "This scheduler has no storage for files."


class AwayStorage(FolderStorage):
    """A storage that does not answer before its gate opens."""

    gate = asyncio.Event()

    async def status(self, path: StoragePath, actor: str) -> FileStatus:
        if not self.gate.is_set():
            raise StorageError(Problem.UNAVAILABLE, msg("The name node is away."))
        return await super().status(path, actor)


@pytest.fixture
def away(pad: Pad) -> AwayStorage:
    storage = AwayStorage(pad.folder / "storage")
    storage.gate = asyncio.Event()
    return storage


async def test_a_job_that_waits_for_its_code_says_so_and_delays_no_other(
    pad: Pad, away: AwayStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.service.inputs._PAUSES", (0.05,) * 1000)
    files = await pad.launch_over(away)
    await put(files, "/alice/code/a.py")
    pad.submit(make_role(tasks=2), codeDir="/alice/code")
    pad.submit(id="k")
    await pad.until(lambda: pad.engine.launches and pad.reported, "the other one is launched")
    assert [launch.task.job_id for launch in pad.engine.launches] == ["k"]
    told = pad.reported[0]
    assert isinstance(told, Progress)
    assert (told.task, str(told.message)) == (A, "Waiting for the storage. The name node is away.")
    away.gate.set()
    await pad.idle()
    assert [launch.task for launch in pad.engine.launches][1:] == [A, B]
    assert all(launch.code is not None for launch in pad.engine.launches[1:])


async def test_a_job_whose_storage_stays_away_may_be_tried_again(
    pad: Pad, away: AwayStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.service.inputs._PAUSES", (0.01,))
    await pad.launch_over(away)
    pad.submit(make_role(), codeDir="/alice/code")
    await pad.idle()
    ended = pad.reported[-1]
    assert isinstance(ended, Ended)
    assert (ended.cause, str(ended.reason)) == (EndCause.LAUNCH_FAILED, "The name node is away.")


async def test_a_job_that_is_stopped_while_it_waits_for_its_code_is_released_at_once(
    pad: Pad, away: AwayStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.service.inputs._PAUSES", (1000.0,))
    await pad.launch_over(away)
    pad.submit(make_role(tasks=2), codeDir="/alice/code")
    await pad.until(lambda: pad.reported, "it waits")
    pad.carry_out(KillTask(A, 11_000), KillTask(B, 11_000), ReleaseAttempt("j", 0))
    await pad.idle()
    assert pad.engine.asked[-1] == ("release", (A, B))
    assert not pad.engine.launches


async def test_what_was_fetched_for_a_job_goes_when_it_has_ended_and_its_containers_are_gone(
    pad: Pad,
) -> None:
    files = await pad.launch_over(FolderStorage(pad.folder / "storage"))
    await put(files, "/alice/code/a.py")
    pad.submit(make_role(), codeDir="/alice/code")
    await pad.idle()
    (launch,) = pad.engine.launches
    assert launch.code is not None
    pad.engine.gates["release"] = asyncio.Event()
    pad.carry_out(ReleaseAttempt("j", 0))
    pad.launcher.end(pad.world.core.jobs["j"])
    await asyncio.sleep(0.05)
    assert launch.code.exists()
    pad.engine.gates["release"].set()
    await pad.idle()
    assert not launch.code.exists()


async def test_calls_that_failed_are_counted_and_logged_with_what_they_were_about(
    pad: Pad, caplog: pytest.LogCaptureFixture
) -> None:
    noted: list[dict[str, Any]] = []

    # what a handler of the log sees, which is called where the line is written
    def note(record: logging.LogRecord) -> bool:
        noted.append(logging_config.fields_of(record))
        return True

    caplog.handler.addFilter(note)
    pad.engine.faults = {
        "launch": [OSError("no")],
        "kill": [OSError("no")],
        "release": [OSError("no")] * 2,
    }
    pad.submit(make_role())
    await pad.until(lambda: pad.launcher.errors["kill"] == 1, "a kill that failed")
    await pad.idle()
    pad.carry_out(ReleaseAttempt("j", 0))
    await pad.idle()
    assert pad.launcher.errors == {"launch": 1, "kill": 1, "release": 2}
    first, last = noted[0], noted[-1]
    assert (first["job"], first["attempt"], first["task"], first["node"]) == ("j", 0, "main-0", "a")
    assert first["user"] == "alice"
    assert (last["job"], last["attempt"]) == ("j", 0)
    assert "task" not in last
