"""The Docker daemon restarts or hangs under a running scheduler: nothing is lost, nothing runs twice.

The daemon is one of the tests' own. Each command writes one line when it begins, so the log of an attempt
tells how often it ran.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiodocker
import pytest

from pai_scheduler.client.rest import Client
from tests.scheduler.making import make_config, make_role
from tests.testbed.docker import Daemon, networks_of_jobs, socket_folder
from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import WarmScheduler

PATIENCE = 90.0
#: as long as the engine waits for an answer to any of its calls
HANG_SECONDS = 60.0
#: in which a person must have an answer meanwhile
ANSWER_SECONDS = 5.0
CLUSTER = "nodes: [{name: node-a, cpus: 64, memoryMB: 100000, storageGB: 1000}]"


@dataclass
class Site:
    """A scheduler, the daemon under it, and a user."""

    scheduler: RunningScheduler
    daemon: Daemon
    alice: Client
    bob: Client

    async def submit(self, name: str, command: str, tasks: int = 1, **fields: Any) -> None:
        await self.alice.submit(_config(name, command, tasks, **fields))

    async def events_until(self, name: str, *types: str) -> None:
        async with asyncio.timeout(PATIENCE):
            async for event in self.alice.events("alice", name):
                if event["type"] in types:
                    return

    async def status(self, name: str) -> dict[str, Any]:
        return dict((await self.alice.job("alice", name))["jobStatus"])

    async def end(self, name: str) -> tuple[str, int]:
        """Wait for a job's end; return its state and how many attempts it took, none of which ran twice."""
        await self.events_until(name, "ended")
        attempts = await self.alice.attempts("alice", name)
        for attempt in attempts:
            for role in attempt["taskRoles"].values():
                for task in role["taskStatuses"]:
                    number, index = attempt["attempt"], task["taskIndex"]
                    log = await self.alice.log("alice", name, "main", index, attempt=number)
                    assert log.count(b"ran\n") <= 1, f"attempt {number} of {name} ran more than once"
        return (await self.status(name))["state"], len(attempts)

    async def restart_daemon(self, number: signal.Signals) -> None:
        await asyncio.to_thread(self.daemon.stop, number)
        await asyncio.to_thread(self.daemon.start)

    async def left(self) -> list[str]:
        """List our containers and networks that are on the daemon."""
        async with aiodocker.Docker(url=self.daemon.host) as docker:
            containers = [name for each in await docker.containers.list(all=1) for name in each["Names"]]
            networks = networks_of_jobs(network["Name"] for network in await docker.networks.list())
        return [name for name in (*containers, *networks) if name.lstrip("/").startswith("pai-")]

    async def nothing_is_left(self) -> None:
        async with asyncio.timeout(PATIENCE):
            while await self.left():  # noqa: ASYNC110 (what is waited for happens in other processes)
                await asyncio.sleep(0.2)


def _config(name: str, command: str, tasks: int = 1, **fields: Any) -> dict[str, Any]:
    role = make_role(tasks=tasks, command=f"echo ran; {command}")
    return make_config(role, name=name, **{"image": TINY, **fields})


@pytest.fixture(scope="module", params=["plain"])
def daemon(
    request: pytest.FixtureRequest, docker_host: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Daemon]:
    """Run one for all the tests: who ends it starts it again. Where it is asked for, with live-restore."""
    del docker_host  # only where Docker can be had at all
    root = tmp_path_factory.mktemp("daemon") / "root"
    own = Daemon(root, socket_folder(), own_network=True, live_restore=request.param == "live-restore")

    def start() -> str:
        own.start()
        return tiny_image(own.host)

    provide(start)
    yield own
    own.remove()


both_kinds = pytest.mark.parametrize("daemon", ["plain", "live-restore"], indirect=True, scope="module")


@pytest.fixture
async def site(daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    await asyncio.to_thread(daemon.start)  # (runs, unless the test before has failed)
    monkeypatch.setenv("DOCKER_HOST", daemon.host)
    (tmp_path / "service").mkdir()
    scheduler = WarmScheduler(tmp_path / "service", "--engine", "docker", cluster=CLUSTER)
    async with Client(scheduler.url, "token-of-alice") as alice, Client(scheduler.url, "token-of-bob") as bob:
        yield Site(scheduler, daemon, alice, bob)
    await asyncio.to_thread(scheduler.close)


@both_kinds
async def test_jobs_go_on_after_a_restart_of_the_daemon(site: Site) -> None:
    await site.submit("long", "sleep 4", tasks=2)
    await site.submit("short", "sleep 0.2; exit 3")
    await site.events_until("long", "running")
    restarting = asyncio.create_task(site.restart_daemon(signal.SIGTERM))
    for index in range(3):
        await site.submit(f"meanwhile-{index}", "sleep 0.2")
        await asyncio.sleep(0.3)
    await restarting
    state, attempts = await site.end("long")
    assert state == "SUCCEEDED"
    # with live-restore its containers are left alone; without they end with it, and the job is tried again,
    # sometimes so soon that the daemon is still about to go
    assert attempts == 1 if site.daemon.live_restore else attempts in (2, 3)
    assert (await site.end("short"))[0] == "FAILED"
    for index in range(3):
        assert (await site.end(f"meanwhile-{index}"))[0] == "SUCCEEDED"
    await site.nothing_is_left()


@both_kinds
async def test_a_crash_of_daemon_and_scheduler_at_once_loses_nothing(site: Site) -> None:
    await site.submit("long", "sleep 4")
    await site.submit("held", "exit 7", jobEnvs={"isDebug": True})
    await site.events_until("long", "running")
    await site.events_until("held", "running")
    site.scheduler.kill()
    await site.restart_daemon(signal.SIGKILL)
    await asyncio.to_thread(site.scheduler.start)
    state, attempts = await site.end("long")
    assert (state, attempts) == ("SUCCEEDED", 1 if site.daemon.live_restore else 2)
    await site.alice.stop("alice", "held")
    assert (await site.end("held"))[0] in ("STOPPED", "FAILED")
    await site.nothing_is_left()


@pytest.mark.long
async def test_while_the_daemon_hangs_the_scheduler_answers_and_afterwards_all_goes_on(site: Site) -> None:
    await site.submit("running", "sleep 2; exit 3")
    await site.submit("stopped", "sleep 1000")
    await site.bob.submit(_config("bobs", "sleep 1000"))
    await site.events_until("running", "running")
    await site.events_until("stopped", "running")
    async with asyncio.timeout(PATIENCE):
        while await site.bob.log("bob", "bobs", "main", 0) != b"ran\n":  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    site.daemon.signal(signal.SIGSTOP)
    try:
        for index in range(3):
            await site.submit(f"new-{index}", "sleep 0.2; exit 0")
        await site.alice.stop("alice", "stopped")
        clock = asyncio.get_running_loop().time
        until = clock() + HANG_SECONDS
        rounds = 0
        while clock() < until:
            async with asyncio.timeout(ANSWER_SECONDS):
                assert len(await site.alice.jobs()) == 5
            assert (await site.status("new-0"))["state"] == "WAITING"
            assert (await site.status("running"))["state"] == "RUNNING"
            async with asyncio.timeout(ANSWER_SECONDS):
                later = _config(f"bobs-{rounds}", "exit 0")
                assert (await site.bob.validate(later))["errors"] == []
                await site.bob.submit(later)
                rounds += 1
                assert len(await site.bob.jobs("bob")) == 1 + rounds
                assert await site.bob.log("bob", "bobs", "main", 0) == b"ran\n"
            await asyncio.sleep(4)
    finally:
        site.daemon.signal(signal.SIGCONT)
    assert await site.end("running") == ("FAILED", 1)
    assert await site.end("stopped") == ("STOPPED", 1)
    for index in range(3):
        assert (await site.end(f"new-{index}"))[0] == "SUCCEEDED"
    await site.bob.stop("bob", "bobs")
    for index in range(rounds):
        async with asyncio.timeout(PATIENCE):
            async for event in site.bob.events("bob", f"bobs-{index}"):
                if event["type"] == "ended":
                    break
        assert (await site.bob.log("bob", f"bobs-{index}", "main", 0)) == b"ran\n"
    await site.nothing_is_left()
