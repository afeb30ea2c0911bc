"""What a manager's answers say of who has joined, and of its agent; a real machine: `test_node_add.py`."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from docker import DockerClient

from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.agent_deployment import SERVICE
from pai_scheduler.engine.swarm.connection import ENDS
from pai_scheduler.engine.swarm.engine import SwarmMember, join_command, members, why_agents_end

OWN = {"NodeID": "me", "Addr": "192.0.2.1:2377"}
OTHER = {"NodeID": "other", "Addr": "192.0.2.9:2377"}


class Manager:
    """A manager of a Swarm that answers what it is told to."""

    def __init__(
        self, *, services: list[str] | None = None, managers: list[dict[str, str]] | None = None
    ) -> None:
        self._services, self._managers = services if services is not None else [SERVICE], managers or [OWN]
        self.tasks: list[dict[str, Any]] = []
        self.manages = True
        self.said: list[bytes] = []
        self.swarm = SimpleNamespace(
            reload=lambda: None, attrs={"JoinTokens": {"Manager": "for-managers", "Worker": "for-workers"}}
        )
        self.services = SimpleNamespace(list=self._list_services)
        self.nodes = SimpleNamespace(list=lambda: [self._node("1", "ready"), self._node("2", "down")])
        self.api = SimpleNamespace(
            tasks=lambda filters: self.tasks if filters == {"service": SERVICE} else []
        )

    @property
    def client(self) -> DockerClient:
        """Return it as what asks it."""
        return cast("DockerClient", self)

    def info(self) -> dict[str, Any]:
        """Say what it is in the Swarm."""
        state = {"LocalNodeState": "active", "ControlAvailable": self.manages}
        return {"Name": "node-1", "Swarm": {**state, "NodeID": "me", "RemoteManagers": self._managers}}

    def has_task(self, node: str, created: str, state: str, error: str = "") -> None:
        """Let the agents' service have a task on a node."""
        status = {"State": state, **({"Err": error} if error else {})}
        self.tasks.append({"NodeID": node, "CreatedAt": created, "Status": status})

    def _list_services(self, filters: dict[str, str]) -> list[SimpleNamespace]:
        # (as Docker does: every name that begins so)
        found = [name for name in self._services if name.startswith(filters["name"])]
        return [SimpleNamespace(name=name, logs=lambda **_: self.said) for name in found]

    @staticmethod
    def _node(number: str, state: str) -> SimpleNamespace:
        status = {"State": state, "Addr": f"192.0.2.{number}"}
        described = {"ID": number, "Description": {"Hostname": f"node-{number}"}, "Status": status}
        return SimpleNamespace(id=number, attrs=described)


@pytest.mark.parametrize(("manager", "token"), [(False, "for-workers"), (True, "for-managers")])
def test_the_line_has_the_token_of_what_the_machine_is_to_be(manager: bool, token: str) -> None:
    said = join_command(Manager().client, "unix:///docker.sock", manager=manager)
    assert said == f"docker swarm join --token {token} 192.0.2.1:2377"


@pytest.mark.parametrize(
    ("managers", "address"), [([OTHER, OWN], OWN["Addr"]), ([OTHER], OTHER["Addr"])], ids=["own", "another's"]
)
def test_a_machine_joins_at_the_address_of_the_manager_that_was_asked_if_it_is_known(
    managers: list[dict[str, str]], address: str
) -> None:
    assert join_command(Manager(managers=managers).client, "here").endswith(f" {address}")


def test_who_manages_no_swarm_has_no_line() -> None:
    worker = Manager()
    worker.manages = False
    with pytest.raises(EngineError, match="docker node promote node-1"):
        join_command(worker.client, "unix:///docker.sock")


def test_a_machine_works_when_swarm_hears_it_and_its_newest_agent_runs() -> None:
    manager = Manager()
    manager.has_task("1", "2026-11-22T10:00:02Z", "running")
    manager.has_task("1", "2026-11-22T10:00:01Z", "failed", "no such image")
    manager.has_task("2", "2026-11-22T10:00:01Z", "running")
    assert members(manager.client) == {
        "1": SwarmMember("1", "node-1", "192.0.2.1", ready=True, agent="running", why=""),
        "2": SwarmMember("2", "node-2", "192.0.2.2", ready=False, agent="running", why=""),
    }
    assert [member.works for member in members(manager.client).values()] == [True, False]


def test_what_keeps_an_agent_back_is_said() -> None:
    manager = Manager()
    manager.has_task("1", "2026-11-22T10:00:01Z", "running")
    manager.has_task("1", "2026-11-22T10:00:02Z", "rejected", "no such image")
    found = members(manager.client)["1"]
    assert (found.works, found.agent, found.why) == (False, "rejected", "no such image")


def test_why_an_agent_does_not_run_is_what_its_service_says_last() -> None:
    manager = Manager()
    manager.said = [
        f"2026-11-22T10:00:0{second}Z com.docker.swarm.node.id={node} {text}\n".encode()
        for node, second, text in [
            (1, 1, f"{ENDS}another engine."),
            (2, 1, f"{ENDS}another engine."),
            (2, 2, "INFO the agent is started"),
        ]
    ]
    assert why_agents_end(manager.client) == {"1": "another engine."}
    assert why_agents_end(Manager(services=[]).client) == {}


@pytest.mark.parametrize("services", [[], [f"{SERVICE}-of-somebody-else"]])
def test_without_the_service_of_the_agents_no_machine_has_one(services: list[str]) -> None:
    manager = Manager(services=services)
    manager.has_task("1", "2026-11-22T10:00:01Z", "running")
    assert {member.agent for member in members(manager.client).values()} == {""}
