"""Runs a command or a shell in a task: what it reads and writes passes through, and how it ends is told."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import asyncssh

from pai_scheduler.i18n import msg

from .connection import RemoteError

#: Bytes that are passed on at a time.
_PIECE = 65536
#: What a shell adds to a signal's number to make an exit code of it.
_BY_SIGNAL = 128

#: Takes what was written; the next piece is read when it is done.
Sink = Callable[[bytes], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Pty:
    """A terminal to run on: its type ("xterm-256color"), its size, and tells of new sizes."""

    term: str
    columns: int
    rows: int
    resized: AsyncIterator[tuple[int, int]] | None = None


@dataclass(frozen=True, slots=True)
class StandardStreams:
    """Both ends here of what runs there. `stdin` None: there is nothing to read."""

    stdin: AsyncIterator[bytes] | None
    stdout: Sink
    stderr: Sink


async def run(
    connection: asyncssh.SSHClientConnection,
    command: str | None,
    ends: StandardStreams,
    *,
    pty: Pty | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a command line, or the login shell; return its exit code, or 128 and the signal's number.

    RemoteError where it cannot be started or the connection breaks. When this is cancelled the command gets
    an interrupt, as by a ^C.
    """
    try:
        process = await connection.create_process(
            command,
            encoding=None,
            env=dict(env or {}),
            term_type=pty.term if pty else None,
            term_size=(pty.columns, pty.rows) if pty else (),
            # a character of several bytes is one to the line that is being edited
            term_modes={asyncssh.PTY_IUTF8: 1} if pty else {},
        )
    except (OSError, asyncssh.Error) as error:
        raise _broken(error) from error
    helpers = [asyncio.ensure_future(_feed(process.stdin, ends.stdin))]
    if pty is not None and pty.resized is not None:
        helpers.append(asyncio.ensure_future(_resize(process, pty.resized)))
    try:
        await _both(_pass_on(process.stdout, ends.stdout), _pass_on(process.stderr, ends.stderr))
        await process.wait_closed()
    except asyncio.CancelledError:
        with suppress(OSError, asyncssh.Error):
            process.send_signal("INT")
        raise
    except (asyncssh.Error, ConnectionError) as error:
        # what this side writes to may break as well: that is not the connection's fault
        if isinstance(error, BrokenPipeError):
            raise
        raise _broken(error) from error
    finally:
        for helper in helpers:
            helper.cancel()
        await asyncio.gather(*helpers, return_exceptions=True)
        process.close()
    return _exit_code(process)


async def _both(one: Awaitable[None], other: Awaitable[None]) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for awaited in (one, other):
                group.create_task(_awaited(awaited))
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _awaited(awaited: Awaitable[None]) -> None:
    await awaited


async def _pass_on(reader: asyncssh.SSHReader[bytes], sink: Sink) -> None:
    while data := await reader.read(_PIECE):
        await sink(data)


async def _feed(writer: asyncssh.SSHWriter[bytes], source: AsyncIterator[bytes] | None) -> None:
    """Pass on what there is to read; a command that wants no more of it has its reasons."""
    with suppress(OSError, asyncssh.Error):
        if source is not None:
            async for data in source:
                writer.write(data)
                await writer.drain()
        writer.write_eof()


async def _resize(process: asyncssh.SSHClientProcess[bytes], sizes: AsyncIterator[tuple[int, int]]) -> None:
    async for columns, rows in sizes:
        process.change_terminal_size(columns, rows)


def _exit_code(process: asyncssh.SSHClientProcess[bytes]) -> int:
    if process.exit_signal is not None:
        number = getattr(signal, f"SIG{process.exit_signal[0]}", None)
        return _BY_SIGNAL + (number if isinstance(number, int) else 0)
    if process.exit_status is None:
        raise _broken(None)
    return process.exit_status


def _broken(error: Exception | None) -> RemoteError:
    if error is None or not str(error):
        return RemoteError(msg("The connection to the task broke off."))
    return RemoteError(msg("The connection to the task broke off: {reason}.", reason=str(error).rstrip(".")))
