"""Ports of a task at ports of this machine, also after the gateway was restarted."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

import asyncssh

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.i18n import Message, msg

from .connection import RemoteError, SharedConnection, UnreachableGatewayError

#: The task's own machine, as it calls it; its server lets nobody go further than its job.
_THERE = "localhost"
_HERE = "127.0.0.1"
_PIECE = 65536
#: Seconds between two tries to open the way again.
_AGAIN_SECONDS = 1.0

#: Is told what goes wrong with one connection; the port stays.
Complain = Callable[[Message], None]


async def keep_open(shared: SharedConnection, complain: Complain) -> None:
    """Open the way, and again whenever it breaks: the gateway may be restarted. Never returns.

    Raises what `shared` does: RemoteError (the job has ended …), UnreachableGatewayError, UnreachableError
    where nobody answers the first time.
    """
    was_open = told = False
    while True:
        try:
            async with shared.use() as connection:
                if told:
                    complain(msg("The way to the task is open again."))
                was_open, told = True, False
                await connection.wait_closed()
        except (UnreachableGatewayError, UnreachableError):
            if not was_open:
                raise
            if not told:
                complain(msg("The way to the task broke; it is opened again as soon as the gateway answers."))
            told = True
        await asyncio.sleep(_AGAIN_SECONDS)


@asynccontextmanager
async def listening(
    shared: SharedConnection, local: int | None, remote: int, complain: Complain
) -> AsyncIterator[int]:
    """Forward a port of this machine's loopback address to a task's port; return its number.

    `local` None: the same number as there, or a free one where that is taken. RemoteError where a port that
    was asked for cannot be had.
    """
    forward = _Forward(shared, remote, complain)
    server = await _listen(forward.serve, local, remote)
    try:
        async with server:
            yield server.sockets[0].getsockname()[1]
    finally:
        await forward.close()


async def _listen(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], None], local: int | None, remote: int
) -> asyncio.Server:
    try:
        return await asyncio.start_server(serve, _HERE, remote if local is None else local)
    except OSError as error:
        if local is not None:
            # asyncio's own words have the address in them once more
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise RemoteError(
                msg("Port {port} of this machine cannot be had: {reason}.", port=local, reason=reason)
            ) from error
        # taken, or one that only root may have
        return await asyncio.start_server(serve, _HERE, 0)


class _Forward:
    def __init__(self, shared: SharedConnection, port: int, complain: Complain) -> None:
        self._shared, self._port, self._complain = shared, port, complain
        self._open: set[asyncio.Task[None]] = set()

    def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def close(self) -> None:
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._shared.use() as connection:
                there, to_there = await connection.open_connection(_THERE, self._port, encoding=None)
                await _relay(reader, writer, there, to_there)
        except asyncssh.ChannelOpenError as error:
            reason = error.reason.rstrip(".")
            self._complain(
                msg("Port {port} of the task cannot be reached: {reason}.", port=self._port, reason=reason)
            )
        except RemoteError as error:
            self._complain(error.message)
        except (OSError, asyncssh.Error):
            # one of the two has gone: the other one sees that too
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()


async def _relay(
    here: asyncio.StreamReader,
    to_here: asyncio.StreamWriter,
    there: asyncssh.SSHReader[bytes],
    to_there: asyncssh.SSHWriter[bytes],
) -> None:
    async def outwards() -> None:
        while data := await here.read(_PIECE):
            to_there.write(data)
            await to_there.drain()
        to_there.write_eof()

    async def inwards() -> None:
        while data := await there.read(_PIECE):
            to_here.write(data)
            await to_here.drain()
        to_here.write_eof()

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(outwards())
            group.create_task(inwards())
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        to_there.close()
