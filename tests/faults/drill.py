"""A day in the life of a scheduler that is killed at a chosen point: what people do, what must come of it.

People submit jobs, wait until they run, stop one, delete one, and ask again whenever nobody answers. An
administrator changes shares, and one job is preempted by another. Then all is looked at from the outside:
what really ran, what the API tells, what is left on the machine.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.models import AttemptInfo, JobEvent, JobSummary
from tests.testbed.warm import WarmScheduler

from .points import Plan, install

#: OpenPAI's code where another program of this machine has one of the task's ports: the attempt never ran
PORT_CONFLICT = -7103
_FINAL = ("SUCCEEDED", "FAILED", "STOPPED")
#: what may be told again, as often as it likes
_REPEATED = ("progress",)
_PAUSE = 0.03
_PATIENCE_SECONDS = 120.0

#: name of the job, attempt, role, index
Ran = tuple[str, int, str, int]


@dataclass(frozen=True)
class Sort:
    """A job, and what must come of it.

    `begins`: it is submitted when that job runs. `last`: what the user does ("stop", "delete") in the
    subState `when`, once the job `after` has ended. `before`: the exit codes of the attempts before the last,
    where they are others. `needs`: a virtual cluster and the share (per cent) that it gets while this waits.
    """

    config: dict[str, Any]
    state: str
    exit_code: int
    attempts: int = 1
    last: str = ""
    when: str = "RUNNING"
    begins: str = ""
    after: str = ""
    before: tuple[int, ...] = ()
    needs: tuple[str, float] | None = None

    @property
    def name(self) -> str:
        """Return the jobName."""
        return str(self.config["jobName"])

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """List roles and indices of its tasks."""
        roles = self.config["taskRoles"]
        return [(role["name"], index) for role in roles for index in range(role.get("taskNumber", 1))]


class Outside(Protocol):
    """What can be seen of an engine past the scheduler."""

    def watch(self) -> AbstractAsyncContextManager[None]:
        """Look on for as long as this is open."""

    def ran(self) -> Counter[Ran]:
        """Count how often the command of each task was started."""

    async def leftovers(self, alive: bool) -> list[str]:
        """List what is left on the machine although all jobs have ended; `alive`: the scheduler runs."""


@dataclass
class Life:
    """What happened in one life of the scheduler."""

    passed: list[str]
    #: it ended where it was to end
    killed: bool


class DrilledScheduler(WarmScheduler):
    """A scheduler whose n-th life ends at the n-th of these points; later ones last."""

    def __init__(self, folder: Path, kill_at: Sequence[str], *options: str, **others: Any) -> None:
        folder.mkdir(parents=True)
        self._kill_at = kill_at
        self._plans: list[Plan] = []
        super().__init__(folder, *options, **others)

    def start(self, within: float = 30.0) -> None:
        """Start; returns when it answers, in this life or in a later one."""
        while True:
            try:
                return super().start(within)
            except RuntimeError:
                if self.process.poll() != -signal.SIGKILL:
                    raise

    def preparation(self) -> Callable[[], None]:
        """Return what ends the next life where it is to end."""
        life = len(self._plans)
        point = self._kill_at[life] if life < len(self._kill_at) else ""
        self._plans.append(Plan(self.folder / f"passed-{life}", point))
        return partial(install, self._plans[-1])

    def lives(self) -> list[Life]:
        """Tell of each life."""
        told = []
        for plan in self._plans:
            passed = plan.passed.read_text().splitlines()
            told.append(Life(passed, bool(plan.kill_at) and passed[-1:] == [plan.kill_at]))
        return told


@dataclass
class Drill:
    """Runs `sorts` on a scheduler that is killed at the points `kill_at`, one in each life."""

    folder: Path
    kill_at: Sequence[str]
    sorts: Sequence[Sort]
    outside: Outside
    cluster: str
    options: tuple[str, ...] = ()
    _scheduler: DrilledScheduler = field(init=False)
    _alice: Client = field(init=False)
    _root: Client = field(init=False)
    #: for the message when it comes to no end
    _doing: object = None

    async def run(self) -> list[Life]:
        """Go through the day; AssertionError where something came out as it must not."""
        async with self.outside.watch():
            return await self._run()

    async def _run(self) -> list[Life]:
        begin = partial(DrilledScheduler, self.folder, self.kill_at, *self.options, cluster=self.cluster)
        self._scheduler = await asyncio.to_thread(begin)
        self._scheduler.put("alice/code/data", b"fetched\n")
        keeping = asyncio.create_task(self._keep_alive())
        try:
            async with (
                asyncio.timeout(_PATIENCE_SECONDS),
                Client(self._scheduler.url, "token-of-alice") as self._alice,
                Client(self._scheduler.url, "token-of-root") as self._root,
            ):
                await self._live()
                await self._check()
        except TimeoutError:
            raise AssertionError(f"it does not come to an end: {self._doing}") from None
        except BaseException:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await asyncio.to_thread(self._scheduler.close)
            raise
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        assert await asyncio.to_thread(self._scheduler.terminate) == 0
        assert await self.outside.leftovers(alive=False) == []
        return self._scheduler.lives()

    # -- the scheduler --------------------------------------------------------------------------------------

    async def _keep_alive(self) -> None:
        """Start the scheduler again whenever it was killed."""
        while True:
            if self._scheduler.process.poll() is not None:
                await asyncio.to_thread(self._scheduler.start)
            await asyncio.sleep(0.01)

    async def _ask(
        self, call: Callable[..., Awaitable[Any]], *arguments: Any, who: Client | None = None
    ) -> Any:
        """Ask until somebody answers. That a name is taken means that we were heard the last time."""
        asked = 0
        while True:
            try:
                return await call(who or self._alice, *arguments)
            except UnreachableError:
                asked += 1
                await asyncio.sleep(_PAUSE)
            except ApiError as error:
                if asked and error.code in ("ConflictJobError", "NoJobError"):
                    return None
                raise

    # -- people ---------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        to_submit = list(self.sorts)
        to_do = {sort.name: sort for sort in self.sorts if sort.last}
        to_share = {sort.name: sort.needs for sort in self.sorts if sort.needs is not None}
        known: set[str] = set()
        jobs: dict[str, JobSummary] = {}
        while True:
            for sort in list(to_submit):
                if not sort.begins or doing(jobs, sort.begins) == "RUNNING":
                    to_submit.remove(sort)
                    await self._ask(Client.submit, sort.config)
                    known.add(sort.name)
            jobs = {job["name"]: job for job in await self._ask(Client.jobs)}
            self._doing = {name: (job["state"], job["subState"]) for name, job in jobs.items()}
            assert jobs.keys() == known, "what was acknowledged is lost"
            for job in jobs.values():
                assert (job["subState"] == "ENDED") == (job["state"] not in ("WAITING", "RUNNING")), job
                assert (job["subState"] == "ENDED") == (job["completedTime"] is not None), job
            for name, (cluster, share) in list(to_share.items()):
                if doing(jobs, name) == "QUEUED":
                    del to_share[name]
                    await self._ask(
                        partial(Client.set_virtual_cluster, max_capacity=100.0),
                        cluster,
                        share,
                        who=self._root,
                    )
            for name, sort in list(to_do.items()):
                assert doing(jobs, name) != "ENDED", name
                if doing(jobs, name) == sort.when and (not sort.after or doing(jobs, sort.after) == "ENDED"):
                    del to_do[name]
                    if sort.last == "delete":
                        known.remove(name)
                    await self._ask(Client.stop if sort.last == "stop" else Client.delete, "alice", name)
            if not (to_submit or to_share or to_do) and all(
                job["subState"] == "ENDED" for job in jobs.values()
            ):
                return
            await asyncio.sleep(_PAUSE)

    # -- what came of it ------------------------------------------------------------------------------------

    async def _check(self) -> None:
        # (what ended last is released a moment later)
        while left := await self.outside.leftovers(alive=True):
            self._doing = left
            await asyncio.sleep(_PAUSE)
        ran = self.outside.ran()
        assert not [task for task, times in ran.items() if times > 1], "something ran twice"
        for sort in self.sorts:
            if sort.last != "delete":
                await self._check_job(sort, ran)
        shares = await self._ask(Client.virtual_clusters)
        for name, share in (sort.needs for sort in self.sorts if sort.needs is not None):
            assert (shares[name]["capacity"], shares[name]["maxCapacity"]) == (share, 100.0)
        assert not any(cluster["numActiveJobs"] for cluster in shares.values())

    async def _check_job(self, sort: Sort, ran: Counter[Ran]) -> None:
        detail = await self._ask(Client.job, "alice", sort.name)
        status = detail["jobStatus"]
        assert (status["state"], status["appExitCode"]) == (sort.state, sort.exit_code), status
        attempts: list[AttemptInfo] = await self._ask(Client.attempts, "alice", sort.name)
        assert [attempt["attempt"] for attempt in attempts] == list(range(len(attempts)))
        real = [attempt for attempt in attempts if attempt["exitCode"] != PORT_CONFLICT]
        assert len(real) == sort.attempts, attempts
        codes = [attempt["exitCode"] for attempt in real]
        assert codes == [*(sort.before or (len(real) - 1) * [sort.exit_code]), sort.exit_code], attempts
        for attempt in real:
            assert attempt["state"] in _FINAL, attempt
            for role, index in sort.tasks:
                code = attempt["taskRoles"][role]["taskStatuses"][index]["containerExitCode"]
                times = ran[sort.name, attempt["attempt"], role, index]
                if sort.state == "SUCCEEDED":
                    log = await self._ask(Client.log, "alice", sort.name, role, index)
                    assert log == b"ran\n", (sort.name, role, index, log)
                if sort.state == "SUCCEEDED" or attempt["trigger"] == {"taskRole": role, "taskIndex": index}:
                    assert (times, code) == (1, sort.exit_code), attempt
        self._check_events(sort, attempts, await self._ask(Client.list_events, "alice", sort.name))

    def _check_events(self, sort: Sort, attempts: list[AttemptInfo], events: list[JobEvent]) -> None:
        ids = [event["id"] for event in events]
        assert ids == sorted(set(ids))
        told = Counter(
            (event["type"], event["attempt"], event["taskRole"], event["taskIndex"])
            for event in events
            if event["type"] not in _REPEATED
        )
        assert set(told.values()) == {1}, f"told twice: {told}"
        assert ("submitted", None, None, None) in told
        assert ("ended", None, None, None) in told
        assert events[-1]["type"] == "ended"
        times = [event["time"] for event in events]
        assert times == sorted(times)
        for attempt in attempts:
            for role, index in sort.tasks:
                assert ("task-ended", attempt["attempt"], role, index) in told, told


def doing(jobs: Mapping[str, JobSummary], name: str) -> str:
    """Return a job's subState; "" where there is no such job yet."""
    return jobs[name]["subState"] if name in jobs else ""
