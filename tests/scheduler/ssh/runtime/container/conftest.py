"""One container of each difficult kind, in one job, for all tests of the runtime; they leave it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scheduler.ssh.runtime.container.boxes import (
    Box,
    Boxes,
    Setting,
    eventually,
    listens,
    runtime_volume,
)
from tests.testbed.fixtures import provide
from tests.testbed.images import DEBIAN
from tests.testbed.odd_images import BARE, MUSL, NAMELESS, OWN_SERVER, odd_images

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
