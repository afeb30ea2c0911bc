"""The nodes of a Swarm, as a manager knows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pai_scheduler.cluster.node import NodeState
from pai_scheduler.engine.docker.connection import DockerApi
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg

#: (Docker Engine API, NodeSpec.Availability)
_AVAILABILITY = {"active": NodeState.READY, "pause": NodeState.PAUSED, "drain": NodeState.DRAINED}


@dataclass(frozen=True, slots=True)
class SwarmNode:
    """A machine that has joined. `ready`: Swarm hears from it; `availability`: as administrators want it."""

    id: str
    name: str
    address: str
    ready: bool
    availability: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def state(self) -> NodeState:
        """Return whether it may get something new, as far as Swarm knows."""
        return _AVAILABILITY.get(self.availability, NodeState.LOST) if self.ready else NodeState.LOST


async def list_nodes(api: DockerApi) -> tuple[SwarmNode, ...]:
    """Return the nodes by name; waits for the manager."""
    found = await api.persist(api.docker.nodes.list)
    nodes = [_node(each) for each in found]
    # host names need not be unique, the nodes of a scheduler must be
    names = [node.name for node in nodes]
    return tuple(
        sorted(
            (
                node if names.count(node.name) == 1 else _renamed(node, f"{node.name}-{node.id[:6]}")
                for node in nodes
            ),
            key=lambda node: node.name,
        )
    )


def check_manager(host: str, info: Mapping[str, Any]) -> None:
    """Raise EngineError where a Docker Engine is not a manager of a Swarm; `info`: what it says of itself."""
    swarm = info.get("Swarm") or {}
    if swarm.get("LocalNodeState") != "active":
        raise EngineError(
            msg(
                "Docker at {host} is in no Swarm. Make one: {command}", host=host, command="docker swarm init"
            )
        )
    if not swarm.get("ControlAvailable"):
        raise EngineError(
            msg(
                "Docker at {host} is a worker of its Swarm; the scheduler needs a manager. "
                "Run it on one, or make this one a manager: {command}",
                host=host,
                command=f"docker node promote {info.get('Name', '')}",
            )
        )


def _node(found: Mapping[str, Any]) -> SwarmNode:
    status, spec = found["Status"], found["Spec"]
    address = str(status.get("Addr") or "")
    manager = str((found.get("ManagerStatus") or {}).get("Addr") or "")
    if manager and address in ("", "0.0.0.0", "127.0.0.1", "::"):  # noqa: S104 (it is compared, not bound)
        address = manager.rpartition(":")[0].strip("[]")
    return SwarmNode(
        id=str(found["ID"]),
        name=str(found["Description"]["Hostname"]),
        address=address,
        ready=status.get("State") == "ready",
        availability=str(spec.get("Availability")),
        labels=dict(spec.get("Labels") or {}),
    )


def _renamed(node: SwarmNode, name: str) -> SwarmNode:
    return replace(node, name=name)
