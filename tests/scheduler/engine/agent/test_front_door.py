"""Connections of containers that wait until they are taken, or are given up."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from pai_scheduler.engine.agent import host as front_door_module
from pai_scheduler.engine.agent.host import FrontDoor
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.protocol import Caller
from pai_scheduler.testing.ports import free_ports

#: Another address of loopback, in place of a bridge's.
BRIDGE = "127.0.0.2"


class Door:
    """A front door at two ports, and who was told of."""

    def __init__(self) -> None:
        self.ports = free_ports(2)
        self.callers: asyncio.Queue[Caller] = asyncio.Queue()
        self.door = FrontDoor(BRIDGE, self.ports, self.callers.put_nowait)

    async def call(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect as a container, and say something at once."""
        reader, writer = await asyncio.open_connection(BRIDGE, port)
        writer.write(b"hello")
        return reader, writer

    async def told(self) -> Caller:
        async with asyncio.timeout(30):
            return await self.callers.get()


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    door = Door()
    await door.door.open()
    yield door
    await door.door.close()


async def read(connection: socket.socket) -> bytes:
    connection.setblocking(False)
    async with asyncio.timeout(30):
        return await asyncio.get_running_loop().sock_recv(connection, 100)


async def test_who_waits_is_told_with_their_port_and_taken_once_with_all_that_they_said(door: Door) -> None:
    containers = [await door.call(port) for port in door.ports]
    callers = sorted(
        [await door.told() for _ in containers], key=lambda caller: door.ports.index(caller.port)
    )
    assert [caller.port for caller in callers] == door.ports
    assert len({caller.name for caller in callers}) == 2
    for caller, (reader, writer) in zip(callers, containers, strict=True):
        taken = door.door.take(caller.name)
        assert taken is not None
        assert door.door.take(caller.name) is None
        assert await read(taken) == b"hello"
        taken.send(b"welcome")
        assert await reader.readexactly(7) == b"welcome"
        taken.close()
        writer.close()
    assert door.door.take("0" * 32) is None


async def test_who_is_not_taken_in_time_is_given_up(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_door_module, "_WAIT_SECONDS", 0.05)
    reader, writer = await door.call(door.ports[0])
    caller = await door.told()
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionResetError):
            await reader.read()
    assert door.door.take(caller.name) is None
    writer.close()


async def test_who_was_taken_is_not_given_up(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_door_module, "_WAIT_SECONDS", 0.05)
    first, second = await door.call(door.ports[0]), await door.call(door.ports[0])
    taken = door.door.take((await door.told()).name)
    assert taken is not None
    await door.told()
    waits = next(
        each for each in (first, second) if each[1].get_extra_info("sockname") != taken.getpeername()
    )
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionResetError):
            await waits[0].read()
    assert await read(taken) == b"hello"
    taken.close()
    for _, writer in (first, second):
        writer.close()


async def test_more_than_can_wait_are_refused(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_door_module, "_MOST_WAITING", 1)
    first = await door.call(door.ports[0])
    caller = await door.told()
    second = await door.call(door.ports[0])
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionResetError):
            await second[0].read()
    assert door.door.take(caller.name) is not None
    third = await door.call(door.ports[0])
    assert await door.told()
    for _, writer in (first, second, third):
        writer.close()


async def test_when_it_is_closed_nobody_waits_and_its_ports_are_free_at_once(door: Door) -> None:
    reader, writer = await door.call(door.ports[0])
    caller = await door.told()
    await door.door.close()
    async with asyncio.timeout(30):
        with pytest.raises(ConnectionResetError):
            await reader.read()
    assert door.door.take(caller.name) is None
    writer.close()
    again = FrontDoor(BRIDGE, door.ports, door.callers.put_nowait)
    await again.open()
    await again.close()


async def test_a_port_that_another_program_has_is_said_and_the_others_are_let_go() -> None:
    door = Door()
    with socket.create_server((BRIDGE, door.ports[1])):
        with pytest.raises(EngineError, match=f"cannot be let in at {BRIDGE}:{door.ports[1]}"):
            await door.door.open()
        socket.create_server((BRIDGE, door.ports[0])).close()
