"""What the benchmark of containers makes of Docker's events: a wrong outcome is found."""

from __future__ import annotations

from typing import cast

import aiodocker
import pytest

from . import containers
from .containers import Seen, remove_network


def _hear(seen: Seen, *told: tuple[str, str, int]) -> Seen:
    for name, action, second in told:
        about = {"name": name, "exitCode": "0" if name != "failed" else "1"}
        seen.hear({"Action": action, "timeNano": second * 10**9, "Actor": {"Attributes": about}})
    return seen


def _life(name: str, begin: int) -> list[tuple[str, str, int]]:
    return [(name, action, begin + n) for n, action in enumerate(("create", "start", "die", "destroy"))]


def test_the_time_is_from_the_first_made_to_the_last_removed() -> None:
    seen = _hear(Seen(), ("before", "die", 1), *_life("a", 2), *_life("b", 7))
    seen.check(containers=2, at_once=1)
    assert seen.seconds == 8


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        (_life("a", 1), "1 containers were made, not 2"),
        ([*_life("a", 1), *_life("b", 1)[:-1]], "not heard of all: {'b'}"),
        ([*_life("a", 1), *_life("failed", 5)], "exit codes"),
        ([*_life("a", 1), *_life("b", 1)], "2 ran at once, where 1 had room"),
    ],
)
def test_what_did_not_go_as_it_should_is_an_error(told: list[tuple[str, str, int]], wrong: str) -> None:
    with pytest.raises(AssertionError, match=wrong):
        _hear(Seen(), *told).check(containers=2, at_once=1)


class Network:
    """One that Docker removes at the third try, or never."""

    def __init__(self, *, never: bool = False, containers: tuple[str, ...] = ()) -> None:
        self.tries, self._never, self._containers = 0, never, containers

    async def delete(self) -> None:
        self.tries += 1
        if self._never or self.tries < 3:
            raise aiodocker.DockerError(403, "it has active endpoints")

    async def show(self) -> dict[str, object]:
        return {"Containers": {name: {} for name in self._containers}}


async def _remove(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers, "_REMOVAL_SECONDS", 0.0)
    await remove_network(cast(aiodocker.networks.DockerNetwork, network))


async def test_a_network_is_removed_as_soon_as_docker_lets_go_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network()
    await _remove(network, monkeypatch)
    assert network.tries == 3


async def test_a_network_that_docker_keeps_for_nothing_costs_no_measurement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    await _remove(Network(never=True), monkeypatch)
    assert "Docker keeps a network in which nothing is" in capsys.readouterr().err


async def test_a_network_in_which_a_container_is_left_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(aiodocker.DockerError):
        await _remove(Network(never=True, containers=("left",)), monkeypatch)
