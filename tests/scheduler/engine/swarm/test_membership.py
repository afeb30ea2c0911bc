"""What a manager's answers say of the nodes; the answers of a real one: `test_engine.py`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pai_scheduler.cluster.node import NodeState
from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.engine import SwarmNode, check_manager, list_nodes


def described(number: int, hostname: str, **status: str) -> dict[str, Any]:
    """Return a node as Docker's API describes it."""
    return {
        "ID": f"{number}{'abcdef' * 4}",
        "Description": {"Hostname": hostname},
        "Status": {"State": "ready", "Addr": f"192.0.2.{number}", **status},
        "Spec": {"Availability": "active", "Labels": {"rack": "r1"}},
    }


async def listed(*nodes: dict[str, Any]) -> tuple[SwarmNode, ...]:
    """Return the nodes of a Swarm that a manager describes so."""

    async def answer() -> list[dict[str, Any]]:
        return list(nodes)

    async def persist(call: Callable[[], Awaitable[Any]]) -> Any:
        return await call()

    api = SimpleNamespace(persist=persist, docker=SimpleNamespace(nodes=SimpleNamespace(list=answer)))
    return await list_nodes(cast("DockerApi", api))


async def test_nodes_come_by_name_with_what_an_administrator_said_of_them() -> None:
    first, second = await listed(described(2, "node-b"), described(1, "node-a"))
    assert (first.name, first.address, first.labels) == ("node-a", "192.0.2.1", {"rack": "r1"})
    assert second.name == "node-b"


async def test_machines_of_one_name_get_names_of_their_own() -> None:
    nodes = await listed(described(1, "gpu"), described(2, "gpu"), described(3, "other"))
    assert [node.name for node in nodes] == ["gpu-1abcde", "gpu-2abcde", "other"]


@pytest.mark.parametrize("says", ["", "0.0.0.0", "127.0.0.1"])  # noqa: S104 (nothing listens)
@pytest.mark.parametrize(
    ("manager", "address"), [("192.0.2.9:2377", "192.0.2.9"), ("[2001:db8::1]:2377", "2001:db8::1")]
)
async def test_a_manager_that_does_not_know_its_own_address_is_at_the_one_for_managers(
    says: str, manager: str, address: str
) -> None:
    (node,) = await listed({**described(1, "node-a", Addr=says), "ManagerStatus": {"Addr": manager}})
    assert node.address == address


@pytest.mark.parametrize(
    ("ready", "availability", "state"),
    [
        (True, "active", NodeState.READY),
        (True, "pause", NodeState.PAUSED),
        (True, "drain", NodeState.DRAINED),
        (True, "of a later version", NodeState.LOST),
        (False, "active", NodeState.LOST),
        (False, "drain", NodeState.LOST),
    ],
)
def test_only_a_node_that_is_heard_and_active_gets_something_new(
    ready: bool, availability: str, state: NodeState
) -> None:
    assert SwarmNode("1", "node-a", "192.0.2.1", ready, availability).state is state


def test_a_docker_that_manages_no_swarm_is_told_what_to_do() -> None:
    with pytest.raises(EngineError, match=r"is in no Swarm\. Make one: docker swarm init"):
        check_manager("unix:///run/docker.sock", {"Swarm": {"LocalNodeState": "inactive"}})
    worker = {"Name": "node-b", "Swarm": {"LocalNodeState": "active", "ControlAvailable": False}}
    with pytest.raises(EngineError, match=r"is a worker of its Swarm.*docker node promote node-b"):
        check_manager("unix:///run/docker.sock", worker)
    check_manager(
        "unix:///run/docker.sock", {"Swarm": {"LocalNodeState": "active", "ControlAvailable": True}}
    )
