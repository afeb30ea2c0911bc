"""Networks made in advance where the pool has hardly any addresses.

The manager is played: only so is it known what it is busy with. A real one: `test_overlay_networks.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiodocker
import pytest

from pai_scheduler.engine.docker import network_pool
from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.network_pool import SpareNetworks
from pai_scheduler.engine.protocol import EngineError, Gang, GangMember
from pai_scheduler.engine.swarm.networks import NetworkHolders, OverlayNetworks
from pai_scheduler.job.task import TaskRef

PATIENCE = 30.0


class Manager(DockerApi):
    """A Swarm's manager: the networks and services that it was asked for."""

    def __init__(self) -> None:
        super().__init__("unix:///nowhere")
        self.found: dict[str, dict[str, Any]] = {}
        self.held: set[str] = set()
        #: not set: it is still setting up the network that is to be held
        self.may_hold = asyncio.Event()
        self.may_hold.set()
        self.setting_up = asyncio.Event()
        self._networks = SimpleNamespace(list=self._list, create=self._create)
        self._services = SimpleNamespace(create=self._hold, delete=self._let_go)

    @property
    def docker(self) -> Any:
        return SimpleNamespace(networks=self._networks, services=self._services)

    def network(self, name: str) -> Any:
        async def delete() -> None:
            del self.found[name]

        return SimpleNamespace(delete=delete)

    async def _list(self, filters: dict[str, str] | None = None) -> list[dict[str, Any]]:
        wanted = (filters or {}).get("name", "")
        return [network for name, network in self.found.items() if wanted in name]

    async def _create(self, config: dict[str, Any]) -> None:
        self.found[config["Name"]] = {**config, "Id": config["Name"], "Scope": "swarm"}

    async def _hold(self, *_: object, name: str, **_more: object) -> None:
        self.setting_up.set()
        await self.may_hold.wait()
        self.held.add(name)

    async def _let_go(self, name: str) -> None:
        if name not in self.held:
            raise aiodocker.DockerError(404, "no such service")
        self.held.discard(name)


class Networks(OverlayNetworks):
    """Those of two machines; one is made in advance."""

    def __init__(self, manager: Manager, folder: Path, pool: str) -> None:
        spares, holders = SpareNetworks(folder, 1), NetworkHolders(manager, "lab", "runtime")
        machines = dict.fromkeys(("node-a", "node-b"), True)
        super().__init__(
            manager, "lab", pool, encrypted=False, spares=spares, holders=holders, machines=lambda: machines
        )


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_pool, "_QUIET_SECONDS", 0.01)
    monkeypatch.setattr(network_pool, "_RETRY_SECONDS", 0.01)


@pytest.fixture
async def manager() -> Manager:
    return Manager()


@pytest.fixture
async def networks(manager: Manager, tmp_path: Path) -> AsyncIterator[Networks]:
    """Have a pool of 128 addresses: those of the one network that is made in advance."""
    made = Networks(manager, tmp_path, "10.202.0.0/25")
    yield made
    manager.may_hold.set()
    await made.close()


def gang(job: str, tasks: int) -> Gang:
    nodes = ("node-a", "node-b")
    members = (GangMember(TaskRef(job, 0, "w", n), nodes[n % 2], {}) for n in range(tasks))
    return Gang(job, 0, tuple(members))


async def test_a_gang_gets_the_room_of_the_one_that_is_just_being_set_up(
    networks: Networks, manager: Manager
) -> None:
    manager.may_hold.clear()
    networks._spares.fill(networks.make_spare)
    async with asyncio.timeout(PATIENCE):
        await manager.setting_up.wait()
        making = asyncio.create_task(networks.make(gang("0123456789ab", 122)))
        # it is asked for, and refused at once unless it waits
        for _ in range(10):
            await asyncio.sleep(0)
        manager.may_hold.set()
        addresses = await making
    assert len(addresses) == 122
    assert list(manager.found) == ["pai-0123456789ab-0"]
    assert not manager.held


async def test_a_pool_that_is_full_is_said_to_be_full_and_what_is_missing_is_made_when_there_is_room(
    networks: Networks, manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    await networks.make(gang("0123456789ab", 122))
    networks._spares.fill(networks.make_spare)
    async with asyncio.timeout(PATIENCE):
        while not caplog.records:  # noqa: ASYNC110 - it is told in the log
            await asyncio.sleep(0.01)
    full = "No network of 128 addresses is free in 10.202.0.0/25: too many jobs run at once, or the pool is"
    assert full in caplog.records[0].getMessage()
    with pytest.raises(EngineError, match="No network of 8 addresses is free"):
        await networks.make(gang("ba9876543210", 2))
    await networks.remove("pai-0123456789ab-0")
    async with asyncio.timeout(PATIENCE):
        await manager.setting_up.wait()
    assert [name.startswith("pai-spare-") for name in manager.found] == [True]
    # however often it was tried meanwhile
    assert len(caplog.records) == 1


async def test_a_pool_that_is_too_small_for_any_serves_small_gangs_all_the_same(
    manager: Manager, tmp_path: Path
) -> None:
    networks = Networks(manager, tmp_path, "10.202.0.0/28")
    networks._spares.fill(networks.make_spare)
    try:
        for job in ("0123456789ab", "ba9876543210"):
            assert len(await networks.make(gang(job, 2))) == 2
        with pytest.raises(EngineError, match=r"is free in 10\.202\.0\.0/28: too many jobs run at once"):
            await networks.make(gang("aaaaaaaaaaaa", 2))
    finally:
        await networks.close()
