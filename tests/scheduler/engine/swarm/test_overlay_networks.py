"""Networks across machines that are there in advance: who gets one, and that nothing is left of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import docker
import pytest

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.containers import LABEL_SWARM
from pai_scheduler.engine.docker.network_pool import SpareNetworks
from pai_scheduler.engine.swarm.networks import NetworkHolders, OverlayNetworks
from pai_scheduler.testing.lab import Lab, make_gang, make_launch, make_task
from tests.scheduler.engine.swarm.gangs import INSTANCE, OpenSwarm, launch_across
from tests.testbed.docker import client
from tests.testbed.swarm import Swarm


class Manager:
    """What a Swarm has of ours, as its manager tells."""

    def __init__(self, connected: docker.DockerClient) -> None:
        self._client, self._ours = connected, {"label": f"{LABEL_SWARM}={INSTANCE}"}

    def held(self) -> list[str]:
        """Return the networks that are held."""
        return sorted(str(service.name) for service in self._client.services.list(filters=self._ours))

    def networks(self) -> list[str]:
        """Return all networks across machines."""
        found = self._client.networks.list(filters=self._ours)
        return sorted(str(network.name) for network in found)

    def runs_everywhere(self, network: str) -> bool:
        """Return whether a network is set up on all three machines."""
        tasks = self._client.services.get(network).tasks(filters={"desired-state": "running"})
        return [task["Status"]["State"] for task in tasks] == ["running"] * 3

    async def until_there_are(self, held: list[str], networks: list[str]) -> None:
        """Wait until these are held, and these networks are there, and no others.

        (The manager's own copy of a network outlives it by some seconds.)
        """
        await self.until(lambda: (self.held(), self.networks()) == (held, networks))

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        async with asyncio.timeout(90):
            while not await asyncio.to_thread(is_so):  # noqa: ASYNC110 - the manager tells nobody
                await asyncio.sleep(0.1)

    async def until_held(self, *not_these: str) -> str:
        """Wait until one other network is held on all machines, and return it."""

        def is_there() -> bool:
            found = [name for name in self.held() if name not in not_these]
            return len(found) == 1 and self.runs_everywhere(found[0])

        await self.until(is_there)
        (name,) = [name for name in self.held() if name not in not_these]
        return name


@pytest.fixture
async def manager(three_nodes: Swarm) -> AsyncIterator[Manager]:
    """Ask the Swarm's manager."""
    with client(three_nodes.manager.host) as connected:
        yield Manager(connected)


@pytest.fixture
async def ahead(
    open_swarm: OpenSwarm, debian_image: str, runtime_image: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Lab]:
    """Run an engine that has one network across machines in advance."""
    monkeypatch.setattr("pai_scheduler.engine.docker.network_pool._QUIET_SECONDS", 0.1)
    engine = await open_swarm(spare_networks=1, runtime_image=runtime_image)
    lab = await Lab.over(engine, debian_image)
    await lab.adopt([])
    yield lab
    await lab.clean()


async def test_a_gang_across_machines_gets_a_network_that_all_have_and_another_is_made(
    ahead: Lab, manager: Manager
) -> None:
    first = await manager.until_held()
    launches = await launch_across(ahead, "exec sleep 100000", "exec sleep 100000")
    addresses = [(await ahead.started(launch.task)).address for launch in launches]
    assert addresses == [launch.address for launch in launches]
    second = await manager.until_held(first)
    assert manager.networks() == sorted([first, second])
    await ahead.engine.release(ahead.gangs.pop())
    await manager.until_there_are([second], [second])


async def test_the_network_of_a_gang_that_runs_is_held_no_more(
    ahead: Lab, manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.swarm.networks._HOLD_SECONDS", 0.1)
    first = await manager.until_held()
    say = "until getent hosts main-1; do sleep 0.1; done; echo found; exec sleep 100000"
    launches = await launch_across(ahead, say, "exec sleep 100000")
    await manager.until(lambda: first not in manager.held())
    assert first in manager.networks()
    await ahead.printed(launches[0].task, "found")


async def test_after_a_kill_a_gang_has_its_network_still_and_what_nobody_has_is_removed(
    ahead: Lab, manager: Manager, open_swarm: OpenSwarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(_: OverlayNetworks) -> None:
        """A killed scheduler closes nothing."""

    given = await manager.until_held()
    launches = await launch_across(ahead, "exec sleep 100000", "exec sleep 100000")
    for launch in launches:
        await ahead.started(launch.task)
    gang = ahead.gangs.pop()
    await manager.until_held(given)
    with monkeypatch.context() as kill:
        kill.setattr(OverlayNetworks, "close", nothing)
        later = await open_swarm()
    assert await later.prepare(gang) == {launch.task: launch.address for launch in launches}
    await later.adopt({launch.task: launch.node for launch in launches})
    await manager.until_there_are([], [given])
    for launch in launches:
        await later.kill(launch.task, 0)
    await later.release(gang)
    await manager.until_there_are([], [])


@pytest.mark.usefixtures("ahead")
async def test_the_end_leaves_none_that_nobody_has(manager: Manager, open_swarm: OpenSwarm) -> None:
    await manager.until_held()
    await open_swarm()  # (closes the first one)
    await manager.until_there_are([], [])


@pytest.fixture
def of_machines(tmp_path: Path) -> Callable[[dict[str, bool]], OverlayNetworks]:
    """Make networks over machines, of each of which it is said whether it takes any network."""

    def make(machines: dict[str, bool]) -> OverlayNetworks:
        api = DockerApi("unix:///nobody")
        return OverlayNetworks(
            api,
            INSTANCE,
            encrypted=False,
            spares=SpareNetworks(tmp_path, 0),
            holders=NetworkHolders(api, INSTANCE, "image"),
            machines=lambda: machines,
        )

    return make


def test_a_machine_whose_agent_is_too_old_gets_a_network_of_the_gangs_own_name(
    of_machines: Callable[[dict[str, bool]], OverlayNetworks],
) -> None:
    first = make_task()
    gang = make_gang(
        make_launch("true", task=first, node="new", image="i"),
        make_launch("true", task=first._replace(index=1), node="old", image="i"),
    )
    assert not of_machines({"new": True, "old": False}).fits_spare(gang)
    assert of_machines({"new": True, "old": True}).fits_spare(gang)
    assert not of_machines({"new": True}).fits_spare(gang)


@pytest.mark.parametrize(("tasks", "machines", "fits"), [(119, 3, True), (120, 3, False), (2, 62, False)])
def test_each_machine_takes_two_addresses_of_a_network_that_all_have(
    of_machines: Callable[[dict[str, bool]], OverlayNetworks],
    tasks: int,
    machines: int,
    fits: bool,
) -> None:
    first = make_task()
    made = [
        make_launch("true", task=first._replace(index=n), node=f"n{n % 2}", image="i") for n in range(tasks)
    ]
    networks = of_machines({f"n{number}": True for number in range(machines)})
    assert networks.fits_spare(make_gang(*made)) == fits
