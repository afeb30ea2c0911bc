"""Networks of gangs, for real: who reaches whom, by which name and address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from ipaddress import ip_address, ip_network
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.engine.docker.containers import LABEL_INSTANCE, network_name
from pai_scheduler.engine.docker.engine import DockerEngine, instance_mark
from pai_scheduler.engine.docker.network import GangNetworks
from pai_scheduler.engine.protocol import EngineError, Launch, Started
from pai_scheduler.testing.lab import Lab, make_gang, make_task, new_job_id

#: Answers with its own host name on port 8000 until everybody has asked, then asks everybody itself.
TALK = r"""
import os, socket, sys, time
def serve():
    server = socket.create_server(("", 8000))
    while True:
        peer, _ = server.accept()
        peer.sendall(socket.gethostname().encode())
        peer.close()
def ask(where):
    for _ in range(600):
        try:
            with socket.create_connection((where, 8000), timeout=5) as peer:
                return peer.recv(100).decode()
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{where} cannot be reached")
if os.fork() == 0:
    serve()
for pair in os.environ["PEERS"].split(","):
    name, address = pair.split("=")
    answers = ask(name), ask(address)
    assert answers == (name, name), answers
print("reached", len(os.environ["PEERS"].split(",")), flush=True)
time.sleep(100000)
"""


async def gang_of_four(lab: Lab) -> list[Launch]:
    job = new_job_id()
    tasks = [make_task(role, index, job_id=job) for role in ("ps_server", "work~er") for index in range(2)]
    command = f"exec python3 - <<'END'\n{TALK}\nEND"
    launches = await lab.prepare(*(lab.make(command, task=task, memory_mb=100) for task in tasks))
    peers = ",".join(f"{launch.task.hostname}={launch.address}" for launch in launches)
    return [
        lab.make(command, task=launch.task, address=launch.address, hosts=launch.hosts, env={"PEERS": peers})
        for launch in launches
    ]


# (that another gang reaches none of them is in test_isolation.py and test_walls.py)
async def test_two_roles_of_two_tasks_reach_each_other_by_name_and_by_address_within_their_wall(
    walled_lab: Lab,
) -> None:
    launches = await gang_of_four(walled_lab)
    await asyncio.gather(*(walled_lab.engine.launch(launch) for launch in launches))
    for launch in launches:
        await walled_lab.printed(launch.task, "reached 4")
        assert (await walled_lab.started(launch.task)).address == launch.address


async def test_docker_itself_knows_the_tasks_by_name(docker_lab: Lab) -> None:
    job = new_job_id()
    first, second = await docker_lab.prepare(
        docker_lab.make("exec sleep 100000", task=make_task("a", 0, job_id=job)),
        docker_lab.make("exec sleep 100000", task=make_task("b", 0, job_id=job)),
    )
    await docker_lab.engine.launch(first)
    await docker_lab.started(first.task)
    await docker_lab.engine.launch(
        docker_lab.make(
            "getent hosts a-0; exec sleep 100000", task=second.task, address=second.address, hosts={}
        )
    )
    await docker_lab.printed(second.task, first.address)


async def test_a_gang_larger_than_the_smallest_block_gets_a_larger_one(docker_lab: Lab) -> None:
    job = new_job_id()
    gang = make_gang(*(docker_lab.make("true", task=make_task("w", n, job_id=job)) for n in range(30)))
    addresses = await docker_lab.engine.prepare(gang)
    await docker_lab.engine.release(gang)
    assert len(set(addresses.values())) == 30
    assert all(ip_address(address) in ip_network("10.201.0.0/16") for address in addresses.values())


async def test_a_network_that_docker_does_not_let_go_of_keeps_no_gang_from_its_end(
    docker_lab: Lab,
    docker: aiodocker.Docker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A fault of Docker 20.10: it counts a container of the network that is gone, until it starts anew."""
    monkeypatch.setattr("pai_scheduler.engine.docker.network._BUSY_PAUSES", (0.01,))
    job = new_job_id()
    launches = [docker_lab.make("sleep 1000", task=make_task("w", n, job_id=job)) for n in range(30)]
    gang, name = make_gang(*launches), network_name(job, 0)
    await docker_lab.engine.prepare(gang)

    async def refuse(_: GangNetworks, network: dict[str, object]) -> None:
        raise aiodocker.DockerError(403, f"network {network['Name']} has active endpoints")

    with monkeypatch.context() as patch:
        patch.setattr(GangNetworks, "_delete", refuse)
        await docker_lab.engine.release(gang)
        assert f"Docker keeps network {name}, in which nothing is" in caplog.text
        assert await networks_of(docker, name)

        stranger = await docker.containers.create(
            {"Image": docker_lab.image, "Cmd": ["sleep", "1000"], "HostConfig": {"NetworkMode": name}}
        )
        try:
            with pytest.raises(EngineError, match="active endpoints"):
                await docker_lab.engine.release(gang)
        finally:
            await stranger.delete(force=True)
    await docker_lab.engine.release(gang)
    assert not await networks_of(docker, name)


async def test_gangs_prepared_at_once_get_networks_of_their_own(docker_lab: Lab) -> None:
    launches = await asyncio.gather(*(docker_lab.prepare(docker_lab.make("true")) for _ in range(3)))
    assert len({launch.address for (launch,) in launches}) == 3


async def test_a_gangs_addresses_are_the_same_after_a_restart(
    docker_lab: Lab, open_docker: Callable[..., Awaitable[DockerEngine]]
) -> None:
    (launch,) = await docker_lab.prepare(docker_lab.make("true"))
    gang = docker_lab.gangs.pop()
    later = await open_docker()
    assert await later.prepare(gang) == {launch.task: launch.address}
    await later.release(gang)


async def twins(docker: aiodocker.Docker, name: str, first_third_octet: int) -> list[str]:
    """Make two networks of one name, as a killed service and the next one may; return their ids."""
    made = []
    for number in range(2):
        subnet = f"10.214.{first_third_octet + number}.0/29"
        config = {"Name": name, "CheckDuplicate": False, "IPAM": {"Config": [{"Subnet": subnet}]}}
        made.append(str((await docker.networks.create(config)).id))
    return made


async def networks_of(docker: aiodocker.Docker, name: str) -> list[str]:
    return [str(found["Id"]) for found in await docker.networks.list(filters={"name": name})]


async def test_of_two_networks_of_one_name_the_gang_gets_the_older_and_nothing_is_left(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    launch = docker_lab.make("true")
    name = f"pai-{launch.task.job_id}-{launch.task.attempt}"
    older, _ = await twins(docker, name, 0)
    (prepared,) = await docker_lab.prepare(launch)
    assert await networks_of(docker, name) == [older]
    assert prepared.address == "10.214.0.2"
    await docker_lab.engine.launch(prepared)
    assert (await docker_lab.ended(launch.task)).exit_code == 0
    await docker_lab.engine.release(docker_lab.gangs.pop())
    assert await networks_of(docker, name) == []


async def test_two_networks_of_one_name_are_both_removed(docker_lab: Lab, docker: aiodocker.Docker) -> None:
    gang = make_gang(docker_lab.make("true"))
    name = f"pai-{gang.job_id}-{gang.attempt}"
    await twins(docker, name, 2)
    await docker_lab.engine.release(gang)
    assert await networks_of(docker, name) == []


@pytest.fixture
async def taken(docker: aiodocker.Docker) -> object:
    network = await docker.networks.create(
        {"Name": "pai-test-taken", "IPAM": {"Config": [{"Subnet": "10.213.0.0/29"}]}}
    )
    yield network
    await network.delete()


@pytest.mark.usefixtures("taken")
async def test_a_block_that_somebody_else_has_is_passed_over_and_a_full_pool_is_said_to_be_full(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str
) -> None:
    lab = await Lab.over(await open_docker(subnet_pool="10.213.0.0/28"), debian_image)
    try:
        (launch,) = await lab.prepare(lab.make("true"))
        assert launch.address == "10.213.0.10"
        with pytest.raises(EngineError, match=r"No network of 8 addresses is free in 10\.213\.0\.0/28"):
            await lab.prepare(lab.make("true"))
        lab.gangs.pop()
    finally:
        await lab.clean()


class Spares:
    """The networks of one scheduler that were made in advance, or that a gang has of these."""

    def __init__(self, docker: aiodocker.Docker, folder: Path) -> None:
        self._docker, self._folder = docker, folder

    async def names(self) -> list[str]:
        label = f"{LABEL_INSTANCE}={instance_mark(self._folder)}"
        found = await self._docker.networks.list(filters={"label": label})
        return sorted(network["Name"] for network in found if network["Name"].startswith("pai-spare-"))

    async def of(self, address: str) -> str:
        """Return the one that an address is of."""
        (name,) = [
            network["Name"]
            for network in await self._docker.networks.list()
            for config in network["IPAM"]["Config"] or ()
            if ip_address(address) in ip_network(config["Subnet"])
        ]
        return str(name)

    async def until(self, count: int) -> list[str]:
        """Wait until so many are there."""
        async with asyncio.timeout(60):
            while len(found := await self.names()) < count:  # noqa: ASYNC110 (other tests make some, too)
                await asyncio.sleep(0.05)
        return found


@pytest.fixture
def spares(docker: aiodocker.Docker, tmp_path: Path) -> Spares:
    return Spares(docker, tmp_path / "data")


@pytest.fixture
async def ahead(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Lab]:
    """Run an engine that has two networks in advance."""
    monkeypatch.setattr("pai_scheduler.engine.docker.network_pool._QUIET_SECONDS", 0.1)
    lab = await Lab.over(await open_docker(spare_networks=2), debian_image)
    await lab.engine.adopt({})
    yield lab
    await lab.clean()


async def test_a_gang_gets_a_network_that_was_there_and_others_get_it_when_it_has_ended(
    ahead: Lab, docker: aiodocker.Docker, spares: Spares, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await spares.until(2)
    first, second = [await ahead.start("exec sleep 100000") for _ in range(2)]
    networks = []
    for task in (first, second):
        address = (await ahead.started(task)).address
        container = await docker.containers.container(task.name).show()
        ((network, found),) = container["NetworkSettings"]["Networks"].items()
        assert found["IPAddress"] == address
        networks.append(network)
    assert sorted(networks) == before
    now = await spares.until(4)
    assert set(before) < set(now)
    # (from here on there are enough: none is made while the machine takes its time)
    monkeypatch.setattr("pai_scheduler.engine.docker.network_pool._QUIET_SECONDS", 1000.0)
    for gang in list(ahead.gangs):
        await ahead.engine.release(gang)
    ahead.gangs.clear()
    assert await spares.names() == now
    # (one more than are there: it gets one that is made for it)
    launches = await asyncio.gather(*(ahead.prepare(ahead.make("true")) for _ in range(5)))
    assert len({launch.address for (launch,) in launches}) == 5
    assert len(await spares.names()) == 5
    for gang in list(ahead.gangs):
        await ahead.engine.release(gang)
    ahead.gangs.clear()
    assert len(await spares.names()) == 5


async def test_a_network_in_which_somebody_elses_container_is_goes_to_no_other_gang(
    ahead: Lab, docker: aiodocker.Docker, spares: Spares, debian_image: str
) -> None:
    await spares.until(2)
    (launch,) = await ahead.prepare(ahead.make("true"))
    gang = ahead.gangs.pop()
    network = await spares.of(launch.address)
    # (was never started, and has to do with it all the same)
    stranger = await docker.containers.create({"Image": debian_image, "HostConfig": {"NetworkMode": network}})
    try:
        await ahead.engine.release(gang)
        assert network not in await spares.names()
    finally:
        await stranger.delete(force=True)


@pytest.mark.usefixtures("ahead")
async def test_what_a_killed_service_had_in_advance_the_next_one_uses(
    spares: Spares,
    open_docker: Callable[..., Awaitable[DockerEngine]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(_: GangNetworks) -> None:
        """A killed service closes nothing."""

    before = await spares.until(2)
    with monkeypatch.context() as kill:
        kill.setattr(GangNetworks, "close", nothing)
        later = await open_docker(spare_networks=2)
    await later.adopt({})
    assert await spares.names() == before
    # other addresses were chosen since: these are of no use any more
    with monkeypatch.context() as kill:
        kill.setattr(GangNetworks, "close", nothing)
        moved = await open_docker(spare_networks=1, subnet_pool="10.216.0.0/27")
    await moved.adopt({})
    await spares.until(1)
    assert not set(await spares.names()) & set(before)


async def test_which_network_a_gang_has_is_known_after_a_kill_and_what_nobody_has_is_removed(
    ahead: Lab,
    spares: Spares,
    open_docker: Callable[..., Awaitable[DockerEngine]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(_: GangNetworks) -> None:
        """A killed service closes nothing."""

    before = await spares.until(2)
    (launch,) = await ahead.prepare(ahead.make("exec sleep 100000"))
    gang = ahead.gangs.pop()
    with monkeypatch.context() as kill:
        kill.setattr(GangNetworks, "close", nothing)
        later = await open_docker()
    assert await later.prepare(gang) == {launch.task: launch.address}
    await later.adopt({launch.task: "here"})
    assert len(set(await spares.names()) & set(before)) == 1
    await later.launch(launch)
    async for event in later.events():
        if isinstance(event, Started):
            assert event.address == launch.address
            break
    await later.kill(launch.task, 0)
    await later.release(gang)
    assert not set(await spares.names()) & set(before)


async def test_a_network_that_somebody_removed_is_not_missed(
    ahead: Lab, docker: aiodocker.Docker, spares: Spares
) -> None:
    for name in await spares.until(2):
        await (await docker.networks.get(name)).delete()
    _, ended = await ahead.run("exit 3")
    assert ended.exit_code == 3


async def test_a_kept_network_that_somebody_removed_is_not_missed(
    ahead: Lab, docker: aiodocker.Docker, spares: Spares
) -> None:
    await spares.until(2)
    await ahead.prepare(ahead.make("true"))
    gang = ahead.gangs.pop()
    for name in await spares.names():
        await (await docker.networks.get(name)).delete()
    await ahead.engine.release(gang)
    _, ended = await ahead.run("exit 3")
    assert ended.exit_code == 3


@pytest.mark.parametrize("tasks", [1, 80])
async def test_a_gang_that_is_prepared_once_more_has_the_same_network_also_in_the_next_life(
    ahead: Lab,
    docker: aiodocker.Docker,
    spares: Spares,
    open_docker: Callable[..., Awaitable[DockerEngine]],
    monkeypatch: pytest.MonkeyPatch,
    tasks: int,
) -> None:
    async def nothing(_: GangNetworks) -> None:
        """A killed service closes nothing."""

    await spares.until(2)
    job = new_job_id()
    gang = make_gang(*(ahead.make("true", task=make_task("w", n, job_id=job)) for n in range(tasks)))
    addresses = await ahead.engine.prepare(gang)
    own = f"pai-{gang.job_id}-{gang.attempt}"
    # (one of eighty tasks has no room in those for small gangs)
    assert len(await networks_of(docker, own)) == (tasks > 1)
    assert await ahead.engine.prepare(gang) == addresses
    with monkeypatch.context() as kill:
        kill.setattr(GangNetworks, "close", nothing)
        later = await open_docker(spare_networks=2)
    await later.adopt(dict.fromkeys(addresses, "here"))
    assert await later.prepare(gang) == addresses
    await later.release(gang)
    assert await networks_of(docker, own) == []


async def test_the_end_leaves_none_that_nobody_has(
    spares: Spares, open_docker: Callable[..., Awaitable[DockerEngine]]
) -> None:
    engine = await open_docker(spare_networks=1)
    await engine.adopt({})
    await spares.until(1)
    await open_docker()  # (closes the first one)
    assert await spares.names() == []


async def test_on_a_full_disk_a_gang_gets_a_network_of_its_own_name(
    open_docker: Callable[..., Awaitable[DockerEngine]],
    docker: aiodocker.Docker,
    spares: Spares,
    debian_image: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.network_pool._QUIET_SECONDS", 0.1)
    engine = await open_docker(spare_networks=1)
    # (a file that is in the way of the folder stands for a disk on which there is no room for one)
    (tmp_path / "data" / "networks").touch()
    await engine.adopt({})
    await spares.until(1)
    lab = await Lab.over(engine, debian_image)
    (launch,) = await lab.prepare(lab.make("true"))
    assert len(await networks_of(docker, f"pai-{launch.task.job_id}-{launch.task.attempt}")) == 1
    await lab.clean()


async def test_a_gang_for_which_the_pool_has_no_block_gets_the_room_of_those_made_in_advance(
    open_docker: Callable[..., Awaitable[DockerEngine]],
    spares: Spares,
    debian_image: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.network_pool._QUIET_SECONDS", 0.1)
    # four small blocks, of which three are taken in advance: none of 16 addresses is left
    lab = await Lab.over(await open_docker(spare_networks=3, subnet_pool="10.215.0.0/27"), debian_image)
    await lab.engine.adopt({})
    before = await spares.until(3)

    async def prepare_ten() -> set[str]:
        job = new_job_id()
        launches = await lab.prepare(
            *(lab.make("true", task=make_task("w", n, job_id=job)) for n in range(10))
        )
        return {launch.address for launch in launches}

    first = await prepare_ten()
    assert not set(await spares.names()) & set(before)
    second = await prepare_ten()
    assert len(first | second) == 20
    assert all(ip_address(address) in ip_network("10.215.0.0/27") for address in first | second)
    # nothing that could be given up is left
    with pytest.raises(EngineError, match=r"No network of 16 addresses is free in 10\.215\.0\.0/27"):
        await prepare_ten()
    lab.gangs.pop()
    await lab.clean()
