"""Fixtures of the tests of SSH: clients as people have them, a gateway, tasks and containers to enter."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.ssh.gateway.gate import Gate
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer
from tests.scheduler.ssh.runtime.container.boxes import (
    Box,
    Boxes,
    Setting,
    eventually,
    listens,
    runtime_volume,
)
from tests.scheduler.ssh.runtime.process.entered import PATIENCE, Enter, Entered, T, entering
from tests.testbed.fixtures import provide
from tests.testbed.images import DEBIAN
from tests.testbed.machine import apt_install
from tests.testbed.odd_images import BARE, MUSL, NAMELESS, OWN_SERVER, odd_images

#: Clients that nobody here wrote.
PROGRAMS = {
    "ssh": "openssh-client",
    "ssh-agent": "openssh-client",
    "rsync": "rsync",
    "plink": "putty-tools",
    "psftp": "putty-tools",
    "puttygen": "putty-tools",
    "lftp": "lftp",
}


@pytest.fixture(scope="session")
def ssh_clients() -> None:
    """Have the clients on this machine."""
    provide(lambda: apt_install(PROGRAMS))


# A gateway before a real task's SSH server.


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TaskServer]:
    server = TaskServer(tmp_path_factory.mktemp("task"))
    yield server
    server.end()


@pytest.fixture
async def service(task: TaskServer) -> AsyncIterator[StandIn]:
    stand_in = StandIn(task.target())
    yield stand_in
    await stand_in.close()


@pytest.fixture
async def gate(service: StandIn, tmp_path: Path) -> AsyncIterator[Gate]:
    gate = Gate(service, tmp_path)
    await gate.start()
    yield gate
    await gate.close()


# A running task of the process engine that is entered.


@pytest.fixture
async def enter(ssh_clients: None, tmp_path: Path) -> AsyncIterator[Enter]:
    del ssh_clients
    async with entering(tmp_path) as enter:
        yield enter


@pytest.fixture
async def own_entered(enter: Enter) -> Entered:
    """Enter a task of the test's own, with which and with whose engine it does what it wants."""
    return await enter()


@pytest.fixture(scope="module")
def task_of_all(ssh_clients: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Entered]:
    """Enter a task for all tests of a module; its engine lives in a thread of its own."""
    del ssh_clients
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def there(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result(PATIENCE)

    async def enter_first(enter: Enter) -> Entered:
        return await enter()

    made = entering(tmp_path_factory.mktemp("of-all"))
    try:
        yield there(enter_first(there(made.__aenter__())))
        there(made.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture
def entered(task_of_all: Entered) -> Iterator[Entered]:
    """Enter the task of all: only from without, and what a test leaves in it is called like no other."""
    yield task_of_all
    task_of_all.end_clients()


# One container of each difficult kind, in one job, for all tests of the runtime; they leave it as it was.


KINDS = {
    "debian": Setting(DEBIAN),
    "bare": Setting(BARE),
    "musl": Setting(MUSL),
    "nameless": Setting(NAMELESS),
    "read-only": Setting(DEBIAN, host={"ReadonlyRootfs": True}),
    "least": Setting(NAMELESS, host={"ReadonlyRootfs": True, "CapDrop": ["ALL"]}),
    "own-server": Setting(OWN_SERVER, "/usr/sbin/sshd -p 22; exec sleep 1000000"),
}


#: The usual one, and the two that have least; with the others the tests take three times as long.
USUAL = ("debian", "bare", "least")


@pytest.fixture(scope="session")
def volume(docker_host: str, runtime_image: str) -> Iterator[str]:
    """Return a volume with the runtime."""
    with runtime_volume(docker_host, runtime_image) as name:
        yield name


@pytest.fixture(scope="session")
def kinds(request: pytest.FixtureRequest) -> dict[str, Setting]:
    """Give what the chosen tests enter: one of the kinds is compiled, which takes long."""
    chosen = {
        item.callspec.params.get("box")
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    }
    return {name: kind for name, kind in KINDS.items() if name in chosen or kind.image != MUSL}


@pytest.fixture(scope="session")
def odd(docker_host: str, runtime_image: str, kinds: dict[str, Setting]) -> None:
    """Have the images that make it hard."""
    images = {kind.image for kind in kinds.values()} - {DEBIAN}
    provide(lambda: odd_images(docker_host, runtime_image, sorted(images)))


@pytest.fixture(scope="session")
def boxes(
    docker_host: str,
    volume: str,
    ssh_clients: None,
    odd: None,
    kinds: dict[str, Setting],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Box]]:
    """Run one container of each kind, all of the same job."""
    del ssh_clients, odd
    maker = Boxes(docker_host, volume, tmp_path_factory.mktemp("boxes"))
    try:
        made = maker.make(kinds)
        for box in made.values():
            eventually(lambda box=box: listens(box.address))
        yield made
    finally:
        maker.remove()


@pytest.fixture(
    params=[name if name in USUAL else pytest.param(name, marks=pytest.mark.long) for name in KINDS]
)
def box(request: pytest.FixtureRequest, boxes: dict[str, Box]) -> Box:
    """Return the containers one after the other."""
    return boxes[request.param]


@pytest.fixture
def debian(boxes: dict[str, Box]) -> Box:
    """Return the usual one."""
    return boxes["debian"]


@pytest.fixture
def more_boxes(
    docker_host: str, volume: str, debian_image: str, ssh_clients: None, tmp_path: Path
) -> Iterator[Boxes]:
    """Make containers for one test."""
    del debian_image, ssh_clients
    maker = Boxes(docker_host, volume, tmp_path / "boxes")
    yield maker
    maker.remove()
