from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_labextension.kernels.channels import PORTS, KernelChannels

ANSWER = b"answer to "


@pytest.fixture
async def task() -> AsyncIterator[asyncio.Server]:
    """Something that listens in a task, and answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(ANSWER + data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server
    server.close()


@pytest.fixture
async def channels() -> AsyncIterator[KernelChannels]:
    made = KernelChannels()
    await made.listen()
    yield made
    await made.close()


def ports(task: asyncio.Server) -> dict[str, int]:
    return dict.fromkeys(PORTS, int(task.sockets[0].getsockname()[1]))


def address(channels: KernelChannels, name: str = "shell_port") -> str:
    info = channels.connection_info(b"key")
    return f"{info['ip']}-{info[name]}"


async def test_who_comes_before_there_is_a_kernel_is_held_and_let_through_then(
    channels: KernelChannels, task: asyncio.Server
) -> None:
    reader, writer = await asyncio.open_unix_connection(address(channels))
    writer.write(b"early")
    await writer.drain()
    channels.open(ports(task), asyncio.open_connection)
    assert await reader.read(100) == ANSWER + b"early"
    writer.write(b"late")
    assert await reader.read(100) == ANSWER + b"late"
    writer.close()


async def test_who_leaves_before_there_is_a_kernel_is_forgotten(
    channels: KernelChannels, task: asyncio.Server
) -> None:
    reader, writer = await asyncio.open_unix_connection(address(channels))
    writer.write(b"no")
    writer.close()
    assert await reader.read() == b""
    channels.open(ports(task), asyncio.open_connection)
    assert task.sockets


async def test_when_shut_the_next_one_waits_for_the_next_kernel(
    channels: KernelChannels, task: asyncio.Server
) -> None:
    channels.open(ports(task), asyncio.open_connection)
    channels.shut()
    reader, writer = await asyncio.open_unix_connection(address(channels))
    writer.write(b"again")
    channels.open(ports(task), asyncio.open_connection)
    assert await reader.read(100) == ANSWER + b"again"
    writer.close()


async def test_a_kernel_that_does_not_listen_yet_closes_the_connection(channels: KernelChannels) -> None:
    async def refuse(_host: str, _port: int) -> tuple[object, object]:
        raise ConnectionRefusedError

    channels.open(dict.fromkeys(PORTS, 1), refuse)
    reader, writer = await asyncio.open_unix_connection(address(channels))
    assert await reader.read() == b""
    writer.close()


async def test_its_sockets_are_made_anew_after_they_were_removed(
    channels: KernelChannels, task: asyncio.Server
) -> None:
    for name in PORTS:
        Path(address(channels, name)).unlink()
    await channels.listen()
    channels.open(ports(task), asyncio.open_connection)
    reader, writer = await asyncio.open_unix_connection(address(channels, "hb_port"))
    writer.write(b"beat")
    assert await reader.read(100) == ANSWER + b"beat"
    writer.close()


async def test_only_this_account_can_come_to_them_and_they_go_in_the_end() -> None:
    channels = KernelChannels()
    await channels.listen()
    folder = Path(address(channels)).parent
    assert folder.stat().st_mode & 0o777 == 0o700
    await channels.close()
    assert not folder.exists()
