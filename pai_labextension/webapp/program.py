"""A web program beside this server: started, asked until it answers, watched; what it wrote last is kept."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import socket
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypedDict

import aiohttp
from yarl import URL

#: Where the service is, below this server's address; what opens it there knows the same name.
PATH = "pai-service"
#: Under which this server's settings have the `Program`.
SETTING = "pai_service"
#: Seconds between two attempts to reach a program that does not answer yet.
_KNOCK_EVERY = 0.1
#: seconds that one attempt may take
_KNOCK = aiohttp.ClientTimeout(total=5)
#: Seconds that a program has to end after SIGTERM, and that its last lines have to arrive after its end.
_END_SECONDS, _LINES_SECONDS = 5.0, 1.0
#: What is kept of its output: so many lines, and of each so many characters.
_LINES, _LINE_LENGTH = 12, 500
_READ_BYTES = 64 * 1024
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_PLACEHOLDER = re.compile(r"\{(port|unix_socket|base_url|prefix)\}")


class ProgramPhase(StrEnum):
    """Phase of a program. `FAILED`: it never answered; `ENDED`: it did."""

    STARTING = "starting"
    ANSWERS = "answers"
    FAILED = "failed"
    ENDED = "ended"


class ProgramState(TypedDict):
    """State of a program, as the spawner reads it.

    `exitCode`: None where there is none; negative: the signal that ended it. `reason`: why it could not be
    started at all; `log`: the last lines that it wrote.
    """

    title: str
    state: str
    exitCode: int | None
    startSeconds: int
    reason: str
    log: str


@dataclass(frozen=True, slots=True)
class Command:
    """Command line. `words`: with placeholders; `prefix`: its address for browsers, with no `/` at its end.

    `keeps_prefix`: whether it gets paths with this prefix; `start_seconds`: how long it may take until it
    answers.
    """

    title: str
    words: tuple[str, ...]
    prefix: str
    keeps_prefix: bool
    start_seconds: int

    @classmethod
    def read(cls, raw: Mapping[str, Any], prefix: str) -> Command:
        """Read what the spawner tells."""
        return cls(
            raw["title"], tuple(raw["command"]), prefix, not raw["strip_prefix"], int(raw["start_seconds"])
        )

    @property
    def wants_socket(self) -> bool:
        """Return whether it listens on a Unix socket instead of a port."""
        return any("{unix_socket}" in word for word in self.words)

    def with_values(self, port: int, unix_socket: str) -> list[str]:
        """Return its words with what the placeholders stand for; any other braces stay."""
        values = {
            "port": str(port),
            "unix_socket": unix_socket,
            "base_url": self.prefix + "/",
            "prefix": self.prefix,
        }
        return [_PLACEHOLDER.sub(lambda found: values[found[1]], word) for word in self.words]


class WebProgram:
    """Runs a command, once at a time; `start` begins it, and begins it again where it has ended."""

    def __init__(self, command: Command) -> None:
        self.command = command
        self.state = ProgramPhase.STARTING
        self.exit_code: int | None = None
        #: why it could not be started at all
        self.reason = ""
        #: where it listens: on a port of this machine, or on a socket; 0 and None where not
        self.port = 0
        self.unix_socket: str | None = None
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._folder: str | None = None
        self._run: asyncio.Task[None] | None = None

    @property
    def log(self) -> str:
        """Return the last lines that it wrote."""
        return "\n".join(self._lines).strip()

    @property
    def told(self) -> ProgramState:
        """Return what it does."""
        return {
            "title": self.command.title,
            "state": str(self.state),
            "exitCode": self.exit_code,
            "startSeconds": self.command.start_seconds,
            "reason": self.reason,
            "log": self.log,
        }

    def start(self) -> None:
        """Begin to start it, unless it is there already."""
        if self._run is None or self._run.done():
            self._begin()
            self._run = asyncio.ensure_future(self._start_and_watch())

    async def ended_within(self, seconds: float) -> bool:
        """Wait so long for its end, and return whether it came."""
        if self._run is not None:
            await asyncio.wait([self._run], timeout=seconds)
        return self.state in (ProgramPhase.FAILED, ProgramPhase.ENDED)

    async def close(self) -> None:
        """End it."""
        if self._run is not None:
            self._run.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._run
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _begin(self) -> None:
        self.state, self.exit_code, self.reason = ProgramPhase.STARTING, None, ""
        self._lines.clear()
        if not self.command.wants_socket:
            # a new one each time: whoever has taken the last one since is not this program
            self.port = _free_port()
            return
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="pai-service-")
            self.unix_socket = str(Path(self._folder) / "socket")
        Path(self.unix_socket or "").unlink(missing_ok=True)

    async def _start_and_watch(self) -> None:
        words = self.command.with_values(self.port, self.unix_socket or "")
        try:
            process = await asyncio.create_subprocess_exec(*words, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT)
        except (OSError, ValueError) as error:
            self.state, self.reason = ProgramPhase.FAILED, str(error)
            return
        copying = asyncio.ensure_future(self._copy(process.stdout))
        ended = asyncio.ensure_future(process.wait())
        try:
            if await self._answers_before(ended):
                self.state = ProgramPhase.ANSWERS
                await ended
        finally:
            fate = ProgramPhase.ENDED if self.state is ProgramPhase.ANSWERS else ProgramPhase.FAILED
            # one that was ended here, for it never answered, has no exit code of its own
            code = process.returncode
            await _end(process)
            await asyncio.wait([copying], timeout=_LINES_SECONDS)
            copying.cancel()
            ended.cancel()
            self.state, self.exit_code = fate, code

    async def _answers_before(self, ended: asyncio.Future[int]) -> bool:
        knocking = asyncio.ensure_future(self._knock())
        first: list[asyncio.Future[Any]] = [knocking, ended]
        try:
            await asyncio.wait(first, timeout=self.command.start_seconds, return_when=asyncio.FIRST_COMPLETED)
            return knocking.done() and not ended.done()
        finally:
            knocking.cancel()

    async def _knock(self) -> None:
        """Return when it gives any answer: what that says is between it and its user."""
        connector = aiohttp.UnixConnector(self.unix_socket) if self.unix_socket else aiohttp.TCPConnector()
        place = self.command.prefix if self.command.keeps_prefix else ""
        url = URL(f"http://localhost:{self.port or 80}{place}/", encoded=True)
        async with aiohttp.ClientSession(connector=connector, timeout=_KNOCK) as session:
            while True:
                with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                    async with session.get(url, allow_redirects=False):
                        return
                await asyncio.sleep(_KNOCK_EVERY)

    async def _copy(self, output: asyncio.StreamReader | None) -> None:
        """Pass on what it writes to the log of the job that this server is, and keep the last lines."""
        rest = ""
        while output is not None and (data := await output.read(_READ_BYTES)):
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
            *lines, rest = (rest + data.decode(errors="replace")).split("\n")
            self._lines.extend(map(_kept, lines))
            rest = rest[-_READ_BYTES:]
        if rest:
            self._lines.append(_kept(rest))


async def _end(process: Process) -> None:
    """End a process that may have ended already."""
    for end in (process.terminate, process.kill):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            end()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)


def _kept(line: str) -> str:
    return _ANSI.sub("", line).rstrip()[:_LINE_LENGTH]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
