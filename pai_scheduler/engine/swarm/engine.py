"""The engine for many Docker hosts: Swarm says which nodes there are, an agent on each runs its tasks."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import aiodocker
from docker import DockerClient

from pai_scheduler.cluster.node import DiskSpace, Node, NodeState
from pai_scheduler.core.events import NodesChanged
from pai_scheduler.data_folder.durable_file import write_durably
from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.containers import HUB_HOST, STORAGE_HOST, network_name
from pai_scheduler.engine.docker.context import ContainerEngine
from pai_scheduler.engine.docker.network_pool import SpareNetworks
from pai_scheduler.engine.docker.runtime import image_of_this_version
from pai_scheduler.engine.docker.volumes import home_volume
from pai_scheduler.engine.protocol import (
    EndCause,
    Ended,
    EngineError,
    Gang,
    Launch,
    NoSshEndpointError,
    SshEndpoint,
    Usage,
)
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .agent_deployment import SERVICE, last_words
from .connection import AGENT_PORT, ENDS, PATIENCE_SECONDS, AgentConnection
from .networks import OVERLAY_POOL, NetworkHolders, OverlayNetworks
from .node_engine import RemoteEngine
from .protocol import Open
from .session import lost_node
from .tunnel import TunnelServers

# The nodes of a Swarm, as a manager knows them.

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


# How another machine joins a Swarm, and what becomes of it until its agent runs.


@dataclass(frozen=True, slots=True)
class SwarmMember:
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


def members(client: DockerClient) -> dict[str, SwarmMember]:
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


def _member(node: Mapping[str, Any], task: Mapping[str, Any] | None) -> SwarmMember:
    status = task["Status"] if task is not None else {}
    return SwarmMember(
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


# The engine for many Docker hosts: Swarm says which nodes there are, each runs its tasks by its own agent.
#
# A gang on one node gets a network of that node; one on several gets an overlay network of the Swarm. All
# about a task is asked of its node's agent; what is to outlive a node (logs) is copied here.

#: How many networks across nodes are made in advance.
SPARE_OVERLAYS = 1
#: In an overlay network a container has a second interface, for the rest of the world, by which its peers are
#: not reached: MPI (Open MPI 4 and 5, MPICH, Intel's), NCCL, Gloo and TensorPipe are told to use the first.
_INTERFACE = dict.fromkeys(
    (
        "OMPI_MCA_btl_tcp_if_include",
        "OMPI_MCA_oob_tcp_if_include",
        "PRTE_MCA_oob_tcp_if_include",
        "HYDRA_IFACE",
        "I_MPI_HYDRA_IFACE",
        "NCCL_SOCKET_IFNAME",
        "GLOO_SOCKET_IFNAME",
        "TP_SOCKET_IFNAME",
    ),
    "eth0",
)
_LOOK_SECONDS = 2.0
#: How long a start waits for the agents of the nodes that are ready.
_FIRST_SECONDS = 15.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SwarmSettings:
    """Settings of a `SwarmEngine`. `host`: a manager of its Swarm (as in DOCKER_HOST)."""

    host: str | None = None
    agent_port: int = AGENT_PORT
    #: seconds after which a node that does not answer counts as lost
    patience: float = PATIENCE_SECONDS
    #: what the networks across nodes are cut from, and whether what goes between nodes in them is encrypted
    subnet_pool: str = OVERLAY_POOL
    encrypted: bool = False
    #: how many networks across nodes are made in advance, so that a small gang starts sooner
    spare_networks: int = 0
    #: holds them on each node
    runtime_image: str = field(default_factory=image_of_this_version)
    #: The port of this machine's loopback address at which tasks reach the Hub and the storage, by their
    #: nodes' agents; None: at the address of browsers.
    front_door: int | None = None
    #: address and port of the gateway, which they reach in the same way
    ssh_gateway: tuple[str, int] | None = None

    @property
    def front_doors(self) -> dict[int, str]:
        """Return what tasks reach by their nodes' agents, as for `RemoteEngine`."""
        if self.front_door is None:
            return {}
        doors = {self.front_door: "127.0.0.1"}
        if self.ssh_gateway is not None:
            doors[self.ssh_gateway[1]] = self.ssh_gateway[0]
        return doors


class SwarmEngine(ContainerEngine):
    """Runs tasks on the nodes of a Swarm.

    `tls`: how to speak to the agents; None in tests only. `tunnel_servers`, `asked`: as for `RemoteEngine`;
    the servers run as long as this.
    """

    name = "swarm"
    shares_host_ports = False
    one_machine = False
    own_ssh_server = False
    bridge_address: str | None = None

    def __init__(
        self,
        data_dir: Path,
        tls: ssl.SSLContext | None,
        tunnel_servers: TunnelServers,
        asked: Open,
        settings: SwarmSettings,
    ) -> None:
        super().__init__(data_dir)
        self._tls, self._tunnel_servers, self._asked, self._settings = tls, tunnel_servers, asked, settings
        self._overlay = IPv4Network(settings.subnet_pool)
        self._api = DockerApi(settings.host)
        self._networks = OverlayNetworks(
            self._api,
            asked.instance,
            settings.subnet_pool,
            encrypted=settings.encrypted,
            spares=SpareNetworks(data_dir / "networks", settings.spare_networks),
            holders=NetworkHolders(self._api, asked.instance, settings.runtime_image),
            machines=lambda: {name: engine.takes_networks for name, engine in self._engines.items()},
        )
        #: by name: what Swarm says of a node, and the engine that speaks to its agent
        self._members: dict[str, SwarmNode] = {}
        self._engines: dict[str, RemoteEngine] = {}
        self._forwarding: dict[str, asyncio.Task[None]] = {}
        #: the node of each task that is under way
        self._places: dict[TaskRef, str] = {}
        self._expected: dict[TaskRef, str] | None = None
        self._working: list[asyncio.Task[None]] = []

    @property
    def front_door_url(self) -> str | None:
        """Return the address at which tasks reach the Hub; None where it is the one of browsers."""
        port = self._settings.front_door
        return f"http://{HUB_HOST}:{port}" if port is not None else None

    @property
    def storage_host(self) -> str | None:
        """Return the name by which tasks reach the storage; None where they do not reach us so."""
        return STORAGE_HOST if self._settings.front_door is not None else None

    async def start(self) -> None:
        """Connect to the Swarm's manager and to the agents that answer; EngineError."""
        self._tunnel_servers.start()
        await self._api.open()
        try:
            check_manager(self._api.host, await self._api.persist(self._api.docker.system.info))
            await self._look()
        except BaseException:
            await self.close()
            raise
        ready = [self._engines[name] for name, member in self._members.items() if member.ready]
        waiting = [asyncio.create_task(engine.ready()) for engine in ready]
        if waiting:
            await asyncio.wait(waiting, timeout=_FIRST_SECONDS)
        for wait in waiting:
            wait.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        self._working = [asyncio.create_task(self._watch())]

    async def close(self) -> None:
        """Let go of the Swarm; tasks run on."""
        for work in (*self._working, *self._forwarding.values()):
            work.cancel()
        await asyncio.gather(*self._working, *self._forwarding.values(), return_exceptions=True)
        await asyncio.gather(*(engine.close() for engine in self._engines.values()))
        await self._networks.close()
        await self._tunnel_servers.close()
        await self._api.close()
        self._queue.put_nowait(None)

    async def nodes(self) -> Sequence[Node]:
        """Return the nodes whose agents have answered, as they are."""
        return await self._nodes()

    def disk(self, node: str) -> DiskSpace | None:
        """Return the room on a node's disk, as its agent told it last; None where that is not known."""
        engine = self._engines.get(node)
        return None if engine is None else engine.disk(node)

    async def refuses_image(self, image: str) -> Message | None:
        """Return why no task may have an image; None where one may, or no node answers."""
        for name, engine in self._engines.items():
            if engine.answers and self._members[name].ready:
                return await engine.refuses_image(image)
        return None

    async def adopt(self, expected: Mapping[TaskRef, str]) -> None:
        """Take up what runs or has run of the expected tasks on their nodes; what else is there is ended."""
        self._expected = dict(expected)
        self._places.update(expected)
        gangs = {network_name(task.job_id, task.attempt) for task in expected}
        for node in set(expected.values()) - self._engines.keys():
            _log.warning("the node %s, on which tasks ran, has left the Swarm", node)
            for task in [task for task, place in expected.items() if place == node]:
                self._lose(task, node)
        # a node that is away takes up its tasks when it comes back; nobody waits for it
        for name, engine in self._engines.items():
            self._working.append(asyncio.create_task(engine.adopt(self._expected_on(name))))
        for network in await self._networks.names():
            if network not in gangs:
                await self._remove_network(network)
        await self._networks.begin(gangs)
        self._working.append(asyncio.create_task(self._keep_logs(self._asked.logs.keep_days, self._places)))

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        """Make the gang's network; give each member's address."""
        nodes = {member.node for member in gang.members}
        for member in gang.members:
            self._places[member.task] = member.node
        if len(nodes) == 1:
            return await self._engine(nodes.pop()).prepare(gang)
        return await self._networks.make(gang)

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:  # noqa: ARG002
        """Find none: each container has all ports of its own."""
        return ()

    async def launch(self, launch: Launch) -> None:
        """Start a task on its node, unless it runs, has run, or was killed."""
        needs_volume = launch.home and self._asked.homes is None
        if needs_volume and (place := await self._home_elsewhere(launch)) is not None:
            reason = msg(
                "Your home is on the node {home} only, and this was to run on {node}. Start it again, or ask "
                "an administrator for a folder that all nodes share (--homes).",
                home=place,
                node=launch.node,
            )
            self._queue.put_nowait(Ended(launch.task, _now(), EndCause.REFUSED, None, reason))
            return
        if launch.address and IPv4Address(launch.address) in self._overlay:
            network = self._networks.name(launch.task.job_id, launch.task.attempt)
            launch = replace(launch, env={**_INTERFACE, **launch.env}, network=network)
        await self._engine(launch.node).launch(launch)

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:
        """End a task's whole container, or keep it from ever being started."""
        engine = self._engines.get(self._places.get(task, ""))
        if engine is not None:
            await engine.kill(task, grace_seconds)
        else:
            self._queue.put_nowait(Ended(task, _now(), EndCause.KILLED, None))

    async def disk_use(self) -> Mapping[TaskRef, int]:
        """Return the bytes of each running task's log here."""
        use: dict[TaskRef, int] = {}
        for engine in list(self._engines.values()):
            use.update(await engine.disk_use())
        return use

    async def end_for_room(self, task: TaskRef) -> None:
        """End a running task because a disk that it fills is full."""
        if (engine := self._engines.get(self._places.get(task, ""))) is not None:
            await engine.end_for_room(task)

    async def release(self, gang: Gang) -> None:
        """Remove an ended gang's containers and network; the copies of its logs stay."""
        nodes = {member.node for member in gang.members}
        parts = [
            engine.release(replace(gang, members=tuple(m for m in gang.members if m.node == node)))
            for node in nodes
            if (engine := self._engines.get(node)) is not None
        ]
        await asyncio.gather(*parts)
        if len(nodes) > 1:
            await self._remove_network(network_name(gang.job_id, gang.attempt))
        for member in gang.members:
            self._places.pop(member.task, None)

    async def usage(self, task: TaskRef) -> Usage | None:
        """Measure a running task; None where it does not run, or its node does not answer."""
        engine = self._engines.get(self._places.get(task, ""))
        return None if engine is None else await engine.usage(task)

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int] | None:
        """Return a port of this machine's loopback address that leads to a port of a task."""
        engine = self._engines.get(self._places.get(task, ""))
        return None if engine is None else await engine.reach(task, port)

    async def ssh_endpoint(self, task: TaskRef) -> SshEndpoint:
        """Return where this machine reaches a task's SSH server; NoSshEndpointError where it does not."""
        engine = self._engines.get(self._places.get(task, ""))
        if engine is None:
            raise NoSshEndpointError(msg("The task does not run."))
        return await engine.ssh_endpoint(task)

    # ── the nodes

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                await self._look()
            except (aiodocker.DockerError, EngineError) as error:
                _log.warning("the nodes of the Swarm cannot be listed: %s", error)

    async def _look(self) -> None:
        """Learn which nodes there are now."""
        found = {node.name: node for node in await list_nodes(self._api)}
        if found == self._members:
            return
        changed = {name for name in found if found[name] != self._members.get(name)}
        gone = self._members.keys() - found.keys()
        self._members = found
        for name in sorted(changed):
            await self._meet(found[name])
        for name in gone:
            _log.warning("the node %s has left the Swarm", name)
            await self._part_with(name)
        self._queue.put_nowait(NodesChanged(_now(), tuple(await self._nodes())))

    async def _meet(self, member: SwarmNode) -> None:
        engine = self._engines.get(member.name)
        if engine is not None:
            engine.move_to(member.address)
            return
        engine = RemoteEngine(
            self._data_dir,
            AgentConnection(member.address, self._settings.agent_port, self._tls),
            self._tunnel_servers,
            self._asked,
            patience=self._settings.patience,
            front_doors=self._settings.front_doors,
            node_name=member.name,
        )
        self._engines[member.name] = engine
        self._forwarding[member.name] = asyncio.create_task(self._forward(engine))
        await engine.start_soon()
        if self._expected is not None:
            # nothing of ours may run on a node that has just joined
            self._working.append(asyncio.create_task(engine.adopt(self._expected_on(member.name))))

    async def _part_with(self, name: str) -> None:
        engine = self._engines.pop(name)
        self._forwarding.pop(name).cancel()
        await engine.close()
        for task in [task for task, place in self._places.items() if place == name]:
            self._lose(task, name)

    async def _forward(self, engine: RemoteEngine) -> None:
        async for event in engine.events():
            if isinstance(event, NodesChanged):
                event = NodesChanged(event.time, tuple(await self._nodes()))
            self._queue.put_nowait(event)

    async def _nodes(self) -> list[Node]:
        nodes: list[Node] = []
        for name, engine in sorted(self._engines.items()):
            member = self._members.get(name)
            state = member.state if member is not None else NodeState.LOST
            nodes += [
                replace(node, state=state if node.ready else node.state) for node in await engine.nodes()
            ]
        return nodes

    def _engine(self, node: str) -> RemoteEngine:
        engine = self._engines.get(node)
        if engine is None:
            raise lost_node(node, str(msg("it has left the Swarm")))
        return engine

    async def _home_elsewhere(self, launch: Launch) -> str | None:
        """Return the node that has a user's home, where it is another one; the first that is asked has it."""
        kept = self._data_dir / "homes" / home_volume(self._asked.instance, launch.user)

        def look() -> str | None:
            if kept.exists():
                place = kept.read_text()
                return None if place == launch.node else place
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_durably(kept, launch.node.encode())
            return None

        return await asyncio.to_thread(look)

    def _expected_on(self, node: str) -> list[TaskRef]:
        return [task for task, place in (self._expected or {}).items() if place == node]

    def _lose(self, task: TaskRef, node: str) -> None:
        reason = lost_node(node, str(msg("it has left the Swarm"))).message
        self._queue.put_nowait(Ended(task, _now(), EndCause.NODE_LOST, None, reason))

    async def _remove_network(self, name: str) -> None:
        try:
            await self._networks.remove(name)
        except EngineError as error:
            # a node that is away may still be in it
            _log.warning("%s", error)


def _now() -> int:
    return time.time_ns() // 10**6
