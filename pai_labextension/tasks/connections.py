"""Connections to tasks, through the SSH gateway, and the terminals open in them; each person's apart."""

from __future__ import annotations

import asyncio
import codecs
import itertools
import re
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

import asyncssh

from pai_labextension.callers import LoginWatch, Requester
from pai_labextension.messages import msg
from pai_scheduler.client.rest import Client
from pai_scheduler.client.ssh.connection import (
    OpenConnection,
    RemoteError,
    SharedConnection,
    connect,
    find_way,
)
from pai_scheduler.i18n import Message

# Shells in a task that outlive their viewers: their last output is kept for the next viewer.

#: How much of a shell's output is kept, in characters, and how much a viewer gets at once.
KEPT, _PIECE = 256 * 1024, 64 * 1024
#: Seconds for which a shell waits until a viewer has seen its output, and after each piece that nobody sees.
_VIEWERS_SECONDS, _UNSEEN_SECONDS = 1.0, 0.01
#: Seconds within which a shell that says nothing more tells how it ended.
_END_SECONDS = 5.0
_SIZE = (80, 24)
_LARGEST = 1000


class Terminal:
    """One shell on a PTY. Made by `Terminals`.

    `last_activity`: seconds since the epoch. `farewell`: why it ended, where its shell did not end by itself.
    """

    def __init__(self, name: str, process: asyncssh.SSHClientProcess[bytes]) -> None:
        self.name = name
        self.last_activity = time.time()
        self.farewell: Message | None = None
        self.ended = asyncio.Event()
        #: how many look at it; and since when nobody does (`time.monotonic`)
        self.viewers = 0
        self.unseen_since = time.monotonic()
        self._process = process
        self._hung_up = False
        self._kept = ""
        # positions in all that the shell ever said: where `_kept` ends, and how far the fastest viewer is
        self._end = self._seen = 0
        self._more = asyncio.Event()
        self._seen_more = asyncio.Event()
        self._reader = asyncio.create_task(self._read())

    async def view(self) -> AsyncGenerator[str, None]:
        """Return what is kept of the output, then what comes, until the end of the shell.

        A slow viewer misses what is no longer kept.
        """
        position = self._end - len(self._kept)
        self.viewers += 1
        try:
            while True:
                begin = self._end - len(self._kept)
                position = max(position, begin)
                piece = self._kept[position - begin : position - begin + _PIECE]
                if piece:
                    yield piece
                    position += len(piece)
                    self._seen = max(self._seen, position)
                    self._seen_more.set()
                elif self.ended.is_set():
                    return
                else:
                    self._more.clear()
                    await self._more.wait()
        finally:
            self.viewers -= 1
            self.unseen_since = time.monotonic()
            self._seen_more.set()

    async def write(self, text: str) -> None:
        """Type something; returns when there is room for more. After the end, nothing happens."""
        self.last_activity = time.time()
        with suppress(OSError, asyncssh.Error):
            self._process.stdin.write(text.encode("utf-8", "replace"))
            await self._process.stdin.drain()

    def resize(self, columns: int, rows: int) -> None:
        """Make it as large as its latest viewer's window."""
        if 0 < columns <= _LARGEST and 0 < rows <= _LARGEST and not self.ended.is_set():
            with suppress(OSError, asyncssh.Error):
                self._process.change_terminal_size(columns, rows)

    async def close(self) -> None:
        """Hang up: the shell, and what it started on its terminal, get a SIGHUP."""
        self._hung_up = True
        self._process.close()
        await self._reader

    async def _read(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            while piece := await self._process.stdout.read(_PIECE):
                self._keep(decoder.decode(piece))
                await self._pace()
            self._keep(decoder.decode(b"", final=True))
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait_closed()
        except (OSError, asyncssh.Error):
            pass
        # a shell that ended says how; nothing is known of one whose connection broke
        if not self._hung_up and self._process.exit_status is None and self._process.exit_signal is None:
            self.farewell = msg("The connection to the task broke. The shell is gone; open another one.")
        self._process.close()
        self.ended.set()
        self._more.set()

    def _keep(self, text: str) -> None:
        self._kept = (self._kept + text)[-KEPT:]
        self._end += len(text)
        self.last_activity = time.time()
        self._more.set()

    async def _pace(self) -> None:
        """Hold the shell up while its viewers are behind, but not for one that hangs; leave others a turn."""
        if not self.viewers:
            await asyncio.sleep(_UNSEEN_SECONDS)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_VIEWERS_SECONDS):
                while self._seen < self._end and self.viewers:
                    self._seen_more.clear()
                    await self._seen_more.wait()


class Terminals:
    """The terminals of one task, over one SSH connection; without a viewer one is kept for `keep` seconds."""

    def __init__(self, open_connection: OpenConnection, keep: float = 1800.0) -> None:
        self._connection = SharedConnection(open_connection, idle=1.0)
        self._keep = keep
        self._terminals: dict[str, Terminal] = {}
        self._numbers = itertools.count(1)
        self._watchers: set[asyncio.Task[None]] = set()

    async def create(self, name: str | None = None) -> Terminal:
        """Open a shell; whatever `open_connection` raises, or asyncssh.Error. One that is there is given."""
        if name is not None and name in self._terminals:
            return self._terminals[name]
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(self._connection.use())
            process = await connection.create_process(
                term_type="xterm-256color",
                term_size=_SIZE,
                # A character of several bytes is one to the line that is being edited, and to programs; what
                # the image or the job has set comes before it.
                term_modes={asyncssh.PTY_IUTF8: 1},
                env={"LANG": "C.UTF-8"},
                stderr=asyncssh.STDOUT,
                encoding=None,
            )
            if name is None or name in self._terminals:
                name = next(str(number) for number in self._numbers if str(number) not in self._terminals)
            terminal = self._terminals[name] = Terminal(name, process)
            watcher = asyncio.create_task(self._watch(terminal, stack.pop_all()))
            self._watchers.add(watcher)
            watcher.add_done_callback(self._watchers.discard)
        return terminal

    def list(self) -> list[Terminal]:
        """List those whose shells run."""
        return list(self._terminals.values())

    def get(self, name: str) -> Terminal | None:
        """Find one whose shell runs."""
        return self._terminals.get(name)

    async def close(self) -> None:
        """Close all of them, and the connection."""
        await asyncio.gather(*(terminal.close() for terminal in self.list()))
        await asyncio.gather(*self._watchers)
        await self._connection.close()

    async def _watch(self, terminal: Terminal, connection: AsyncExitStack) -> None:
        async with connection:
            while not terminal.ended.is_set():
                unseen = 0.0 if terminal.viewers else time.monotonic() - terminal.unseen_since
                if unseen >= self._keep:
                    await terminal.close()
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._keep - unseen):
                        await terminal.ended.wait()
            del self._terminals[terminal.name]


#: What the scheduler lets users, jobs and roles be called; a user has any name that the Hub knows.
_USER = re.compile(r"[^\x00-\x1f\x7f]{1,255}")
_JOB = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,255}")
_TASK = re.compile(r"(?P<role>[A-Za-z0-9._~]{1,255})-(?P<index>[0-9]{1,9})")


class NoTaskError(Exception):
    """There can be no task of this name."""


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task: whose, of which job, which of its tasks."""

    user: str
    job: str
    role: str
    index: int

    @classmethod
    def read(cls, user: str, job: str, task: str) -> TaskName:
        """Read the parts of an address, decoded; `task`: `<role>-<index>`. NoTaskError."""
        match = _TASK.fullmatch(task)
        if match is None or _JOB.fullmatch(job) is None or _USER.fullmatch(user) is None:
            raise NoTaskError(f"{user}/{job}/{task}")
        return cls(user, job, match["role"], int(match["index"]))

    @property
    def task(self) -> str:
        """Its name among the tasks of its job."""
        return f"{self.role}-{self.index}"


class TaskConnections:
    """One person's connections to tasks, and what is kept open for each of them."""

    def __init__(self, api_url: str, token: str) -> None:
        self._api_url, self._token = api_url, token
        self._terminals: dict[TaskName, Terminals] = {}
        self._connections: dict[TaskName, SharedConnection] = {}
        self._owner: str | None = None
        self._is_closed = False
        #: Of what the scheduler says: the person asked last in this language.
        self.locale = "en"

    def client(self) -> Client:
        """Make a client of the scheduler's API, to be closed."""
        return Client(self._api_url, self._token, locale=self.locale)

    async def owner(self) -> str:
        """Return whose token this is; `ApiError`, `UnreachableError`."""
        if self._owner is None:
            async with self.client() as client:
                self._owner = (await client.whoami())["username"]
        return self._owner

    async def open(self, task: TaskName) -> asyncssh.SSHClientConnection:
        """Log into a task; RemoteError says why that cannot be. `ApiError`, `UnreachableError`."""
        async with self.client() as client:
            way = await find_way(client, task.user, task.job, task.task)
        connection = await connect(way.gateway, str(way.login), self._token)
        if self._is_closed:
            # meanwhile the login has ended
            connection.close()
            raise RemoteError(msg("Your login has expired. Load this page again to log in."))
        return connection

    def terminals(self, task: TaskName) -> Terminals:
        """Return the terminals of a task."""
        if task not in self._terminals:
            self._terminals[task] = Terminals(partial(self.open, task))
        return self._terminals[task]

    def connection(self, task: TaskName) -> SharedConnection:
        """Return the connection that all ports of a task share."""
        if task not in self._connections:
            self._connections[task] = SharedConnection(partial(self.open, task))
        return self._connections[task]

    @property
    def shells(self) -> int:
        """Return how many shells run."""
        return sum(len(terminals.list()) for terminals in self._terminals.values())

    @property
    def unused(self) -> bool:
        """Return whether no shell runs and no connection is open."""
        return self.shells == 0 and all(connection.unused for connection in self._connections.values())

    async def close(self) -> None:
        """Close all that is open; nothing opens any more."""
        self._is_closed = True
        closing: list[Coroutine[Any, Any, None]] = [
            *(terminals.close() for terminals in self._terminals.values()),
            *(connection.close() for connection in self._connections.values()),
        ]
        await asyncio.gather(*closing, return_exceptions=True)


#: Seconds after which what a person has not asked for, and does not use, is let go.
_UNASKED_SECONDS = 120.0


class _Kept(Protocol):
    """Something of one person's that is open."""

    @property
    def unused(self) -> bool:
        """Return whether nothing of it is open."""

    async def close(self) -> None:
        """Close all that is open."""


Kept = TypeVar("Kept", bound=_Kept)


class PerCaller(Generic[Kept]):
    """Keeps apart for each person what `make` makes; nobody gets another's, nor one's own of another login.

    It is closed when it has not been asked for and not been in use for a while, and at once when `logins`
    says that the login has ended (None: the logins here do not end).
    """

    def __init__(self, make: Callable[[Requester], Kept], logins: LoginWatch | None = None) -> None:
        self._make, self._logins = make, logins
        self._kept: dict[Requester, Kept] = {}
        self._asked: dict[Requester, float] = {}
        self._releases: dict[Requester, Callable[[], None]] = {}
        self._sweeper: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, caller: Requester) -> Kept:
        """Return what is the caller's."""
        self._asked[caller] = time.monotonic()
        if caller not in self._kept:
            self._kept[caller] = self._make(caller)
            if self._logins is not None:
                self._releases[caller] = self._logins.hold(caller.token, partial(self._drop, caller))
            self._sweep_later()
        return self._kept[caller]

    def __len__(self) -> int:
        return len(self._kept)

    async def close(self) -> None:
        """Close everybody's."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        for caller in list(self._kept):
            self._drop(caller)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _drop(self, caller: Requester) -> None:
        del self._asked[caller]
        if (release := self._releases.pop(caller, None)) is not None:
            release()
        closing = asyncio.ensure_future(self._kept.pop(caller).close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    def _sweep_later(self) -> None:
        if self._sweeper is None and self._kept:
            self._sweeper = asyncio.get_running_loop().call_later(_UNASKED_SECONDS / 2, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        now = time.monotonic()
        for caller, kept in list(self._kept.items()):
            if kept.unused and now - self._asked[caller] > _UNASKED_SECONDS:
                self._drop(caller)
        self._sweep_later()
