"""A kernel's five channels on this side: sockets that only this account can open, forwarded into the task.

They are there at once, and hold what connects to them until the kernel runs; so who talks to a kernel need
not know whether it waits for a GPU, was started again, or is behind a connection that broke and is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import asyncssh

from .socket_folder import SocketFolder

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
