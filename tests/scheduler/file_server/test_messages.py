"""What scheduler and file server send each other arrives whole, however large, in whatever pieces."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from pai_scheduler.api.webhdfs.handover import Transfer
from pai_scheduler.file_server.messages import (
    Answered,
    Ended,
    Report,
    Sent,
    Settings,
    pass_on,
    read_report,
    receive,
    report_line,
)
from pai_scheduler.job.messages import msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.security.principal import Principal

ALICE = Principal("alice", groups=("vision",))


def channel() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    return ends


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
async def test_a_connection_arrives_with_all_that_was_read_of_it(size: int) -> None:
    ours, theirs = channel()
    client, server = socket.socketpair()
    transfer = Transfer(b"GET / HTTP/1.1\r\n\r\n", os.urandom(size), ("127.0.0.1", 7), ALICE)
    _, received = await asyncio.gather(pass_on(ours, 3, server, transfer), receive(theirs))
    assert received is not None
    number, connection, same = received
    assert (number, same) == (3, transfer)
    server.close()
    connection.sendall(b"from the file server")
    assert client.recv(100) == b"from the file server"
    for end in (ours, theirs, client, connection):
        end.close()


async def test_why_somebody_is_refused_arrives_in_every_language() -> None:
    ours, theirs = channel()
    client, server = socket.socketpair()
    message = msg("This ticket is for something else, or has expired. Ask for the file again.")
    transfer = Transfer(b"", b"", ("", 0), (403, "InvalidToken", message))
    _, received = await asyncio.gather(pass_on(ours, 1, server, transfer), receive(theirs))
    assert received is not None
    admitted = received[2].admitted
    assert isinstance(admitted, tuple)
    assert RequestError(*admitted).message.in_locale("zh_CN") == message.in_locale("zh_CN")
    for end in (ours, theirs, client, server, received[1]):
        end.close()


@pytest.mark.parametrize("begun", [b"", b"\0\0\0\0\0\0\1\0", b"\0\0\0\0\0\0\1\0half a message"])
async def test_a_scheduler_that_has_gone_is_noticed_also_in_the_middle_of_a_message(begun: bytes) -> None:
    ours, theirs = channel()
    client, server = socket.socketpair()
    if begun:
        socket.send_fds(ours, [begun], [server.fileno()])
    ours.close()
    assert await receive(theirs) is None
    for end in (theirs, client, server):
        end.close()


async def test_a_file_server_that_has_gone_is_noticed() -> None:
    ours, theirs = channel()
    client, server = socket.socketpair()
    theirs.close()
    with pytest.raises(OSError):  # noqa: PT011 - which one, depends on when
        await pass_on(ours, 1, server, Transfer(b"", b"x" * 10_000_000, ("", 0), ALICE))
    for end in (ours, client, server):
        end.close()


@pytest.mark.parametrize("report", [Sent(5), Answered(201, None), Answered(403, 0.25), Ended(7)])
def test_a_report_is_a_line_that_says_the_same(report: Report) -> None:
    line = report_line(report)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert read_report(line) == report


def test_settings_are_a_line_that_says_the_same() -> None:
    settings = Settings(
        "http://name:9870", "/data/storage", "pai", True, "/services/pai/", True, "debug", "json"
    )
    assert Settings.from_line(settings.to_line()) == settings
