"""From which registries images may come, by names that this machine really looks up."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv4Network

import pytest

from pai_scheduler.cluster.definition import Registries
from pai_scheduler.engine.docker.registries import RegistryCheck

LONG = 60.0

MakeGuard = Callable[..., RegistryCheck]


def own_address() -> str:
    """Return an address of this machine that is not one of loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


@pytest.fixture
def make_guard() -> Iterator[MakeGuard]:
    made: list[RegistryCheck] = []

    def make(
        *patterns: str, host: str = "unix:///run/docker.sock", inner: str = "10.201.0.0/16"
    ) -> RegistryCheck:
        made.append(RegistryCheck(Registries(patterns or ("*",)), [IPv4Network(inner)], host))
        return made[-1]

    yield make
    for guard in made:
        guard.close()


@pytest.mark.parametrize(
    "registry",
    [
        *("127.0.0.1:29778", "localhost:80", "localhost", "LOCALHOST", "LocalHost:80", "127.9.9.9"),
        # what is a number to the system's resolver only
        *("127.1:80", "2130706433:80", "0x7f000001:80", "0:80"),
        *("169.254.169.254", "169.254.169.254:80", "0.0.0.0:80", "10.1.2.3:5000", "192.168.0.1:5000"),
        *("100.100.100.200:80", "0x0ac90002:80"),
        hex(int(IPv4Address(own_address()))) + ":80",
    ],
)
async def test_no_image_comes_from_this_machine_or_from_around_it(
    make_guard: MakeGuard, registry: str
) -> None:
    told = await make_guard().refusal(f"{registry}/x:1", LONG)
    assert told is not None
    assert str(told).startswith(f"No image may come from {registry.lower()}: that is no public registry")


@pytest.mark.parametrize(
    "image",
    [
        "debian",
        "openpai/x:1",
        "docker.io/openpai/x",
        "9.9.9.9:5000/x",
        "no-such-host.invalid/x",
        "8.8.8.8:1/x",
    ],
)
async def test_every_other_registry_is_a_public_one(make_guard: MakeGuard, image: str) -> None:
    assert await make_guard().refusal(image, LONG) is None


async def test_the_machine_that_a_far_docker_runs_on_is_not_asked_by_another_name(
    make_guard: MakeGuard,
) -> None:
    guard = make_guard(host="tcp://9.9.9.9:2375")
    assert await guard.refusal("9.9.9.9:5000/x", LONG) is not None
    assert await guard.refusal("8.8.8.8:5000/x", LONG) is None


async def test_what_is_listed_is_allowed_wherever_it_is(make_guard: MakeGuard) -> None:
    guard = make_guard("*", "127.0.0.1:5000")
    assert await guard.refusal("127.0.0.1:5000/x", LONG) is None
    assert await guard.refusal("127.0.0.1:5001/x", LONG) is not None


async def test_a_list_without_the_asterisk_allows_nothing_else(make_guard: MakeGuard) -> None:
    guard = make_guard("*.example.org", "10.1.2.3")
    assert await guard.refusal("registry.example.org/x", LONG) is None
    assert await guard.refusal("10.1.2.3:5000/x", LONG) is None
    told = str(await guard.refusal("debian", LONG))
    assert told.startswith("Images may come from *.example.org, 10.1.2.3 only, not from docker.io.")


def test_only_a_name_without_a_registry_may_be_used_because_it_is_here(make_guard: MakeGuard) -> None:
    guard = make_guard("registry.example.org")
    assert guard.needs_image_here("pai/notebook:latest")
    assert not guard.needs_image_here("127.0.0.1:80/x")
    assert not make_guard().needs_image_here("pai/notebook:latest")
