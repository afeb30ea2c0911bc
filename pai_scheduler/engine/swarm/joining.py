"""How another machine joins a Swarm, and what becomes of it until its agent runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from docker import DockerClient

from .agent_service import SERVICE
from .defaults import ENDS
from .everywhere import last_words
from .membership import check_manager


@dataclass(frozen=True, slots=True)
class Member:
    """A machine of the Swarm. `agent`: the state of the agents' service there; `why`: what keeps it back."""

    id: str
    name: str
    address: str
    ready: bool
    agent: str
    why: str

    @property
    def works(self) -> bool:
        """Return whether its agent has been started."""
        return self.ready and self.agent == "running"


def join_command(client: DockerClient, host: str, *, manager: bool = False) -> str:
    """Return the line that makes a machine join, with its token; EngineError where `host` is no manager."""
    info = client.info()
    check_manager(host, info)
    client.swarm.reload()
    token = client.swarm.attrs["JoinTokens"]["Manager" if manager else "Worker"]
    return f"docker swarm join --token {token} {_manager_address(info)}"


def members(client: DockerClient) -> dict[str, Member]:
    """Return the machines of the Swarm by their ids."""
    tasks: Any = ()
    if any(service.name == SERVICE for service in client.services.list(filters={"name": SERVICE})):
        tasks = client.api.tasks(filters={"service": SERVICE})  # type: ignore[no-untyped-call]
    newest: dict[str, Mapping[str, Any]] = {}
    for task in sorted(tasks, key=lambda task: str(task["CreatedAt"])):
        newest[str(task.get("NodeID"))] = task
    return {str(node.id): _member(node.attrs, newest.get(str(node.id))) for node in client.nodes.list()}


def why_agents_end(client: DockerClient) -> dict[str, str]:
    """Return why agents do not run, in their own words, by the ids of the nodes on which they say so."""
    for service in client.services.list(filters={"name": SERVICE}):
        if service.name == SERVICE:
            said = last_words(service)
            return {node: line.removeprefix(ENDS) for node, line in said.items() if line.startswith(ENDS)}
    return {}


def _member(node: Mapping[str, Any], task: Mapping[str, Any] | None) -> Member:
    status = task["Status"] if task is not None else {}
    return Member(
        id=str(node["ID"]),
        name=str(node["Description"]["Hostname"]),
        address=str(node["Status"].get("Addr") or ""),
        ready=node["Status"]["State"] == "ready",
        agent=str(status.get("State", "")),
        why=str(status.get("Err") or ""),
    )


def _manager_address(info: Mapping[str, Any]) -> str:
    own = info["Swarm"]["NodeID"]
    managers = {str(each["NodeID"]): str(each["Addr"]) for each in info["Swarm"].get("RemoteManagers") or ()}
    return managers.get(own) or next(iter(managers.values()))
