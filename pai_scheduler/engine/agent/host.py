"""The engine of one node, held for the scheduler that has the session; its disks, its way back to it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import shutil
import socket
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from tornado.netutil import bind_sockets

from pai_scheduler.cluster.node import DiskSpace, Node, NodeState
from pai_scheduler.data_folder.durable_file import write_durably
from pai_scheduler.data_folder.room import least_free
from pai_scheduler.engine.disk_usage import DiskWatch
from pai_scheduler.engine.hardware import disk_space
from pai_scheduler.engine.protocol import Engine, EngineError, EngineEvent, NodesChanged
from pai_scheduler.engine.swarm.protocol import (
    POLL_SECONDS,
    Caller,
    Heard,
    Listen,
    Open,
    Opened,
    event_document,
)
from pai_scheduler.engine.swarm.tunnel import accept_all, reset_at_close
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef

# The Hub, the storage and the SSH gateway as this node's containers reach them: ports on its own bridge.
#
# The scheduler connects to its agents, never the other way round. So a connection from a container waits here
# until the scheduler, told of it with the other news, comes and takes it.


#: How long (seconds) a connection waits, and how many may at once.
_WAIT_SECONDS, _MOST_WAITING = 15.0, 1024

_log = logging.getLogger(__name__)


class FrontDoor:
    """Listens at `ports` of `address`. `on_caller` is called with each connection that waits."""

    def __init__(self, address: str, ports: Sequence[int], on_caller: Callable[[Caller], None]) -> None:
        self._address, self._ports, self._on_caller = address, ports, on_caller
        self._accepting: list[asyncio.Task[None]] = []
        self._waiting: dict[str, socket.socket] = {}

    async def open(self) -> None:
        """Begin to listen; EngineError where something else does."""
        for port in self._ports:
            try:
                listening = bind_sockets(port, self._address)
            except OSError as error:
                await self.close()
                raise EngineError(
                    msg(
                        "Containers cannot be let in at {address}:{port}: {why}. "
                        "Choose another port for the Hub, the scheduler or its SSH gateway.",
                        address=self._address,
                        port=port,
                        why=str(error),
                    )
                ) from error
            self._accepting += [accept_all(each, partial(self._receive, port)) for each in listening]

    async def close(self) -> None:
        """Listen no more; nobody who still waits is let in."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for connection in self._waiting.values():
            _break_off(connection)
        self._waiting.clear()

    def take(self, caller: str) -> socket.socket | None:
        """Return the connection of this name; None where it waits no more."""
        return self._waiting.pop(caller, None)

    def _receive(self, port: int, connection: socket.socket) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            _log.warning("more than %d connections of containers wait, one is refused", _MOST_WAITING)
            _break_off(connection)
            return
        caller = Caller(secrets.token_hex(16), port)
        self._waiting[caller.name] = connection
        asyncio.get_running_loop().call_later(_WAIT_SECONDS, self._give_up, caller.name)
        self._on_caller(caller)

    def _give_up(self, caller: str) -> None:
        if (waiting := self._waiting.pop(caller, None)) is not None:
            _break_off(waiting)


def _break_off(connection: socket.socket) -> None:
    """Close a connection so that it does not look like an answer without bytes."""
    reset_at_close(connection)
    connection.close()


# The disks of a node: says when hardly any room is left there, and ends the task that fills them.

_LOOK_SECONDS = 1.0


class NodeDisks:
    """Watches the disks that hold `folders`, of each of which `least_free_mb` are to stay free."""

    def __init__(self, folders: Iterable[Path], least_free_mb: int, engine: Engine) -> None:
        self._least = {folder: least for folder in folders if (least := least_free(folder, least_free_mb))}
        self._watch = DiskWatch(engine, self._part_free, min(self._least.values(), default=0))
        self.is_full = self._part_free() < 1

    async def watch(self, on_change: Callable[[], Awaitable[None]]) -> None:
        """Look again and again; `on_change` is called when a disk has become full, or has room again."""
        while self._least:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                is_full = await self._watch.look() < 1
                if is_full != self.is_full:
                    self.is_full = is_full
                    _log.warning(_WORDS[is_full])
                    await on_change()
            except Exception:
                _log.exception("the disks cannot be watched; trying again")

    def _part_free(self) -> float:
        parts = (shutil.disk_usage(folder).free / least for folder, least in self._least.items())
        return min(parts, default=1.0)


_WORDS = {True: "hardly any room is left on a disk", False: "there is room on the disks again"}


# Holds the engine of one node for the scheduler that has the session, and what it has to tell.

#: events in one answer
_MOST_EVENTS = 1000


class SessionError(Exception):
    """A call belongs to a session that is over: another scheduler has come, or the agent was started anew."""


class LocalEngine(Engine, Protocol):
    """An engine whose tasks this machine reaches by their addresses."""

    async def task_address(self, task: TaskRef) -> str:
        """Return where a running task is reached; NoSshEndpointError where it does not run."""


class MakeEngine(Protocol):
    """Makes the engine of a session; `on_output` is called when a task's log has grown."""

    def __call__(self, asked: Open, on_output: Callable[[TaskRef], None]) -> LocalEngine:
        """Return an engine that is not started."""


class EngineHost:
    """Has one engine at a time: a session begins with a fresh one, over what the one before left running.

    `folder` keeps which scheduler has led last. `disks`: folders on the disks that tasks fill. `clock`: this
    machine's (ms since the epoch).
    """

    def __init__(
        self,
        make: MakeEngine,
        folder: Path,
        *,
        disks: Iterable[Path] = (),
        clock: Callable[[], int] = lambda: time.time_ns() // 10**6,
    ) -> None:
        self._make, self._folder, self._disk_folders, self._clock = make, folder, tuple(disks), clock
        self._changing = asyncio.Lock()
        self._session = ""
        self._engine: LocalEngine | None = None
        self._working: list[asyncio.Task[None]] = []
        self._disks: NodeDisks | None = None
        #: what the scheduler knows of the disk's room
        self._told_disk: DiskSpace | None = None
        #: what the scheduler has not confirmed yet, with the number of the first of them
        self._events: deque[EngineEvent] = deque()
        self._first = 1
        self._output: set[TaskRef] = set()
        self._door: FrontDoor | None = None
        self._callers: list[Caller] = []
        #: what the last answer told beside events: told again where that did not come
        self._answer = 0
        self._told: tuple[tuple[TaskRef, ...], tuple[Caller, ...]] = (), ()
        self._listening = 0
        self._news = asyncio.Event()

    def engine_of(self, session: str) -> LocalEngine:
        """Return the engine; SessionError where the session is over."""
        if self._engine is None or not secrets.compare_digest(session, self._session):
            raise SessionError
        return self._engine

    async def open(self, asked: Open) -> Opened:
        """Begin a session, and end the one before; EngineError where the engine cannot work."""
        async with self._changing:
            await asyncio.to_thread(self._check_generation, asked)
            await self._end()
            engine = self._make(asked, self._note_output)
            await engine.start()
            try:
                await self._open_door(asked, engine)
            except EngineError:
                await engine.close()
                raise
            self._events.clear()
            self._first = 1
            self._output.clear()
            self._answer, self._told = 0, ((), ())
            self._engine, self._session = engine, secrets.token_hex(16)
            self._disks = NodeDisks(self._disk_folders, asked.least_free_mb, engine)
            self._working = [
                asyncio.create_task(self._hear(engine)),
                asyncio.create_task(self._disks.watch(partial(self._tell_nodes, engine))),
            ]
            _log.info("a scheduler (%s) has begun a session", asked.instance)
            nodes = self._described(await engine.nodes())
            self._told_disk = disk_space(self._disk_folders)
            return Opened(self._session, nodes, self._clock(), self._told_disk, takes_networks=True)

    async def close(self) -> None:
        """Let go of the engine; tasks run on."""
        async with self._changing:
            await self._end()

    async def listen(self, session: str, listen: Listen) -> Heard:
        """Return what has happened since, waiting for it for a while; SessionError."""
        self.engine_of(session)
        while self._events and self._first <= listen.after:
            self._events.popleft()
            self._first += 1
        if listen.answer != self._answer:
            self._output.update(self._told[0])
            self._callers[:0] = self._told[1]
            self._told_disk = None
        self._told = (), ()
        self._listening += 1
        own = self._listening
        self._news.set()  # who listened before has gone, and must not take what is news
        if not self._events and not self._output and not self._callers:
            self._news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._news.wait()
        self.engine_of(session)
        if own != self._listening:
            return Heard(listen.after, (), (), (), listen.answer, self._clock())
        events = [event for event, _ in zip(self._events, range(_MOST_EVENTS), strict=False)]
        output, self._output = tuple(self._output), set()
        callers, self._callers = tuple(self._callers), []
        self._told = output, callers
        self._answer = max(self._answer, listen.answer) + 1
        last = max(listen.after, self._first + len(events) - 1)
        documents = tuple(map(event_document, events))
        return Heard(last, documents, output, callers, self._answer, self._clock(), self._disk_news())

    def take_caller(self, session: str, caller: str) -> socket.socket | None:
        """Return a connection of a container that waits; None where it does no more; SessionError."""
        self.engine_of(session)
        return self._door.take(caller) if self._door is not None else None

    def _check_generation(self, asked: Open) -> None:
        """EngineError where a scheduler that took the lead later has been here, before our start too."""
        kept = self._folder / asked.instance / "generation"
        latest = int(kept.read_text()) if kept.exists() else 0
        if asked.generation < latest:
            raise EngineError(msg("Another scheduler has taken the lead."))
        if asked.generation > latest:
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_durably(kept, str(asked.generation).encode())

    async def _open_door(self, asked: Open, engine: LocalEngine) -> None:
        if not asked.front_door_ports or engine.bridge_address is None:
            return
        self._door = FrontDoor(engine.bridge_address, asked.front_door_ports, self._note_caller)
        await self._door.open()

    async def _end(self) -> None:
        self._session = ""
        self._news.set()
        if self._door is not None:
            await self._door.close()
            self._door = None
        self._callers.clear()
        for work in self._working:
            work.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        self._working = []
        if self._engine is not None:
            await self._engine.close()
        self._engine = None

    async def _hear(self, engine: Engine) -> None:
        async for event in engine.events():
            self._tell(event)

    def _tell(self, event: EngineEvent) -> None:
        if isinstance(event, NodesChanged):
            event = replace(event, nodes=self._described(event.nodes))
        self._events.append(event)
        self._news.set()

    async def _tell_nodes(self, engine: Engine) -> None:
        self._tell(NodesChanged(self._clock(), tuple(await engine.nodes())))

    def _described(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        if self._disks is None or not self._disks.is_full:
            return tuple(nodes)
        return tuple(replace(node, state=NodeState.FULL) if node.ready else node for node in nodes)

    def _disk_news(self) -> DiskSpace | None:
        space = disk_space(self._disk_folders)
        if space is None or not space.differs_noticeably(self._told_disk):
            return None
        self._told_disk = space
        return space

    def _note_caller(self, caller: Caller) -> None:
        self._callers.append(caller)
        self._news.set()

    def _note_output(self, task: TaskRef) -> None:
        self._output.add(task)
        self._news.set()
