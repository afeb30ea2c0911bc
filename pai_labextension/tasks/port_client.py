"""HTTP to a port of a task: aiohttp's client, whose connections are channels of one SSH connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import aiohttp
import asyncssh
from aiohttp.client_proto import ResponseHandler
from asyncssh import OPEN_CONNECT_FAILED

from pai_scheduler.client.ssh.connection import SharedConnection

#: A task's own machine, as it calls it.
_THERE = "localhost"
#: Bytes of a line of a header that an application may write.
_HEADER_BYTES = 64 * 1024


def http_session(shared: SharedConnection, address: str) -> aiohttp.ClientSession:
    """Make a client for the task at the end of `shared`; its URLs name `localhost`.

    An application that does not listen there is looked for at the task's `address`. Requests raise
    asyncssh.ChannelOpenError where nobody listens, and whatever the connection raises when it is opened.
    """
    return aiohttp.ClientSession(
        connector=_Connector(shared, [_THERE, *([address] if address else [])]),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        # an application may think, or say nothing, for as long as it likes
        timeout=aiohttp.ClientTimeout(total=None),
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
    )


class _Connector(aiohttp.BaseConnector):
    """Opens channels where aiohttp's own connectors open sockets, in the same method."""

    def __init__(self, shared: SharedConnection, hosts: list[str]) -> None:
        # what a browser opens is bounded by the browser
        super().__init__(limit=0)
        self._shared, self._hosts = shared, hosts

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],  # noqa: ARG002 - aiohttp asks for it
        timeout: aiohttp.ClientTimeout,  # noqa: ARG002, ASYNC109
    ) -> ResponseHandler:
        port = req.url.port or 0
        try:
            return await self._opened(port)
        except _BrokenError:
            # it broke while nobody used it, which is noticed only now
            return await self._opened(port)

    async def _opened(self, port: int) -> ResponseHandler:
        connection = await self._shared.take()
        try:
            for host in self._hosts:
                try:
                    make = partial(_Channel, self._shared.give_back)
                    _, channel = await connection.create_connection(make, host, port)
                    return cast(_Channel, channel).protocol
                except asyncssh.ChannelOpenError as error:
                    refused = error
                    if error.code != OPEN_CONNECT_FAILED:
                        break
            if connection.is_closed():
                raise _BrokenError(refused.code, refused.reason)
            raise refused
        except BaseException:
            self._shared.give_back()
            raise


class _BrokenError(asyncssh.ChannelOpenError):
    """The connection is gone in which a channel was to be opened."""


class _Channel(asyncssh.SSHTCPSession[bytes]):
    """Is a transport to aiohttp's protocol, and tells when it is closed."""

    def __init__(self, closed: Callable[[], None]) -> None:
        self.protocol = ResponseHandler(asyncio.get_running_loop())
        self._closed = closed
        self._channel: asyncssh.SSHTCPChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        """Take the channel, which has all that a transport has."""
        self._channel = chan
        self.protocol.connection_made(cast(asyncio.Transport, chan))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002
        """Hand on what came."""
        self.protocol.data_received(data)

    def eof_received(self) -> bool:
        """Nothing more comes: an HTTP connection is at its end then, as if a socket had been closed."""
        if self._channel is not None:
            self._channel.close()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on the end."""
        self.protocol.connection_lost(exc)
        self._closed()

    def pause_writing(self) -> None:
        """Hand on that the task does not keep up."""
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that it does again."""
        self.protocol.resume_writing()
