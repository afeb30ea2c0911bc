"""Many times kill -9 at random moments, while people submit and stop: nothing is lost, nothing runs twice.

The scheduler is the real program on the process engine. Every task appends a line to a file when its command
begins, so that the file, and not the scheduler, tells what really ran.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.job.task import TaskRef
from pai_scheduler.rest.models import AttemptInfo, JobSummary
from tests.scheduler.making import make_config, make_role
from tests.testbed.warm import WarmScheduler

USERS = 3
#: small enough that jobs queue up now and then
CLUSTER = "nodes: [{name: a, cpus: 6, memoryMB: 100000, storageGB: 1000, gpus: {P100: 2}}]"
#: OpenPAI's code where another program of this machine has one of the task's ports: the attempt never ran
PORT_CONFLICT = -7103

#: a task: name of its job, attempt, index
Ran = tuple[str, int, int]


@dataclass
class Kind:
    """A sort of job: what its tasks do after they have said that they run, and how that must come out."""

    command: str
    state: str
    exit_code: int
    weight: int = 1
    tasks: int = 1
    attempts: int = 1
    stopped: bool = False
    fields: dict[str, Any] = field(default_factory=dict)


KINDS = [
    Kind("exit 0", "SUCCEEDED", 0, weight=4),
    Kind("exit 7", "FAILED", 7, weight=2),
    Kind("sleep 0.3; exit 7", "FAILED", 7, weight=4),
    Kind("sleep 1; exit 9", "FAILED", 9, weight=4),
    Kind("sleep 0.2", "SUCCEEDED", 0, weight=3, tasks=3),
    Kind("sleep 0.1; [ $PAI_TASK_INDEX != 1 ] || exit 5; exec sleep 100", "FAILED", 5, weight=2, tasks=3),
    Kind("sleep 0.1; exit 3", "FAILED", 3, weight=2, attempts=3, fields={"retryCount": 2}),
    Kind("exec sleep 1000", "STOPPED", -7351, weight=2, tasks=2, stopped=True),
    Kind("sleep 0.2; kill -SEGV $$", "FAILED", 139),
]


class Chaos:
    """A scheduler that is killed again and again, and what people did with it meanwhile."""

    def __init__(self, folder: Path, seed: int, planned: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - no secrets here
        self.ran = folder / "ran"
        self.ran.touch()
        self.scheduler = WarmScheduler(folder, cluster=CLUSTER)
        self.planned = planned
        self.kills: list[float] = []
        self.jobs: dict[str, Kind] = {}
        self.to_stop: asyncio.Queue[str] = asyncio.Queue()
        #: how many people may still submit a job that is to be stopped
        self.submitting = USERS
        self.over = False

    # -- the killer -----------------------------------------------------------------------------------------

    async def kill_again_and_again(self) -> None:
        for number in range(self.planned):
            if number % 4 == 0:
                # while it starts and takes up what was there
                await asyncio.sleep(self.random.uniform(0, 0.12))
            else:
                await self.answers()
                await asyncio.sleep(self.random.uniform(0, 0.5))
            assert self.scheduler.process.poll() is None, "it ended by itself"
            self.kills.append(time.time() * 1000)
            self.scheduler.kill()
            self.scheduler.process = self.scheduler.spawn()
        await self.answers()
        self.over = True

    async def answers(self) -> None:
        async with Client(self.scheduler.url) as anybody:
            for _ in range(1500):
                assert self.scheduler.process.poll() is None, self.scheduler.log.read_text()[-3000:]
                with contextlib.suppress(UnreachableError):
                    await anybody.about()
                    return
                await asyncio.sleep(0.02)
        pytest.fail("the scheduler does not answer")

    # -- people ---------------------------------------------------------------------------------------------

    async def submit_again_and_again(self, alice: Client, who: int) -> None:
        """Submit one job after the other, each until it is acknowledged."""
        kinds = [kind for kind in KINDS for _ in range(kind.weight)]
        for number in range(10_000):
            if self.over:
                break
            kind, name = self.random.choice(kinds), f"job-{who}-{number}"
            role = make_role(
                tasks=kind.tasks,
                command=f"echo $PAI_JOB_NAME $PAI_CONTAINER_ID >> {self.ran}; {kind.command}",
                gpus=self.random.choice([0, 0, 0, 1]) if kind.tasks == 1 else 0,
            )
            await self.acknowledged(alice.submit, make_config(role, name=name, **kind.fields))
            self.jobs[name] = kind
            if kind.stopped:
                self.to_stop.put_nowait(name)
            await asyncio.sleep(self.random.uniform(0, 0.8))
        self.submitting -= 1

    async def stop_again_and_again(self, alice: Client) -> None:
        while self.submitting or not self.to_stop.empty():
            with contextlib.suppress(TimeoutError):
                name = await asyncio.wait_for(self.to_stop.get(), 1)
                await asyncio.sleep(self.random.uniform(0, 0.6))
                await self.acknowledged(alice.stop, "alice", name)

    async def acknowledged(self, call: Any, *args: Any) -> None:
        """Ask until there is an answer. That the name is taken means that we were heard the last time."""
        asked = 0
        for _ in range(3000):
            try:
                await call(*args)
            except UnreachableError:
                asked += 1
                await asyncio.sleep(0.02)
            except ApiError as error:
                if asked and error.code == "ConflictJobError":
                    return
                raise
            else:
                return
        pytest.fail("the scheduler never answered")

    # -- what is left ---------------------------------------------------------------------------------------

    def ran_tasks(self) -> Counter[Ran]:
        """Count how often a task said that it runs: of which job, in which attempt, with which index."""
        counted = Counter[Ran]()
        for line in self.ran.read_text().splitlines():
            job, name = line.split()
            task = TaskRef.parse(name)
            assert task is not None
            counted[job, task.attempt, task.index] += 1
        return counted

    def leftover_processes(self) -> dict[int, str]:
        """List the processes whose environment or command line names our folder, with that line."""
        mark, found = os.fsencode(self.scheduler.data_dir), dict[int, str]()
        for process in Path("/proc").iterdir():
            if process.name.isdigit():
                with contextlib.suppress(OSError):
                    command = (process / "cmdline").read_bytes()
                    if mark in command + (process / "environ").read_bytes():
                        found[int(process.name)] = command.decode(errors="replace")
        return found

    def leftover_folders(self) -> list[Path]:
        """List the working folders, which go with their attempt."""
        return list((self.scheduler.data_dir / "tasks").glob("*/work"))

    def leftover_cgroups(self) -> list[str]:
        """List the cgroups of our tasks."""
        ours = {folder.name for folder in (self.scheduler.data_dir / "tasks").iterdir()}
        return [path for path, _, _ in os.walk("/sys/fs/cgroup") if Path(path).name in ours]


@pytest.fixture
def chaos(tmp_path: Path, request: pytest.FixtureRequest, thorough: bool) -> Iterator[Chaos]:
    seed = int(os.environ.get("KILL_NINE_SEED", random.SystemRandom().randrange(1_000_000)))
    request.node.add_report_section("call", "seed", f"KILL_NINE_SEED={seed}")
    made = Chaos(tmp_path, seed, 200 if thorough else 12)
    yield made
    made.scheduler.close()
    # (none, unless the test failed)
    for process in made.leftover_processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


async def ended(alice: Client, name: str) -> None:
    async for _ in alice.events("alice", name):
        pass


def check_job(name: str, kind: Kind, job: JobSummary, attempts: list[AttemptInfo], ran: Counter[Ran]) -> None:
    """Compare a job with what its kind must come to, and with what really ran."""
    context = (name, kind, job, attempts)
    assert (job["state"], job["appExitCode"]) == (kind.state, kind.exit_code), context
    real = [attempt for attempt in attempts if attempt["exitCode"] != PORT_CONFLICT]
    assert [attempt["attempt"] for attempt in attempts] == list(range(len(attempts)))
    if kind.stopped:
        assert len(real) <= 1
        return
    assert len(real) == kind.attempts, context
    for attempt in real:
        assert attempt["exitCode"] == kind.exit_code, context
        tasks = attempt["taskRoles"]["main"]["taskStatuses"]
        times = [ran[name, attempt["attempt"], task["taskIndex"]] for task in tasks]
        assert len(times) == kind.tasks
        if kind.state == "SUCCEEDED":
            assert set(times) == {1}, context
        else:
            # (another one may have been ended before its first line)
            assert attempt["trigger"] is not None
            assert times[attempt["trigger"]["taskIndex"]] == 1, context


@pytest.mark.timeout(900)
async def test_kills_at_any_moment_lose_nothing_and_run_nothing_twice(chaos: Chaos) -> None:
    async with Client(chaos.scheduler.url, "token-of-alice") as alice:
        await asyncio.gather(
            chaos.kill_again_and_again(),
            chaos.stop_again_and_again(alice),
            *(chaos.submit_again_and_again(alice, who) for who in range(USERS)),
        )
        assert len(chaos.kills) == chaos.planned
        # every job that was acknowledged is there, and ends
        jobs = {job["name"]: job for job in await alice.jobs()}
        assert chaos.jobs.keys() == jobs.keys()
        await asyncio.gather(*(ended(alice, name) for name in chaos.jobs))
        jobs = {job["name"]: job for job in await alice.jobs()}
        # nothing ran twice; everything came out as it must
        ran = chaos.ran_tasks()
        assert not [task for task, times in ran.items() if times > 1]
        across = 0
        for name, kind in chaos.jobs.items():
            attempts = await alice.attempts("alice", name)
            check_job(name, kind, jobs[name], attempts, ran)
            across += sum(
                (attempt["launchedTime"] or 0) < kill < (attempt["completedTime"] or 0)
                for attempt in attempts
                for kill in chaos.kills
                if attempt["launchedTime"]
            )
        # (else this proved little)
        assert across > chaos.planned / 4
        # nothing is held, and nothing is left
        (node,) = await alice.nodes()
        assert node["used"] == {"cpus": 0, "memoryMB": 0, "storageGB": 0, "gpus": {"P100": 0}}
        assert [gpu["job"] for gpu in node["gpus"]] == [None, None]
    # (what a kill just before its release has left goes with the next start)
    chaos.scheduler.kill()
    await asyncio.to_thread(chaos.scheduler.start)
    assert chaos.leftover_folders() == []
    assert chaos.leftover_cgroups() == []
    assert chaos.scheduler.terminate() == 0
    assert chaos.leftover_processes() == {}
    print(f"{len(chaos.jobs)} jobs, {ran.total()} tasks, {across} attempts across a kill")
