"""Two real schedulers on one PostgreSQL and one data folder: one leads, the other is its standby.

Every task appends a line to a file when its command begins, so that the file tells what really ran.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from tests.testbed.postgres import Postgres, with_passfile
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler

OVERTAKEN = 3


class Lab:
    """The schedulers of one test, and what their tasks say."""

    def __init__(self, folder: Path, postgres_url: str) -> None:
        self.folder = folder
        self.ran = folder / "ran"
        self.ran.touch()
        self.gate = folder / "gate"
        self._database = with_passfile(postgres_url, folder)
        self.schedulers: list[RunningScheduler] = []

    async def start(self) -> RunningScheduler:
        """Start another one; it leads, or answers as a standby."""
        folder = self.folder / f"scheduler-{len(self.schedulers)}"
        folder.mkdir()
        options = ("--database", self._database)
        data_dir = self.folder / "data"
        self.schedulers.append(await asyncio.to_thread(WarmScheduler, folder, *options, data_dir=data_dir))
        return self.schedulers[-1]

    async def close(self) -> None:
        """End every job and every scheduler, whatever state they are in."""
        for one in self.schedulers:
            with suppress(ProcessLookupError):
                one.process.send_signal(signal.SIGCONT)
        alive = [one for one in self.schedulers if one.process.poll() is None]
        if not alive:
            await asyncio.to_thread(self.schedulers[0].start)
            alive = self.schedulers[:1]
        async with asyncio.timeout(60):
            while not (leading := [one for one in alive if await answers(one)]):  # noqa: ASYNC110 - others make it so
                await asyncio.sleep(0.1)
        try:
            await asyncio.to_thread(leading[0].close)
        finally:
            for one in alive:
                if one.process.poll() is None:
                    await asyncio.to_thread(one.terminate)

    def job(self, name: str, command: str) -> dict[str, object]:
        """Make a job that says that it runs, then does something."""
        return hello_job(name, f"echo $PAI_JOB_NAME $PAI_CONTAINER_ID >> {self.ran}; {command}")

    def waits(self, then: str) -> str:
        """Return a command that waits for the gate to open."""
        return f"while [ ! -e {self.gate} ]; do sleep 0.05; done; {then}"

    def ran_twice(self) -> list[str]:
        """List what ran more than once."""
        return [line for line, times in Counter(self.ran.read_text().splitlines()).items() if times > 1]


async def answers(scheduler: RunningScheduler) -> bool:
    """Return whether a scheduler leads."""
    async with Client(scheduler.url) as anybody:
        try:
            await anybody.about()
        except (UnreachableError, ApiError):
            return False
    return True


async def leads(scheduler: RunningScheduler) -> None:
    """Wait until a scheduler leads."""
    async with asyncio.timeout(30):
        while not await answers(scheduler):
            assert scheduler.process.poll() is None, scheduler.log.read_text()[-3000:]
            await asyncio.sleep(0.1)


async def runs(alice: Client, name: str) -> None:
    async for event in alice.events("alice", name):
        if event["type"] == "running":
            return


async def outcome(alice: Client, name: str) -> tuple[Any, Any]:
    """Wait for a job's end; return its state and exit code."""
    async for _ in alice.events("alice", name):
        pass
    status = (await alice.job("alice", name))["jobStatus"]
    return status["state"], status["appExitCode"]


@pytest.fixture
async def lab(tmp_path: Path, postgres_url: str) -> AsyncIterator[Lab]:
    made = Lab(tmp_path, postgres_url)
    yield made
    await made.close()


async def test_a_standby_says_what_it_is_and_whom_to_ask(lab: Lab) -> None:
    leader, standby = await lab.start(), await lab.start()
    async with httpx.AsyncClient(base_url=standby.url, trust_env=False) as http:
        health = await http.get("/healthz")
        assert (health.status_code, health.json()) == (200, {"status": "standby"})
        for method, path in (("GET", "/api/v1"), ("POST", "/api/v1/jobs"), ("GET", "/no/such/place")):
            refused = await http.request(method, path, content="{}")
            assert refused.status_code == 503
            assert refused.json()["code"] == "StandbyError"
            assert leader.url in refused.json()["message"]
        chinese = await http.get("/api/v1", headers={"Accept-Language": "zh-CN"})
        assert "备用" in chinese.json()["message"]
    async with Client(standby.url, "token-of-alice") as alice:
        # it knows nothing about jobs, and so says nothing about them
        with pytest.raises(UnreachableError, match="standby"):
            await alice.job("alice", "any")


async def test_a_leader_that_stops_hands_over_at_once(lab: Lab) -> None:
    leader, standby = await lab.start(), await lab.start()
    async with Client(leader.url, "token-of-alice") as alice:
        await alice.submit(lab.job("runs-on", lab.waits("exit 5")))
        await runs(alice, "runs-on")
    assert await asyncio.to_thread(leader.terminate) == 0
    await leads(standby)
    lab.gate.touch()
    async with Client(standby.url, "token-of-alice") as alice:
        assert await outcome(alice, "runs-on") == ("FAILED", 5)
    assert lab.ran_twice() == []


async def test_a_standby_takes_up_the_jobs_of_a_leader_that_was_killed(lab: Lab) -> None:
    leader, standby = await lab.start(), await lab.start()
    async with Client(leader.url, "token-of-alice") as alice:
        await alice.submit(lab.job("runs-on", lab.waits("exit 5")))
        await alice.submit(lab.job("ends-meanwhile", f"sleep 1; touch {lab.folder}/over; exit 9"))
        await runs(alice, "runs-on")
        await runs(alice, "ends-meanwhile")
        names = [f"acknowledged-{number}" for number in range(20)]
        await asyncio.gather(*(alice.submit(lab.job(name, "exit 0")) for name in names))
        leader.kill()
    await leads(standby)
    assert (lab.folder / "over").exists()
    lab.gate.touch()
    async with Client(standby.url, "token-of-alice") as alice:
        assert {job["name"] for job in await alice.jobs()} == {*names, "runs-on", "ends-meanwhile"}
        assert await outcome(alice, "runs-on") == ("FAILED", 5)
        assert await outcome(alice, "ends-meanwhile") == ("FAILED", 9)
        for name in names:
            assert await outcome(alice, name) == ("SUCCEEDED", 0)
        # and the one that was killed is the standby of its standby
        await asyncio.to_thread(leader.start)
        assert not await answers(leader)
        assert await answers(standby)
    assert lab.ran_twice() == []
    assert len(lab.ran.read_text().splitlines()) == 22


async def test_a_leader_that_was_frozen_is_overtaken_and_does_nothing_more(lab: Lab) -> None:
    leader, standby = await lab.start(), await lab.start()
    async with Client(leader.url, "token-of-alice") as alice:
        await alice.submit(lab.job("runs-on", lab.waits("exit 5")))
        await runs(alice, "runs-on")
        # frozen with its hands full: it starts what was acknowledged, and takes more
        early = [f"early-{number}" for number in range(20)]
        await asyncio.gather(*(alice.submit(lab.job(name, "exit 0")) for name in early))
        late = [f"late-{number}" for number in range(20)]
        submitting = asyncio.gather(
            *(alice.submit(lab.job(name, "exit 0")) for name in late), return_exceptions=True
        )
        await asyncio.sleep(0.1)
        leader.process.send_signal(signal.SIGSTOP)
        await leads(standby)
        async with Client(standby.url, "token-of-alice") as there:
            await there.submit(lab.job("afterwards", "exit 3"))
            assert await outcome(there, "afterwards") == ("FAILED", 3)
            leader.process.send_signal(signal.SIGCONT)
            assert await asyncio.to_thread(leader.process.wait, 30) == OVERTAKEN
            answered = await submitting
            lab.gate.touch()
            assert await outcome(there, "runs-on") == ("FAILED", 5)
            jobs = {job["name"] for job in await there.jobs()}
            kept = {name for name, answer in zip(late, answered, strict=True) if answer == name}
            # what was acknowledged, before the frost or after, is there
            assert {*early, *kept} <= jobs
            for name in jobs & {*early, *late}:
                assert await outcome(there, name) == ("SUCCEEDED", 0)
    assert "another scheduler has taken the lead" in leader.log.read_text()
    assert lab.ran_twice() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
async def test_a_database_that_goes_and_comes_back_costs_nothing_but_patience(
    lab: Lab, postgres: Postgres, number: signal.Signals
) -> None:
    leader, standby = await lab.start(), await lab.start()
    async with Client(leader.url, "token-of-alice") as alice:
        await alice.submit(lab.job("runs-on", lab.waits("exit 5")))
        await alice.submit(
            lab.job("ends-meanwhile", f"{lab.waits('')} sleep 1; touch {lab.folder}/over; exit 9")
        )
        await runs(alice, "runs-on")
        await runs(alice, "ends-meanwhile")
        await asyncio.to_thread(postgres.stop, number)
        try:
            for call in (alice.jobs(), alice.submit(lab.job("refused", "exit 0"))):
                with pytest.raises(ApiError, match="database") as caught:
                    await call
                assert (caught.value.status, caught.value.code) == (503, "StorageUnavailableError")
            lab.gate.touch()
            async with asyncio.timeout(30):
                while not (lab.folder / "over").exists():  # noqa: ASYNC110 - others make it so
                    await asyncio.sleep(0.05)
        finally:
            await asyncio.to_thread(postgres.start)
        assert await outcome(alice, "runs-on") == ("FAILED", 5)
        assert await outcome(alice, "ends-meanwhile") == ("FAILED", 9)
        assert {job["name"] for job in await alice.jobs()} == {"runs-on", "ends-meanwhile"}
        await alice.submit(lab.job("afterwards", "exit 0"))
        assert await outcome(alice, "afterwards") == ("SUCCEEDED", 0)
    # it still leads
    assert leader.process.poll() is None
    assert not await answers(standby)
    assert lab.ran_twice() == []
