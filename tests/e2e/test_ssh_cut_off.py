"""Networks that fail without a word: nothing of the client is left in the task, and the client is told.

A gateway of our own asks the real service, as that one's own would, and is less patient.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator

import pytest

from pai_scheduler.ssh.gateway.protocol import GatewaySettings
from pai_scheduler.ssh.gateway.supervisor import GatewaySupervisor
from pai_scheduler.ssh.keys import JobKeys
from tests.testbed.fixtures import provide
from tests.testbed.machine import apt_install, as_root, locked

from .ssh_house import PATIENCE, House, eventually, web_job

#: between this machine and the one that is a client's, which is a namespace here
HERE, THERE, CABLE = "10.214.77.1", "10.214.77.2", "pai-e2e"


def ip(*words: str) -> None:
    """Change this machine's networks."""
    subprocess.run(as_root("ip", *words), check=True, capture_output=True, text=True)


def make_machine() -> None:
    apt_install({"ip": "iproute2"})
    remove_machine()
    ip("netns", "add", CABLE)
    ip("link", "add", f"{CABLE}-h", "type", "veth", "peer", "name", f"{CABLE}-c", "netns", CABLE)
    ip("address", "add", f"{HERE}/30", "dev", f"{CABLE}-h")
    ip("-n", CABLE, "address", "add", f"{THERE}/30", "dev", f"{CABLE}-c")
    ip("link", "set", f"{CABLE}-h", "up")
    ip("-n", CABLE, "link", "set", f"{CABLE}-c", "up")


def remove_machine() -> None:
    # (a namespace is cleared a little later)
    for words in (("link", "delete", f"{CABLE}-h"), ("netns", "delete", CABLE)):
        subprocess.run(as_root("ip", *words), check=False, capture_output=True)


@pytest.fixture
def machine() -> Iterator[None]:
    """Connect another machine to this one by a cable."""
    with locked("cable"):
        provide(make_machine)
        yield
        remove_machine()


@pytest.fixture
async def gateway(house: House, machine: None) -> AsyncIterator[GatewaySupervisor]:
    """Run the gateway, at the end of the cable; it asks for a sign of life every second."""
    del machine
    keys = JobKeys.in_folder(house.scheduler.data_dir)
    private = keys.gateway_host().private.decode()
    settings = GatewaySettings(house.scheduler.url, keys.gateway_token(), private, keepalive=1)
    supervisor = GatewaySupervisor(settings, HERE, 0, processes=1)
    await supervisor.start()
    with house.known.open("a") as known:
        known.write(f"[{HERE}]:{supervisor.port} {keys.gateway_host().public}\n")
    yield supervisor
    await supervisor.close()


def start(house: House, port: int, login: str, command: str, *before: str) -> subprocess.Popen[bytes]:
    """Start ssh to the gateway."""
    user, job = login.split("+")[:2]
    options = house.options(house.key(user, job), port)
    pipe = subprocess.PIPE
    line = [*before, "ssh", *options, "-l", login, HERE, command]
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe)


async def first_line(client: subprocess.Popen[bytes]) -> bytes:
    assert client.stdout is not None
    return await asyncio.to_thread(client.stdout.readline)


@pytest.mark.parametrize("busy", [False, True])
async def test_a_clients_cable_is_pulled_and_nothing_is_left_in_the_task(
    house: House, gateway: GatewaySupervisor, busy: bool
) -> None:
    container = house.container("alice", "train")
    # what writes stands still when nobody reads; then it ends by itself, and its shell waits for the other
    command = f"echo in; sleep 4744 | {'yes' if busy else 'sleep'} 4744; true"
    away = as_root("ip", "netns", "exec", CABLE)
    client = start(house, gateway.port, "alice+train+worker-0", command, *away)
    try:
        assert await first_line(client) == b"in\n"
        await asyncio.to_thread(eventually, lambda: house.running(container, "4744") >= 2, "it runs")
        ip("-n", CABLE, "link", "set", f"{CABLE}-c", "down")
        await asyncio.to_thread(eventually, lambda: not house.running(container, "4744"), "nothing is left")
        assert client.poll() is None
    finally:
        client.kill()
        await asyncio.to_thread(client.communicate)
    assert house.ssh("alice+train+worker-0", "echo in").out == "in\n"


async def test_a_tasks_network_fails_and_the_client_is_told(house: House, gateway: GatewaySupervisor) -> None:
    await asyncio.to_thread(house.begin, "bob", web_job("cut-off", house.image))
    container = house.container("bob", "cut-off")
    networks = house.networks(container)
    client = start(house, gateway.port, "bob+cut-off", "echo in; exec sleep 4755")
    try:
        assert await first_line(client) == b"in\n"
        (network,) = networks
        with house.docker() as docker:
            docker.networks.get(network).disconnect(container, force=True)
        _, error = await asyncio.to_thread(client.communicate, None, PATIENCE)
    finally:
        client.kill()
    told = "The connection to worker-0 was lost: the task has ended, or its SSH server.\n"
    assert (client.returncode, error.decode()) == (255, told)
    # and so is a client that comes then, in the scheduler's own time
    ran = await asyncio.to_thread(house.ssh, "bob+cut-off", "echo in")
    assert (ran.code, ran.out) == (255, "")
    # (what is said depends on how long ago its server was seen)
    assert ran.error.startswith(
        ("The SSH server of worker-0 cannot be", "The task's SSH server does not answer")
    )
    await asyncio.to_thread(house.end, "bob", "cut-off")
