"""A scheduler's session with one agent: begun, kept, begun anew after a break; clock offset, ports."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import zlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from pai_scheduler.cluster.node import DiskSpace, Node
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef

from .connection import AgentConnection, AgentRefusedError, AgentUnreachableError, SessionOverError
from .protocol import POLL_SECONDS, Heard, Listen, Open, Opened
from .tunnel import accept_all

# How far another machine's clock is ahead of this one's, learnt from the answers that it gives anyway.
#
# As NTP does (RFC 5905, section 8): an answer was made after its question was sent and before it came, so
# what the other clock showed then bounds the difference from both sides.

#: ms apart that are worth a line in the log
_MUCH = 2_000

_log = logging.getLogger(__name__)


class ClockDifference:
    """Translates times of the machine `name` into this machine's; ms since the epoch. `wall` is our clock."""

    def __init__(self, name: str, wall: Callable[[], int] = lambda: time.time_ns() // 10**6) -> None:
        self._name, self._wall = name, wall
        #: ms by which the other clock is ahead, as far as it is known
        self.ahead = 0
        self._told = False

    def learn(self, theirs: int, seconds: float) -> None:
        """Learn from an answer that has just come: `theirs` is when it was made, asked for `seconds` ago."""
        least = theirs - self._wall()
        most = least + round(1000 * seconds)
        self.ahead = min(max(self.ahead, least), most)
        much = abs(self.ahead) > _MUCH
        if much and not self._told:
            way = "ahead" if self.ahead > 0 else "behind"
            seconds_apart = abs(self.ahead) / 1000
            _log.warning(
                "the clock of %s is %.1f s %s; its times are corrected", self._name, seconds_apart, way
            )
        self._told = much

    def here(self, theirs: int) -> int:
        """Return what this machine's clock showed when the other one showed `theirs`."""
        return theirs - self.ahead


# Ports of tasks on another machine, as ports on this one's loopback address.

#: the first port on loopback that is chosen, and how many there are: below those that Linux gives out
_PORTS = 22000, 10000
_HOST, _MOST_WAITING = "127.0.0.1", 100

#: Carries a connection to a port of a task; returns when it has ended.
Carry = Callable[[socket.socket, TaskRef, int], Awaitable[None]]


class Tunnels:
    """Listens on loopback for each port of a task that was asked for, and has carried what comes.

    Who may use such a port is decided by what listens at its other end, as it is for the task's own.
    """

    def __init__(self, carry: Carry) -> None:
        self._carry = carry
        #: by task and port: the port on loopback, and who accepts
        self._listening: dict[tuple[TaskRef, int], tuple[int, asyncio.Task[None]]] = {}
        self._open: set[asyncio.Task[None]] = set()

    async def open(self, task: TaskRef, port: int) -> int:
        """Return the port on loopback that leads to a port of a task."""
        if (task, port) not in self._listening:
            listening = _listen(task, port)
            accepting = accept_all(listening, partial(self._take, task, port))
            self._listening[task, port] = listening.getsockname()[1], accepting
        return self._listening[task, port][0]

    def forget(self, task: TaskRef) -> None:
        """Listen for a task no more; what is open goes on."""
        for key in [key for key in self._listening if key[0] == task]:
            self._listening.pop(key)[1].cancel()

    async def close(self) -> None:
        """End all."""
        ending = [*self._open, *(accepting for _, accepting in self._listening.values())]
        self._listening.clear()
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def _take(self, task: TaskRef, port: int, connection: socket.socket) -> None:
        carrying = asyncio.ensure_future(self._carry(connection, task, port))
        self._open.add(carrying)
        carrying.add_done_callback(self._open.discard)


def _listen(task: TaskRef, port: int) -> socket.socket:
    """Listen at a port that is the same after a restart, unless somebody else has it."""
    first, count = _PORTS
    likely = first + zlib.crc32(f"{task.name}:{port}".encode()) % count
    try:
        return socket.create_server((_HOST, likely), backlog=_MOST_WAITING)
    except OSError:
        return socket.create_server((_HOST, 0), backlog=_MOST_WAITING)


# One scheduler's session with one agent: begun, kept, begun anew after a break, and told to be lost.

_RETRY_SECONDS = 0.5
_OPEN_SECONDS = 60.0
#: How long an agent may be away before nothing is placed on its node.
AWAY_SECONDS = 5.0

T = TypeVar("T")


class NodeLostError(Exception):
    """The node has been away for longer than it may: what runs there counts as lost."""


class AgentSession:
    """Keeps a session. `begun` is called when a new one has begun, before anybody else may use it.

    `on_heard` gets what the agent tells, with the times of its own clock, `on_health` whether the node
    answers; `on_lost` is called once when it has been away for `patience` seconds. When it comes back after
    that, its session is a new one.
    """

    def __init__(
        self,
        connection: AgentConnection,
        asked: Open,
        *,
        patience: float,
        begun: Callable[[], Awaitable[None]],
        on_heard: Callable[[Heard], None],
        on_health: Callable[[bool], None],
        on_lost: Callable[[], None],
    ) -> None:
        self._connection, self._asked, self._patience = connection, asked, patience
        self._begun, self._on_heard, self._on_health, self._on_lost = begun, on_heard, on_health, on_lost
        self._session = ""
        self._last = self._answer = 0
        self.nodes: tuple[Node, ...] = ()
        #: as in `Opened`
        self.takes_networks = False
        #: as it was told last; None: never
        self.disk: DiskSpace | None = None
        self.clock = ClockDifference(connection.host)
        self.is_lost = False
        self.why = ""
        #: set while calls may be made, and also while the node is lost, when they fail
        self._decided = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._timers: list[asyncio.TimerHandle] = []

    async def start(self) -> None:
        """Begin to keep the session."""
        await self._connection.open()
        self._keeping = asyncio.create_task(self._keep())
        self.why = "it has not answered yet"
        self._set_timers()

    async def close(self) -> None:
        """Let go of the agent; tasks run on."""
        self._stop_timers()
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
        await self._connection.close()

    async def ready(self) -> None:
        """Wait until the agent answers; NodeLostError."""
        await self._decided.wait()
        if self.is_lost:
            raise NodeLostError

    async def call(self, name: str, body: object, kind: Any) -> Any:
        """Make a call that may be repeated, until it is answered; NodeLostError, EngineError."""
        return await self.persist(lambda session: self._connection.call(name, body, kind, session))

    async def call_now(self, name: str, body: object, kind: Any, seconds: float = _OPEN_SECONDS) -> Any:
        """Make a call once, within a session that has just begun."""
        return await self._connection.call(name, body, kind, self._session, seconds)

    async def persist(self, step: Callable[[str], Awaitable[T]]) -> T:
        """Do something in the session, again in the next one where it breaks; NodeLostError, EngineError."""
        while True:
            await self.ready()
            try:
                return await step(self._session)
            except SessionOverError:
                self._decided.clear()
                await asyncio.sleep(_RETRY_SECONDS / 10)
            except AgentUnreachableError:
                await asyncio.sleep(_RETRY_SECONDS)
            except AgentRefusedError as error:
                raise EngineError(error.message) from error

    def current(self) -> str:
        """Return the session; AgentUnreachableError where there is none now."""
        if self.is_lost or not self._session or not self._decided.is_set():
            raise AgentUnreachableError(self.why)
        return self._session

    async def once(self, step: Callable[[str], Awaitable[T]]) -> T:
        """Do something in the session now or not at all; AgentUnreachableError."""
        try:
            return await step(self.current())
        except SessionOverError as error:
            raise AgentUnreachableError("its session is over") from error

    async def _keep(self) -> None:
        while True:
            try:
                if not self._session:
                    await self._begin()
                await self._listen()
            except SessionOverError:
                self._session = ""
                self._decided.clear()
            except (AgentUnreachableError, AgentRefusedError) as error:
                self._note_break(str(error))
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:
                _log.exception("what the agent at %s says cannot be read", self._connection.host)
                self._session = ""
                await asyncio.sleep(_RETRY_SECONDS)

    async def _begin(self) -> None:
        asked = time.monotonic()
        opened = await self._connection.call("open", self._asked, Opened, seconds=_OPEN_SECONDS)
        self.clock.learn(opened.time, time.monotonic() - asked)
        self._session, self.nodes, self.disk = opened.session, opened.nodes, opened.disk
        self.takes_networks = opened.takes_networks
        self._last = self._answer = 0
        try:
            await self._begun()
        except BaseException:
            self._session = ""
            raise
        self._note_answer()

    async def _listen(self) -> None:
        asked = time.monotonic()
        heard = await self._connection.call(
            "listen", Listen(self._last, self._answer), Heard, self._session, POLL_SECONDS + AWAY_SECONDS
        )
        self.clock.learn(heard.time, time.monotonic() - asked)
        self._note_answer()
        self._last, self._answer = heard.last, heard.answer
        self.disk = heard.disk or self.disk
        self._on_heard(heard)

    def _note_answer(self) -> None:
        self.why = ""
        was_away = bool(self._timers)
        self._stop_timers()
        self.is_lost = False
        self._decided.set()
        if was_away:
            self._on_health(True)

    def _note_break(self, why: str) -> None:
        self.why = why
        if self._timers or self.is_lost:
            return
        _log.warning("the agent at %s does not answer: %s", self._connection.host, why)
        self._set_timers()

    def _set_timers(self) -> None:
        loop = asyncio.get_running_loop()
        self._timers = [
            loop.call_later(AWAY_SECONDS, self._on_health, False),
            loop.call_later(self._patience, self._give_up),
        ]

    def _give_up(self) -> None:
        _log.warning("the agent at %s is lost: %s", self._connection.host, self.why)
        self.is_lost = True
        # what happens there now is of no use any more: it is looked at anew when it comes back
        self._session = ""
        self._decided.set()
        self._on_health(False)  # first, or what is tried again would come to this node again
        self._on_lost()

    def _stop_timers(self) -> None:
        for timer in self._timers:
            timer.cancel()
        self._timers = []


def lost_node(node: str, why: str) -> EngineError:
    """Return the error that says that a node does not answer."""
    return EngineError(msg("The node {node} does not answer: {why}", node=node, why=why))
