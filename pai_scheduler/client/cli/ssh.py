"""`pai ssh`, `exec`, `port-forward` and `cp`: into tasks, through the SSH gateway."""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
import shlex
import shutil
import signal
import sys
import termios
import threading
import tty
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import asyncssh
from asyncssh import SFTPClient

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.client.ssh.connection import (
    RemoteError,
    SharedConnection,
    TaskAddress,
    connect,
    find_way,
    find_ways,
    is_task_name,
    why_nothing_runs,
)
from pai_scheduler.client.ssh.forward import keep_open, listening
from pai_scheduler.client.ssh.process import Pty, Sink, StandardStreams, run
from pai_scheduler.client.ssh.sftp import attributes, download, files_of, is_folder, upload
from pai_scheduler.client.storage.transfer import LocalFileError
from pai_scheduler.i18n import Message, msg

from .fs import name_of, tell_outcome, told_how_to_go_on
from .session import NO_WAY, CliSession, printable_lines, shown_progress

# This side of a command that runs elsewhere: the terminal or the files that `pai` was started with.

#: Bytes read at a time, and how many pieces may wait to be sent.
_PIECE, _WAITING = 65536, 8
_FALLBACK_SIZE = (80, 24)


async def read_pieces(descriptor: int) -> AsyncGenerator[bytes, None]:
    """Return what a descriptor has as it comes, until its end: a terminal, a pipe or a file.

    A thread reads, which may be left waiting for the keyboard when nobody wants any more.
    """
    loop = asyncio.get_running_loop()
    pieces: asyncio.Queue[bytes] = asyncio.Queue()
    room = threading.Semaphore(_WAITING)

    def read() -> None:
        data = b" "
        while data:
            room.acquire()
            try:
                data = os.read(descriptor, _PIECE)
            except OSError:
                data = b""
            try:
                loop.call_soon_threadsafe(pieces.put_nowait, data)
            except RuntimeError:
                # the loop is closed: nobody wants it
                return

    threading.Thread(target=read, name="pai-stdin", daemon=True).start()
    while piece := await pieces.get():
        yield piece
        room.release()


async def write_piece(descriptor: int, data: bytes) -> None:
    """Write everything; others run on while its reader is slow. OSError where nobody does."""
    await asyncio.to_thread(_write, descriptor, data)


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def size() -> tuple[int, int]:
    """Return columns and rows of this terminal."""
    columns, rows = shutil.get_terminal_size(_FALLBACK_SIZE)
    return columns, rows


async def resized() -> AsyncGenerator[tuple[int, int], None]:
    """Return the size each time the terminal's window has another one."""
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            # not shutil's: it would believe $COLUMNS, which stays as it was
            found = os.get_terminal_size(sys.stdin.fileno())
            yield found.columns, found.lines
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


@contextmanager
def raw_terminal(descriptor: int) -> Iterator[None]:
    """Pass every key on as it is, ^C too; afterwards the terminal is as before, also when we are ended."""
    before = termios.tcgetattr(descriptor)
    loop, task = asyncio.get_running_loop(), cast("asyncio.Task[object]", asyncio.current_task())
    ends = (signal.SIGTERM, signal.SIGHUP)
    # what was typed already is not lost
    tty.setraw(descriptor, termios.TCSADRAIN)
    try:
        for number in ends:
            loop.add_signal_handler(number, task.cancel)
        yield
    finally:
        for number in ends:
            loop.remove_signal_handler(number)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


class Escape:
    """Finds `~.` at the begin of a line, which cuts a connection that no longer answers; `~~` is one `~`."""

    def __init__(self) -> None:
        self._line_begins, self._tilde = True, False

    def filter(self, data: bytes) -> bytes | None:
        """Return what is to be sent of some keys; None: the connection is to be cut."""
        sent = bytearray()
        for byte in data:
            if self._tilde:
                self._tilde = False
                if byte == ord("."):
                    return None
                sent += b"~" if byte == ord("~") else bytes([ord("~"), byte])
            elif self._line_begins and byte == ord("~"):
                self._tilde = True
                continue
            else:
                sent.append(byte)
            self._line_begins = byte in b"\r\n"
        return bytes(sent)


# `pai ssh` and `pai exec`: a shell or a command in a task, through the SSH gateway.

_STDIN, _STDOUT, _STDERR = 0, 1, 2
#: Connections that are opened at the same time.
_OPENING = 8
#: Characters of a line after which it is told in pieces.
_LONGEST_LINE = 65536


async def ssh(
    session: CliSession, *, name: str, user: str | None, task: str | None, tty: bool, words: Sequence[str]
) -> int:
    """Open a shell, or run a command line."""
    way = await find_way(session.client, await session.owner(user), name, task)
    command = " ".join(words) if words else None
    async with way.opened(session.client.token) as connection:
        return await _run_here(connection, command, tty=tty or (command is None and os.isatty(_STDIN)))


async def exec_(
    session: CliSession,
    *,
    name: str,
    user: str | None,
    task: str | None,
    tty: bool,
    everywhere: bool,
    words: Sequence[str],
) -> int:
    """Run a program with its arguments as they are."""
    owner, command = await session.owner(user), shlex.join(words)
    if everywhere:
        ways = await find_ways(session.client, owner, name, [task] if task else None)
        return await _run_everywhere(session, ways, command)
    way = await find_way(session.client, owner, name, task)
    async with way.opened(session.client.token) as connection:
        return await _run_here(connection, command, tty=tty)


async def _run_here(connection: asyncssh.SSHClientConnection, command: str | None, *, tty: bool) -> int:
    sys.stdout.flush()
    env = _language()
    if not tty:
        async with aclosing(read_pieces(_STDIN)) as keys:
            return await run(connection, command, StandardStreams(keys, _to(_STDOUT), _to(_STDERR)), env=env)
    columns, rows = size()
    term = os.environ.get("TERM", "dumb")
    if not os.isatty(_STDIN):
        async with aclosing(read_pieces(_STDIN)) as keys:
            ends = StandardStreams(keys, _to(_STDOUT), _to(_STDERR))
            return await run(connection, command, ends, pty=Pty(term, columns, rows), env=env)
    async with aclosing(resized()) as sizes, aclosing(_keys(connection)) as keys:
        with raw_terminal(_STDIN):
            ends = StandardStreams(keys, _to(_STDOUT), _to(_STDERR))
            return await run(connection, command, ends, pty=Pty(term, columns, rows, sizes), env=env)


async def _run_everywhere(session: CliSession, ways: Sequence[TaskAddress], command: str) -> int:
    """Run a command in every task at once; return the worst of the exit codes."""
    longest = max(len(way.task) for way in ways)
    opening = asyncio.Semaphore(_OPENING)

    async def one(way: TaskAddress) -> int:
        out, err = (Lines(f"{way.task:<{longest}}  ", descriptor) for descriptor in (_STDOUT, _STDERR))
        try:
            async with AsyncExitStack() as stack:
                async with opening:
                    connection = await stack.enter_async_context(way.opened(session.client.token))
                return await run(
                    connection, command, StandardStreams(None, out.write, err.write), env=_language()
                )
        except RemoteError as error:
            await err.write(f"{printable_lines(error.message.in_locale(session.locale))}\n".encode())
            return NO_WAY
        finally:
            await out.close()
            await err.close()

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(way)) for way in ways]
    failed = {way.task: code for way, task in zip(ways, tasks, strict=True) if (code := task.result())}
    if failed and len(ways) > 1:
        text = msg(
            "Not 0 was the exit code in {tasks}.",
            tasks=", ".join(f"{name} ({code})" for name, code in failed.items()),
        )
        print(text.in_locale(session.locale), file=sys.stderr)
    return max(failed.values(), default=0)


class Lines:
    """Writes whole lines to a descriptor, each with its task's name before it: those of several don't mix."""

    def __init__(self, prefix: str, descriptor: int) -> None:
        self._prefix, self._descriptor = prefix.encode(), descriptor
        self._begun = b""

    async def write(self, data: bytes) -> None:
        """Write the lines that are whole, keep the rest."""
        *lines, self._begun = (self._begun + data).split(b"\n")
        if len(self._begun) > _LONGEST_LINE:
            lines.append(self._begun)
            self._begun = b""
        if lines:
            await write_piece(self._descriptor, b"".join(self._prefix + line + b"\n" for line in lines))

    async def close(self) -> None:
        """Write a last line that has no end."""
        if self._begun:
            await self.write(b"\n")


async def _keys(connection: asyncssh.SSHClientConnection) -> AsyncGenerator[bytes, None]:
    escape = Escape()
    async with aclosing(read_pieces(_STDIN)) as pieces:
        async for piece in pieces:
            sent = escape.filter(piece)
            if sent is None:
                connection.abort()
                return
            if sent:
                yield sent


def _to(descriptor: int) -> Sink:
    return partial(write_piece, descriptor)


def _language() -> dict[str, str]:
    """Return the variables that ssh sends too: in which language programs speak."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in ("LANG", "LANGUAGE") or name.startswith("LC_")
    }


# `pai port-forward`: ports of a task at ports of this machine.

_LAST_PORT = 65535
#: Seconds between two tries to hear of the job.
_AGAIN_SECONDS = 1.0
_WRITTEN = re.compile(r"(?:(?P<local>[0-9]{1,5}):)?(?P<remote>[^:\s]+)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A port as somebody wrote it. `local` None: the same number as there, or a free one."""

    local: int | None
    remote: str


async def port_forward(
    session: CliSession, *, name: str, user: str | None, task: str | None, ports: Sequence[str]
) -> int:
    """Forward ports until it is ended (^C), or the task has."""
    owner = await session.owner(user)
    if task is not None and not is_task_name(task):
        # there is but one task: it need not be named
        ports = [task, *ports]
        task = None
    way = await find_way(session.client, owner, name, task)
    numbers = await _ports_of(session, way)
    wanted = [_read(port) for port in ports]
    remotes = [_number(each.remote, numbers) for each in wanted]

    async def open_again() -> asyncssh.SSHClientConnection:
        # another attempt of the job may run by now, or none
        now = await find_way(session.client, owner, name, way.task)
        return await connect(now.gateway, str(now.login), session.client.token)

    def complain(message: Message) -> None:
        print(printable_lines(message.in_locale(session.locale)), file=sys.stderr, flush=True)

    async with AsyncExitStack() as stack:
        shared = SharedConnection(open_again)
        stack.push_async_callback(shared.close)
        async with shared.use():
            # what is wrong with the way is said before any port is
            pass
        for each, remote in zip(wanted, remotes, strict=True):
            local = await stack.enter_async_context(listening(shared, each.local, remote, complain))
            shown = each.remote if each.remote == str(remote) else f"{remote} ({each.remote})"
            session.say("127.0.0.1:{local} is port {port} of {task}.", local=local, port=shown, task=way.task)
        sys.stdout.flush()
        await _first_of(keep_open(shared, complain), _until_ended(session.client, owner, name))
    return 0


async def _first_of(*endless: Coroutine[Any, Any, None]) -> None:
    """Wait for the first that ends, by an error."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in endless:
                group.create_task(each)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _until_ended(client: Client, user: str, job: str) -> None:
    """Wait for the end of the job, of which a connection that nobody uses hears nothing; RemoteError then."""
    seen = 0
    while True:
        try:
            async for event in client.events(user, job, after=seen):
                seen = event["id"]
            raise RemoteError(await why_nothing_runs(client, user, job))
        except UnreachableError:
            # it is being restarted: what runs goes on
            await asyncio.sleep(_AGAIN_SECONDS)


def _read(written: str) -> Wanted:
    match = _WRITTEN.fullmatch(written)
    if match is None or int(match["local"] or 0) > _LAST_PORT:
        raise RemoteError(msg("{port} is no port: write 8888, http, or 8080:http.", port=written))
    return Wanted(int(match["local"]) if match["local"] else None, match["remote"])


def _number(written: str, labels: Mapping[str, Sequence[int]]) -> int:
    """Return the number of a task's port: as written, of a label, or of its second one (`label.1`)."""
    if written.isascii() and written.isdigit() and 0 < int(written) <= _LAST_PORT:
        return int(written)
    label, _, place = written.rpartition(".")
    if written in labels:
        return labels[written][0]
    if label in labels and place.isascii() and place.isdigit() and int(place) < len(labels[label]):
        return labels[label][int(place)]
    raise RemoteError(
        msg(
            "The task has no port {port}. Its ports have the labels {labels}.",
            port=written,
            labels=", ".join(labels) or "-",
        )
    )


async def _ports_of(session: CliSession, way: TaskAddress) -> Mapping[str, Sequence[int]]:
    detail = await session.client.job(way.login.user, way.login.job)
    role, _, index = way.task.rpartition("-")
    for task in detail["taskRoles"][role]["taskStatuses"]:
        if task["taskIndex"] == int(index):
            ports = task["containerPorts"].items()
            return {
                label: [int(number) for number in numbers.split(",")] for label, numbers in ports if numbers
            }
    return {}


# `pai cp`: files and folders into tasks and out of them, with progress.

#: A job's name, with a task's if need be, before the first colon; `./a:b` is a file here.
_REMOTE = re.compile(r"(?P<job>[A-Za-z0-9._~-]+)(/(?P<task>[A-Za-z0-9._~]+-[0-9]+))?:(?P<path>.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CopyEndpoint:
    """A path in a task; empty: where its sessions begin."""

    job: str
    task: str | None
    path: str


def place_of(written: str) -> CopyEndpoint | None:
    """Read `NAME:path` or `NAME/role-0:path`; None: it is a file or folder here."""
    match = _REMOTE.fullmatch(written)
    return CopyEndpoint(match["job"], match["task"], match["path"]) if match else None


async def cp(session: CliSession, *, paths: Sequence[str], user: str | None, recursive: bool) -> int:
    """Copy."""
    *sources, target = paths
    if not sources:
        raise RemoteError(msg("Say where to copy it: pai cp NAME:file . or pai cp file NAME:"))
    there, whence = place_of(target), [place_of(source) for source in sources]
    if there is not None and not any(whence):
        return await _up(session, [Path(source) for source in sources], there, user, recursive=recursive)
    jobs = {(place.job, place.task) for place in whence if place}
    if there is not None or not all(whence) or len(jobs) > 1:
        raise RemoteError(
            msg("Either what is copied or where it goes is in a task, and in one task only: NAME:path.")
        )
    return await _down(session, [place for place in whence if place], target, user, recursive=recursive)


async def _up(
    session: CliSession, sources: Sequence[Path], target: CopyEndpoint, user: str | None, *, recursive: bool
) -> int:
    way = await find_way(session.client, await session.owner(user), target.job, target.task)
    code = 0
    async with way.opened(session.client.token) as connection, files_of(connection) as files:
        for source in sources:
            name, folder = await asyncio.to_thread(name_of, source), await asyncio.to_thread(source.is_dir)
            if folder and not recursive:
                raise LocalFileError(msg("{path} is a folder: add -r.", path=str(source)))
            remote = await _place_there(files, target.path, name, folder=folder, several=len(sources) > 1)
            with told_how_to_go_on(session), shown_progress(session.locale) as tell:
                outcome = await upload(files, source, remote, tell)
            code = max(code, tell_outcome(session, outcome, str(source), f"{target.job}/{way.task}:{remote}"))
    return code


async def _down(
    session: CliSession, sources: Sequence[CopyEndpoint], target: str, user: str | None, *, recursive: bool
) -> int:
    way = await find_way(session.client, await session.owner(user), sources[0].job, sources[0].task)
    code, local = 0, Path(target)
    async with way.opened(session.client.token) as connection, files_of(connection) as files:
        for source in sources:
            found = await attributes(files, source.path or ".")
            folder = found is not None and is_folder(found)
            if folder and not recursive:
                raise RemoteError(msg("{path} is a folder: add -r.", path=source.path or "."))
            name = await _name_there(files, source.path)
            into = len(sources) > 1 or target.endswith("/") or await asyncio.to_thread(local.is_dir)
            # of a folder, one that is called so already is meant itself, so that the same command goes on
            itself = folder and await asyncio.to_thread(name_of, local) == name
            place = local / name if into and not itself else local
            with told_how_to_go_on(session), shown_progress(session.locale) as tell:
                outcome = await download(files, source.path or ".", place, tell)
            whence = f"{source.job}/{way.task}:{source.path}"
            code = max(code, tell_outcome(session, outcome, whence, str(place.absolute())))
    return code


async def _name_there(files: SFTPClient, path: str) -> str:
    """Return what a path is called: as it is written, for a task might say that it is called otherwise."""
    name = posixpath.basename(posixpath.normpath(path))
    if name not in ("", ".", ".."):
        return name
    whole = str(await files.realpath(path or "."))
    return posixpath.basename(posixpath.normpath(whole))


async def _place_there(files: SFTPClient, written: str, name: str, *, folder: bool, several: bool) -> str:
    """Find what a file or folder will be called in the task: as written, or in that where it is a folder."""
    if not written or written in (".", "./"):
        return name
    into = several or written.endswith("/")
    if not into:
        there = await attributes(files, written)
        into = there is not None and is_folder(there)
    itself = folder and posixpath.basename(written.rstrip("/")) == name
    return posixpath.join(written, name) if into and not itself else written
