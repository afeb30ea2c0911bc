"""A connection that was passed on is read from its beginning."""

from __future__ import annotations

import socket

import pytest

from pai_scheduler.api.webhdfs.handover import Transfer
from pai_scheduler.principal import Principal
from pai_scheduler.workers.file_server.server import PassedOnStream


@pytest.mark.parametrize("chunk", [1, 7, 65536])
async def test_what_the_scheduler_has_read_comes_before_what_the_client_sends(chunk: int) -> None:
    client, server = socket.socketpair()
    server.setblocking(False)
    transfer = Transfer(b"head\r\n\r\n", b"begun ", ("", 0), Principal("alice"))
    stream = PassedOnStream(1, server, transfer, chunk)
    assert await stream.read_until(b"\r\n\r\n") == b"head\r\n\r\n"
    client.sendall(b"and the rest")
    assert await stream.read_bytes(len(b"begun and the rest")) == b"begun and the rest"
    stream.close()
    client.close()
