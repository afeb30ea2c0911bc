"""A connection that was passed on: first what the scheduler has read of it, then what the client sends."""

from __future__ import annotations

import socket

from tornado.iostream import IOStream

from pai_scheduler.api.webhdfs.handover import Transfer


class PassedOnStream(IOStream):
    """Reads the beginning of `transfer` again, then from its socket. `number`: as the scheduler calls it."""

    def __init__(self, number: int, connection: socket.socket, transfer: Transfer, chunk: int) -> None:
        self.number, self.transfer = number, transfer
        self._beginning = memoryview(transfer.head + transfer.begun)
        super().__init__(connection, read_chunk_size=chunk)

    def read_from_fd(self, buf: bytearray | memoryview) -> int | None:
        """Read into `buf`; return how many bytes, None where there are none yet."""
        if self._beginning:
            part = self._beginning[: len(buf)]
            buf[: len(part)] = part
            self._beginning = self._beginning[len(part) :]
            return len(part)
        return super().read_from_fd(buf)
