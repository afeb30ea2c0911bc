"""What scheduler and connection server send each other arrives whole, however large, in whatever pieces."""

from __future__ import annotations

import asyncio
import os
import socket

import pytest

from pai_scheduler.workers.protocol import (
    BrokenOff,
    PassedOn,
    break_off,
    ended_line,
    pass_on,
    read_ended,
    receive,
)


def channel() -> tuple[socket.socket, socket.socket]:
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)
    return ends


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
async def test_a_connection_arrives_with_all_that_is_to_be_known_of_it(size: int) -> None:
    ours, theirs = channel()
    client, server = socket.socketpair()
    about = {"head": "GET", "begun": os.urandom(size)}
    _, received = await asyncio.gather(pass_on(ours, 3, server, about), receive(theirs))
    assert isinstance(received, PassedOn)
    assert (received.number, received.about) == (3, about)
    server.close()
    received.connection.sendall(b"from the other process")
    assert client.recv(100) == b"from the other process"
    for end in (ours, theirs, client, received.connection):
        end.close()


async def test_messages_of_either_kind_arrive_in_their_order() -> None:
    ours, theirs = channel()
    client, server = socket.socketpair()
    await pass_on(ours, 1, server, "one")
    await break_off(ours, 1)
    await pass_on(ours, 2, server, None)
    received = [await receive(theirs) for _ in range(3)]
    assert [getattr(message, "number", None) for message in received] == [1, 1, 2]
    assert [type(message) for message in received] == [PassedOn, BrokenOff, PassedOn]
    for message in received:
        if isinstance(message, PassedOn):
            message.connection.close()
    for end in (ours, theirs, client, server):
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


async def test_a_connection_server_that_has_gone_is_noticed() -> None:
    ours, theirs = channel()
    client, server = socket.socketpair()
    theirs.close()
    with pytest.raises(OSError):  # noqa: PT011 - which one, depends on when
        await pass_on(ours, 1, server, b"x" * 10_000_000)
    for end in (ours, client, server):
        end.close()


def test_only_a_number_alone_says_that_a_connection_has_ended() -> None:
    line = ended_line(17)
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")
    assert read_ended(line) == 17
    assert read_ended(b'["Sent", {"size": 17}]\n') is None
