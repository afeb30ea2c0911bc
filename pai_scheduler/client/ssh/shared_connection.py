"""One SSH connection to a task for all who need one: opened when needed, opened anew after it broke."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import asyncssh

OpenConnection = Callable[[], Awaitable[asyncssh.SSHClientConnection]]


class SharedConnection:
    """Shares the connection that `open_connection` makes; closes it when unused for `idle` seconds."""

    def __init__(self, open_connection: OpenConnection, idle: float = 60.0) -> None:
        self._open = open_connection
        self._idle = idle
        self._turn = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._users = 0
        self._closing: asyncio.TimerHandle | None = None

    @property
    def unused(self) -> bool:
        """Return whether nobody uses it and nothing is open."""
        return self._users == 0 and (self._connection is None or self._connection.is_closed())

    @asynccontextmanager
    async def use(self) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """Keep the connection open for a while; whatever `open_connection` raises."""
        connection = await self.take()
        try:
            yield connection
        finally:
            self.give_back()

    async def take(self) -> asyncssh.SSHClientConnection:
        """Keep the connection open until it is given back; whatever `open_connection` raises."""
        self._users += 1
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        try:
            return await self._get()
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Need the connection no more; once for each `take`."""
        self._users -= 1
        if self._users == 0:
            self._closing = asyncio.get_running_loop().call_later(self._idle, self._close_now)

    async def close(self) -> None:
        """Close the connection, also where it is in use."""
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        connection = self._connection
        self._close_now()
        if connection is not None:
            await connection.wait_closed()

    async def _get(self) -> asyncssh.SSHClientConnection:
        async with self._turn:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._open()
            return self._connection

    def _close_now(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
