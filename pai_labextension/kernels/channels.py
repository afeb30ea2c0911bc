"""Channels of a kernel that is a job: its sockets, carried through SSH."""

from __future__ import annotations

import asyncio
import fcntl
import itertools
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh

# Folders for a kernel's sockets: they go with their owner, or at the next start where that was killed.

_PREFIX = "pai-channels-"
#: Locked for as long as its owner lives; whoever else can lock it knows that there is no owner any more.
_LOCK = "owner"


class SocketFolder:
    """A folder that only this account can enter, below the machine's folder for what is temporary."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        unlocked = self.path / f"{_LOCK}.part"
        self._lock = os.open(unlocked, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # locked from the moment at which it has its name
        unlocked.rename(self.path / _LOCK)

    def close(self) -> None:
        """Remove it; a second time does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def remove_left_folders() -> None:
    """Remove the folders of this account whose owners have ended without a word."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # another one is busy with it, or the disk does not let us: it is tried at the next start
        with suppress(OSError):
            if _is_own(folder) and _has_no_owner(folder):
                shutil.rmtree(folder)


def _is_own(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _has_no_owner(folder: Path) -> bool:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


# What a notebook server and the runner in a kernel's task say to each other, through the SSH gateway.

#: Seconds that the runner may take for an answer: to start a kernel is the longest.
_ANSWER_SECONDS = 60.0


class RunnerError(Exception):
    """The runner could not do what it was asked for."""


@dataclass(frozen=True, slots=True)
class RunnerState:
    """Kernel state as reported by the runner. `connection` empty: none was started; `code` None: it runs.

    `idle`: seconds since it was used; `limit`: seconds after which it then ends, 0: never.
    """

    connection: Mapping[str, Any]
    code: int | None
    oom: bool
    busy: bool
    idle: float
    limit: float

    @classmethod
    def read(cls, said: Mapping[str, Any]) -> RunnerState:
        """Read it from an event; KeyError, TypeError, ValueError where that is none."""
        kernel = said["kernel"] or {"connection": {}, "code": None, "oom": False}
        return cls(
            dict(kernel["connection"]),
            None if kernel["code"] is None else int(kernel["code"]),
            bool(kernel["oom"]),
            bool(said["busy"]),
            float(said["idle"]),
            float(said["limit"]),
        )


#: Is told what happens: "hello" first, then "activity", "exited", "idle".
Heard = Callable[[str, RunnerState], None]


class RunnerLink:
    """One conversation with a runner. `run` holds it; requests raise ConnectionError when it is over."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes], heard: Heard) -> None:
        self._process, self._heard = process, heard
        self._numbers = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}

    async def run(self) -> None:
        """Listen until the runner, or the way to it, is gone."""
        try:
            while line := await self._process.stdout.readline():
                self._take(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise RunnerError(f"what answers in the task is no runner: {error}") from error
        finally:
            for asked in self._asked.values():
                if not asked.done():
                    asked.set_exception(ConnectionError("the connection to the kernel's task broke off"))
            self._process.close()

    async def ask(self, what: str, **values: Any) -> Any:
        """Ask for something; RunnerError where it is refused, ConnectionError, TimeoutError."""
        number = next(self._numbers)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            self._process.stdin.write(json.dumps({"id": number, "do": what, **values}).encode() + b"\n")
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await answer
        except BrokenPipeError as error:
            raise ConnectionError(str(error)) from error
        finally:
            del self._asked[number]

    def _take(self, said: dict[str, Any]) -> None:
        if "event" in said:
            self._heard(said["event"], RunnerState.read(said))
            return
        asked = self._asked.get(said["id"])
        if asked is None or asked.done():
            return
        if "error" in said:
            asked.set_exception(RunnerError(said["error"]))
        else:
            asked.set_result(said.get("ok"))


async def attach(connection: asyncssh.SSHClientConnection, command: str, heard: Heard) -> RunnerLink:
    """Begin a conversation; asyncssh.Error, OSError."""
    process = await connection.create_process(command, encoding=None, stderr=asyncssh.DEVNULL)
    return RunnerLink(process, heard)


# A kernel's five channels on this side: sockets that only this account can open, forwarded into the task.
#
# They are there at once, and hold what connects to them until the kernel runs; so who talks to a kernel
# need not know whether it waits for a GPU, was started again, or is behind a connection that broke and is
# back.

#: As jupyter_client calls them; their places are the numbers of the sockets.
PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")
#: The task's own machine, as it calls it.
_THERE = "localhost"
_PIECE = 65536
#: Bytes that somebody may send before there is a kernel: ZeroMQ's greeting.
_HELD = 65536

#: Opens a channel to a port of the task.
OpenChannel = Callable[[str, int], Awaitable[tuple[Any, Any]]]


class KernelChannels:
    """Listens for a kernel's clients. `open` lets them through to ports of the task, `shut` no longer."""

    def __init__(self) -> None:
        self._folder = SocketFolder()
        self._servers: list[asyncio.Server] = []
        self._serving: set[asyncio.Task[None]] = set()
        self._ports: Mapping[str, int] = {}
        self._through: OpenChannel | None = None
        self._opened = asyncio.Event()

    def connection_info(self, key: bytes) -> dict[str, Any]:
        """Return what a client of the kernel has to know, as jupyter_client has it."""
        return {
            "transport": "ipc",
            "ip": str(self._folder.path / "kernel"),
            "key": key,
            "signature_scheme": "hmac-sha256",
            **{name: number for number, name in enumerate(PORTS, 1)},
        }

    async def listen(self) -> None:
        """Listen; also anew, after jupyter_client has removed the sockets' files, as it does at a restart."""
        for server in self._servers:
            server.close()
        self._servers = [
            await asyncio.start_unix_server(self._server_of(name), self._folder.path / f"kernel-{number}")
            for number, name in enumerate(PORTS, 1)
        ]

    def open(self, ports: Mapping[str, int], through: OpenChannel) -> None:
        """Let everybody through to these ports."""
        self._ports, self._through = ports, through
        self._opened.set()

    def shut(self) -> None:
        """Hold who comes from now on; what is open lives as long as both ends do."""
        self._opened.clear()

    async def close(self) -> None:
        """Close everything, and remove the sockets."""
        for server in self._servers:
            server.close()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        self._folder.close()

    def _server_of(self, name: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.get_running_loop().create_task(self._serve(name, reader, writer))
            self._serving.add(task)
            task.add_done_callback(self._serving.discard)

        return serve

    async def _serve(self, name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            begin = await self._held(reader)
            if begin is None or self._through is None:
                return
            there, to_there = await self._through(_THERE, self._ports[name])
            to_there.write(begin)
            await _relay(reader, writer, there, to_there)
        except (OSError, asyncssh.Error):
            # one of both has gone; ZeroMQ's clients connect again by themselves
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _held(self, reader: asyncio.StreamReader) -> bytes | None:
        """Wait until there is a kernel; return what was said meanwhile, None where its client has gone."""
        said = b""
        opened = asyncio.ensure_future(self._opened.wait())
        try:
            while not self._opened.is_set():
                reading = asyncio.ensure_future(reader.read(_PIECE))
                try:
                    await asyncio.wait({opened, reading}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    if not reading.done():
                        # nothing is lost: what comes stays in the reader
                        reading.cancel()
                if reading.done() and not reading.cancelled():
                    piece = reading.result()
                    if not piece or len(said) > _HELD:
                        return None
                    said += piece
        finally:
            opened.cancel()
        return said


async def _relay(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there: Any, to_there: Any
) -> None:
    async def pass_on(source: Any, target: Any) -> None:
        while data := await source.read(_PIECE):
            target.write(data)
            await target.drain()

    ways = [
        asyncio.ensure_future(pass_on(reader, to_there)),
        asyncio.ensure_future(pass_on(there, writer)),
    ]
    try:
        # a ZeroMQ connection has no half that is closed: the end of one way is the end of both
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        to_there.close()
