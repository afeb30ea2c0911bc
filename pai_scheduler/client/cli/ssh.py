"""`pai ssh` and `pai exec`: a shell or a command in a task, through the SSH gateway."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, aclosing
from functools import partial

import asyncssh

from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.client.ssh.process import Pty, Sink, StandardStreams, run
from pai_scheduler.client.ssh.task_lookup import TaskAddress, find_way, find_ways
from pai_scheduler.i18n import msg

from .session import NO_WAY, CliSession
from .tables import printable_lines
from .terminal import Escape, raw_terminal, read_pieces, resized, size, write_piece

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
