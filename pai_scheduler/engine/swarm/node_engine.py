"""The engine of a node elsewhere: its agent runs the tasks on that node, and this side keeps what is to last.

Logs are copied here as they grow, so that they outlive the node. What is to be launched or ended is asked for
again in each new session, until it has happened: an agent may be started anew at any time.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import socket
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pai_scheduler.cluster.node import DiskSpace, Node, NodeState
from pai_scheduler.core.events import NodesChanged
from pai_scheduler.engine.disk_usage import size_of
from pai_scheduler.engine.docker.containers import stream, tree_entries
from pai_scheduler.engine.docker.context import ContainerEngine
from pai_scheduler.engine.logs.replication import Missing, extents, take_over
from pai_scheduler.engine.protocol import (
    EndCause,
    Ended,
    EngineError,
    EngineEvent,
    Gang,
    HeldAfterFailure,
    Launch,
    NoSshEndpointError,
    SshEndpoint,
    Started,
    Usage,
)
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.message_documents import read_message
from pai_scheduler.job.task import TaskRef

from .connection import PATIENCE_SECONDS, AgentConnection, AgentRefusedError, AgentUnreachableError
from .protocol import Caller, GangAddress, Heard, Kill, LogWanted, Open, WayIn, read_event
from .session import AgentSession, NodeLostError, Tunnels, lost_node
from .tunnel import TunnelServers, connect

_START_SECONDS, _ASK_SECONDS = 60.0, 30.0
#: Launches and copies of logs that are under way at once. Each has a connection of its own, whose handshake
#: and buffers cost more than the call, and an agent answers a launch before anything slow begins.
_LAUNCHES, _COPIES = 2, 4

_log = logging.getLogger(__name__)


@dataclass
class _RemoteTask:
    """Local state of a task on the node."""

    #: until it has started
    launch: Launch | None = None
    started: bool = False
    held: bool = False
    ended: bool = False
    #: loop time by which it is to have ended
    kill_by: float | None = None
    copying: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: its log has grown since the copying began
    has_output: bool = False


class RemoteEngine(ContainerEngine):
    """Runs tasks on one node, through its agent.

    `data_dir` keeps the copies of logs. `tunnel_servers` carry what goes to ports of tasks and to front
    doors; who made them starts and closes them. `asked`: how each session is begun, but for the ports of
    `front_doors`: by port, the address of this machine at which there is what containers on the node reach by
    their bridge. `patience`: seconds after which a node that does not answer counts as lost; what ran there
    ends as lost, and is ended there as soon as the node comes back.
    """

    name = "docker"
    shares_host_ports = False
    one_machine = True
    own_ssh_server = False
    front_door_url: str | None = None
    storage_host: str | None = None
    bridge_address: str | None = None

    def __init__(
        self,
        data_dir: Path,
        connection: AgentConnection,
        tunnel_servers: TunnelServers,
        asked: Open,
        *,
        patience: float = PATIENCE_SECONDS,
        front_doors: Mapping[int, str] | None = None,
        node_name: str | None = None,
    ) -> None:
        super().__init__(data_dir)
        self._node_name, self._connection = node_name, connection
        self._tasks: dict[TaskRef, _RemoteTask] = {}
        self._folders: dict[tuple[str, int], dict[str, Path]] = {}
        self._sending: dict[str, asyncio.Lock] = {}
        self._front_doors = front_doors or {}
        self._adopted = False
        self._healthy = True
        self._launches = asyncio.Semaphore(_LAUNCHES)
        self._copies = asyncio.Semaphore(_COPIES)
        self._working: set[asyncio.Task[None]] = set()
        self._tunnel_servers, self._tunnels = tunnel_servers, Tunnels(self._carry)
        self._session = AgentSession(
            connection,
            replace(asked, front_door_ports=tuple(self._front_doors)),
            patience=patience,
            begun=self._take_up,
            on_heard=self._hear,
            on_health=self._set_health,
            on_lost=self._lose,
        )

    async def start(self) -> None:
        """Connect; EngineError where the agent does not answer."""
        await self._session.start()
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._session.ready()
        except (TimeoutError, NodeLostError) as error:
            await self.close()
            raise lost_node(self._node_name or self._connection.host, self._session.why) from error

    async def start_soon(self) -> None:
        """Begin to connect; the node counts as lost until it has answered."""
        self._healthy = False
        await self._session.start()

    async def ready(self) -> None:
        """Wait until the agent answers; NodeLostError."""
        await self._session.ready()

    @property
    def answers(self) -> bool:
        """Return whether the agent answers, as far as is known."""
        return self._healthy and bool(self._session.nodes) and not self._session.is_lost

    @property
    def takes_networks(self) -> bool:
        """Return whether a launch may say which network its gang has."""
        return self._session.takes_networks

    def move_to(self, address: str) -> None:
        """Reach the agent at another address from now on."""
        self._connection.host = address

    async def close(self) -> None:
        """Let go of the agent; tasks run on."""
        for work in self._working:
            work.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        await self._tunnels.close()
        await self._session.close()
        self._queue.put_nowait(None)

    async def nodes(self) -> Sequence[Node]:
        """Return the node as it was last seen; none where it has never answered."""
        return tuple(self._describe(node) for node in self._session.nodes)

    def disk(self, node: str) -> DiskSpace | None:  # noqa: ARG002
        """Return the room on the node's disk, as it was told last; None where the node does not answer."""
        return self._session.disk if self.answers else None

    async def refuses_image(self, image: str) -> Message | None:
        """Return why no task may have an image; None where one may, or the node does not answer."""
        try:
            refused = await self._session.call("refuses_image", image, Any)
        except NodeLostError:
            return None
        return None if refused is None else read_message(refused)

    async def adopt(self, expected: Collection[TaskRef]) -> None:
        """Take up what runs or has run of the expected tasks; what else is there is ended."""
        for task in expected:
            self._tasks.setdefault(task, _RemoteTask())
        self._adopted = True
        try:
            await self._session.call("adopt", list(expected), None)
        except NodeLostError:
            _log.warning("the node is lost; what runs there is looked at when it comes back")

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        """Make the gang's network on the node; give each member's address."""
        try:
            found = await self._session.call("prepare", gang, list[GangAddress])
        except NodeLostError as error:
            raise self._lost() from error
        return {each.task: each.address for each in found}

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:  # noqa: ARG002
        """Find none: each container has all ports of its own."""
        return ()

    async def launch(self, launch: Launch) -> None:
        """Start a task, unless it runs, has run, or was killed."""
        task = self._tasks.setdefault(launch.task, _RemoteTask())
        if task.started or task.ended:
            return
        try:
            launch = await self._with_folders(launch)
            task.launch = launch
            async with self._launches:
                await self._session.call("launch", launch, None)
        except NodeLostError as error:
            raise self._lost() from error
        except OSError as error:
            reason = msg("The job's files cannot be sent: {error}", error=str(error))
            task.ended = True
            self._queue.put_nowait(
                Ended(launch.task, time.time_ns() // 10**6, EndCause.LAUNCH_FAILED, None, reason)
            )

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:
        """End a task's whole container, or keep it from ever being started."""
        known = self._tasks.setdefault(task, _RemoteTask())
        if known.ended:
            return
        by = asyncio.get_running_loop().time() + grace_seconds
        known.kill_by = by if known.kill_by is None else min(by, known.kill_by)
        try:
            await self._session.call("kill", Kill(task, grace_seconds), None)
        except NodeLostError:
            self._end_lost(task, known)

    async def disk_use(self) -> Mapping[TaskRef, int]:
        """Return the bytes of each running task's log here."""
        running = [ref for ref, task in self._tasks.items() if task.started and not task.ended]
        sizes = await asyncio.to_thread(lambda: [size_of(self.log(ref).folder) for ref in running])
        return dict(zip(running, sizes, strict=True))

    async def end_for_room(self, task: TaskRef) -> None:
        """End a running task because a disk that it fills is full."""
        try:
            await self._session.call("end_for_room", task, None)
        except NodeLostError:
            return

    async def release(self, gang: Gang) -> None:
        """Remove an ended gang's containers and network; the copies of its logs stay."""
        for member in gang.members:
            self._tunnels.forget(member.task)
        try:
            await self._session.call("release", gang, None)
            for key, folder in self._folders.pop((gang.job_id, gang.attempt), {}).items():
                await self._session.persist(
                    lambda session, key=key, name=folder.name: self._connection.remove_folder(  # type: ignore[misc]
                        key, name, session
                    )
                )
                self._sending.pop(key, None)
            for member in gang.members:
                await self._session.call("forget", member.task, None)
        except NodeLostError:
            _log.info("the node is lost; what is left there is removed when it comes back")
        for member in gang.members:
            self._tasks.pop(member.task, None)

    async def usage(self, task: TaskRef) -> Usage | None:
        """Measure a task; None where it does not run, or the node does not answer."""
        try:
            found: Usage | None = await self._session.once(
                lambda session: self._connection.call("usage", task, Usage | None, session, _ASK_SECONDS)
            )
        except (AgentUnreachableError, AgentRefusedError):
            return None
        return None if found is None else replace(found, time=self._session.clock.here(found.time))

    async def ssh_endpoint(self, task: TaskRef) -> SshEndpoint:
        """Return where this machine reaches a task's SSH server; NoSshEndpointError where it does not."""
        try:
            way: WayIn = await self._session.once(
                lambda session: self._connection.call("ssh_endpoint", task, WayIn, session, _ASK_SECONDS)
            )
        except AgentRefusedError as error:
            raise NoSshEndpointError(error.message) from error
        except AgentUnreachableError as error:
            raise NoSshEndpointError(lost_node(self._node_name or "", str(error)).message) from error
        port = await self._tunnels.open(task, way.port)
        return SshEndpoint("127.0.0.1", port, way.published, way.isolated, way.signals)

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int]:
        """Return a port of this machine's loopback address that leads to a port of a task."""
        return "127.0.0.1", await self._tunnels.open(task, port)

    # ── the session

    async def _take_up(self) -> None:
        """Ask again for what is to be, in a session that has just begun."""
        if not self._adopted:
            return
        alive = [ref for ref, task in self._tasks.items() if not task.ended]
        await self._session.call_now("adopt", alive, None)
        now = asyncio.get_running_loop().time()
        for ref in alive:
            task = self._tasks[ref]
            if task.kill_by is not None:
                await self._session.call_now("kill", Kill(ref, max(0.0, task.kill_by - now)), None)
            elif task.launch is not None:
                await self._session.call_now("launch", task.launch, None)

    def _hear(self, heard: Heard) -> None:
        for document in heard.events:
            event = read_event(document)
            self._note_event(replace(event, time=self._session.clock.here(event.time)))
        for task in heard.output:
            self._note_output(task)
        for caller in heard.callers:
            self._begin(self._let_in(caller))

    def _note_event(self, event: EngineEvent) -> None:
        if isinstance(event, NodesChanged):
            self._session.nodes = event.nodes
            self._tell_nodes()
            return
        task = self._tasks.get(event.task)
        if task is None or task.ended:
            return
        match event:
            case Ended():
                task.ended, task.launch = True, None
                self._begin(self._finish(event, task))
                return
            case Started() if not task.started:
                task.started, task.launch = True, None
            case HeldAfterFailure() if not task.held:
                task.held = True
            case Started() | HeldAfterFailure():
                return
        self._queue.put_nowait(event)

    async def _finish(self, event: Ended, task: _RemoteTask) -> None:
        """Report an end once the last of the log is here."""
        try:
            await self._copy(event.task, task)
        except (NodeLostError, EngineError) as error:
            _log.warning("the last of the log of %s is missing: %s", event.task.name, error)
        self._queue.put_nowait(event)

    def _set_health(self, healthy: bool) -> None:
        if self._healthy != healthy:
            self._healthy = healthy
            self._tell_nodes()

    def _tell_nodes(self) -> None:
        nodes = tuple(self._describe(node) for node in self._session.nodes)
        self._queue.put_nowait(NodesChanged(time.time_ns() // 10**6, nodes))

    def _describe(self, node: Node) -> Node:
        state = node.state if self._healthy else NodeState.LOST
        return replace(node, name=self._node_name or node.name, state=state)

    def _lose(self) -> None:
        for ref, task in self._tasks.items():
            self._end_lost(ref, task)

    def _end_lost(self, ref: TaskRef, task: _RemoteTask) -> None:
        if task.ended:
            return
        task.ended, task.launch = True, None
        never_ran = not task.started and task.kill_by is not None
        cause = EndCause.KILLED if never_ran else EndCause.NODE_LOST
        self._queue.put_nowait(Ended(ref, time.time_ns() // 10**6, cause, None, self._lost().message))

    def _lost(self) -> EngineError:
        return lost_node(self._node_name or self._connection.host, self._session.why)

    async def _carry(self, connection: socket.socket, task: TaskRef, port: int) -> None:
        """Carry a connection to a port of a task, and what comes back."""
        with connection:
            try:
                far = self._connection.task_port(task, port, self._session.current())
            except AgentUnreachableError as error:
                _log.warning("a connection to a task failed: %s", error)
                return
            await self._tunnel_servers.serve(connection, far)

    async def _let_in(self, caller: Caller) -> None:
        """Take a connection of a container to what is at a port of this machine."""
        try:
            connection = await connect(self._front_doors[caller.port], caller.port)
        except (KeyError, OSError) as error:
            _log.warning("a container cannot be let in: %s", error)
            return
        with connection:
            try:
                far = self._connection.caller(caller.name, self._session.current())
            except AgentUnreachableError as error:
                _log.info("a container's connection waits no more: %s", error)
                return
            await self._tunnel_servers.serve(connection, far)

    # ── what is copied

    def _note_output(self, ref: TaskRef) -> None:
        task = self._tasks.get(ref)
        if task is None or task.ended:
            return
        task.has_output = True
        if not task.copying.locked():
            self._begin(self._copy_news(ref, task))

    async def _copy_news(self, ref: TaskRef, task: _RemoteTask) -> None:
        try:
            while task.has_output:
                task.has_output = False
                await self._copy(ref, task)
        except (NodeLostError, EngineError) as error:
            _log.warning("the log of %s cannot be copied: %s", ref.name, error)

    async def _copy(self, ref: TaskRef, task: _RemoteTask) -> None:
        """Copy what is missing of a task's log."""
        folder = self.log(ref).folder
        async with task.copying, self._copies:
            complete = False
            while not complete:
                has = await asyncio.to_thread(extents, folder)
                news: Missing = await self._session.call("log", LogWanted(ref, has), Missing)
                try:
                    await asyncio.to_thread(take_over, folder, news)
                except OSError as error:  # a full disk must not keep a task from its end
                    _log.warning("the log of %s cannot be written: %s", ref.name, error)
                    return
                complete = news.complete

    async def _with_folders(self, launch: Launch) -> Launch:
        """Send the folders of a launch to the node, unless it has them; return it as the node sees it."""
        code = launch.code
        if code is not None:
            code = await self._send(launch.task, code)
        mounts = tuple(
            [replace(mount, source=await self._send(launch.task, mount.source)) for mount in launch.mounts]
        )
        return replace(launch, code=code, mounts=mounts)

    async def _send(self, task: TaskRef, folder: Path) -> Path:
        if not await asyncio.to_thread(folder.is_dir):
            raise FileNotFoundError(f"the folder {folder.name} is not there")
        # of each attempt anew: what is in a folder of the storage may have changed since
        key = hashlib.sha256(f"{task.job_id}/{task.attempt}/{folder}".encode()).hexdigest()
        self._folders.setdefault((task.job_id, task.attempt), {})[key] = folder

        async def send(session: str) -> str:
            found = await self._connection.find_folder(key, folder.name, session)
            if found is not None:
                return found
            archive = stream(tree_entries(folder, folder.name, writable=False))
            return await self._connection.send_folder(key, folder.name, archive, session)

        # once, also where many tasks begin at the same time
        async with self._sending.setdefault(key, asyncio.Lock()):
            return Path(await self._session.persist(send))

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
