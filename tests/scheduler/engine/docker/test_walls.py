"""Walls between jobs' networks: nobody gets through, also while Docker makes networks."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.network import bridge_name, build_walls
from pai_scheduler.testing.lab import Lab
from tests.testbed.docker import Daemon, client, socket_folder
from tests.testbed.fixtures import provide

KNOCK = """exec python3 - <<'END'
import socket, time
tries = opened = 0
end = time.monotonic() + 4
print("begins", flush=True)
while time.monotonic() < end:
    tries += 1
    try:
        socket.create_connection(("{address}", 8000), timeout=0.05).close()
        opened += 1
    except OSError:
        pass
print("opened", opened, "of", tries > 20, flush=True)
END"""


async def make_networks(docker: aiodocker.Docker) -> None:
    """Make networks and remove them, as other jobs' starts and ends do; Docker chooses the addresses."""
    while True:
        made = await docker.networks.create({"Name": "comes-and-goes", "Driver": "bridge"})
        await made.delete()


async def test_who_knocks_all_the_time_does_not_get_in_while_networks_are_made(
    walled_lab: Lab, docker: aiodocker.Docker
) -> None:
    server = await walled_lab.start("echo up; exec python3 -m http.server 8000")
    await walled_lab.printed(server, "up")
    address = (await walled_lab.started(server)).address
    making = asyncio.create_task(make_networks(docker))
    try:
        task, _ = await walled_lab.run(KNOCK.format(address=address))
    finally:
        making.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await making
    assert walled_lab.output(task) == "begins\nopened 0 of True\n"


@pytest.fixture
def own_daemon(tmp_path: Path) -> Iterator[Daemon]:
    own = Daemon(tmp_path / "root", socket_folder(), own_network=True)
    provide(own.start)
    try:
        yield own
    finally:
        own.remove()


async def test_where_no_image_can_do_it_the_log_says_what_an_administrator_can_do(
    own_daemon: Daemon, caplog: pytest.LogCaptureFixture
) -> None:
    api = DockerApi(own_daemon.host)
    await api.open()
    with caplog.at_level(logging.WARNING):
        assert not await build_walls(api, "no/such:image", "mark")
    await api.close()
    assert "No such image" in caplog.text
    assert "sudo sh hub_config/egress.sh" in caplog.text
    with client(own_daemon.host) as docker:
        assert docker.containers.list(all=True) == []


def test_a_bridges_name_is_one_that_linux_takes() -> None:
    assert len(bridge_name()) <= 15
    assert bridge_name() != bridge_name()
