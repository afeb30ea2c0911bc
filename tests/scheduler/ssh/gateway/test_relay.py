"""Channels passed on: as much as the far end takes and no more, through new keys, and with those who lie."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from pai_scheduler.ssh.gateway.protocol import GatewaySettings
from pai_scheduler.ssh.gateway.relay import ChannelEnd, PeerConnection
from pai_scheduler.ssh.gateway.supervisor import GatewaySupervisor
from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import KEYS, StandIn, TaskServer


def memory(pid: int) -> int:
    """Return the most memory that a process has had, in bytes."""
    return int(Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]) * 1024


def read_so_far(pid: int) -> int:
    return int(Path(f"/proc/{pid}/io").read_text().split("rchar: ")[1].split()[0])


async def quiet(pid: int) -> None:
    """Wait until a process reads no more."""
    async with asyncio.timeout(60):
        before = -1
        while (now := read_so_far(pid)) != before:
            before = now
            await asyncio.sleep(0.5)


async def test_nothing_piles_up_for_a_client_that_takes_nothing_whatever_it_promised(gate: Gate) -> None:
    size = 300_000_000
    [pid] = gate.supervisor.process_ids
    async with gate.connect() as connection:
        await connection.run("true")
        before = memory(pid)
        # PuTTY promises to take two gigabytes
        process = await connection.create_process(
            f"head -c {size} /dev/zero", encoding=None, window=2**31 - 1, max_pktsize=32768
        )
        transport: Any = connection._transport
        transport.pause_reading()
        await quiet(pid)
        assert memory(pid) - before < 64_000_000
        transport.resume_reading()
        taken = 0
        while data := await process.stdout.read(1_000_000):
            taken += len(data)
        assert taken == size
    assert memory(pid) - before < 100_000_000


async def test_nothing_piles_up_for_a_task_that_takes_nothing(gate: Gate) -> None:
    [pid] = gate.supervisor.process_ids
    sending = await asyncio.create_subprocess_exec(
        *gate.ssh("sleep 1000"), stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    assert sending.stdin is not None
    try:
        before = memory(pid)
        sending.stdin.write(b"x" * 200_000_000)
        await quiet(pid)
        assert memory(pid) - before < 64_000_000
    finally:
        sending.kill()
        await sending.wait()


async def test_a_stuck_channel_does_not_hold_the_others_of_its_connection(gate: Gate) -> None:
    async with gate.connect() as connection:
        stuck = await connection.create_process("yes", encoding=None)
        stuck.channel.pause_reading()
        for _ in range(20):
            assert (await connection.run("echo here", timeout=30)).stdout == "here\n"
        stuck.channel.abort()


async def test_data_passes_both_ways_through_many_new_keys(gate: Gate) -> None:
    sent = os.urandom(20_000_000)
    command = gate.ssh("cat")
    command[1:1] = ["-oRekeyLimit=1M"]
    ran = await run(*command, send=sent)
    assert ran.code == 0, ran.error
    assert ran.out == sent


async def test_a_client_that_is_silent_for_too_long_is_gone_and_what_it_ran_too(
    service: StandIn, tmp_path: Path
) -> None:
    gate = Gate(service, tmp_path)
    settings = GatewaySettings(
        service.url, service.token, KEYS.gateway_host().private.decode(), keepalive=0.3
    )
    gate.supervisor = GatewaySupervisor(settings, "127.0.0.1", 0, processes=1)
    await gate.start()
    client = await asyncio.create_subprocess_exec(
        *gate.ssh("echo $$; exec cat"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    assert client.stdout is not None
    try:
        in_task = int(await client.stdout.readline())
        # to the others it looks like a cable that was pulled
        client.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(60):
            while Path(f"/proc/{in_task}").exists():  # noqa: ASYNC110 - the kernel tells nobody
                await asyncio.sleep(0.02)
    finally:
        client.kill()
        await client.wait()
        await gate.close()


async def test_a_refusal_is_passed_on_with_its_reason(gate: Gate) -> None:
    async with gate.connect() as connection:
        with pytest.raises(asyncssh.ChannelOpenError) as refused:
            await connection.open_connection("127.0.0.1", free_port())
        assert refused.value.code == asyncssh.OPEN_CONNECT_FAILED
        assert "Connection refused" in refused.value.reason
        assert (await connection.run("echo here")).stdout == "here\n"


async def test_a_lost_connection_to_the_task_ends_what_was_forwarded_over_it(
    gate: Gate, service: StandIn, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ending = TaskServer(tmp_path_factory.mktemp("ending"))
    try:
        service.target = ending.target()
        async with gate.connect() as connection:
            reader, writer = await connection.open_connection("127.0.0.1", service.port)
            writer.write(b"GET")
            ending.end()
            assert await asyncio.wait_for(reader.read(), 30) == b""
    finally:
        ending.end()


class Channel:
    """A channel that remembers what was done to it; for peers that take nothing, or go at the wrong time."""

    def __init__(self) -> None:
        self.done: list[object] = []
        self.held = False

    def write(self, data: bytes, datatype: asyncssh.DataType = None) -> None:
        self.done.append(data if datatype is None else (data, datatype))

    def write_eof(self) -> None:
        self.done.append("eof")

    def close(self) -> None:
        self.done.append("close")

    def abort(self) -> None:
        self.done.append("abort")

    def pause_reading(self) -> None:
        self.held = True

    def resume_reading(self) -> None:
        self.held = False

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        del high, low


Made = tuple[ChannelEnd, Channel]


@pytest.fixture
async def ends() -> AsyncIterator[tuple[Made, Made]]:
    """Return both ends of a channel, not yet joined, and their channels."""
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            near, far = socket.socketpair()
            stack.enter_context(near)
            stack.enter_context(far)
            end, channel = ChannelEnd(PeerConnection(near)), Channel()
            end.connection_made(channel)
            made.append((end, channel))
        yield made[0], made[1]


def test_what_comes_before_the_other_end_is_ready_is_kept_and_passed_on_in_order(
    ends: tuple[Made, Made],
) -> None:
    (client, from_client), (task, to_task) = ends
    client.session_started()
    client.data_received(b"one", None)
    assert from_client.held
    client.data_received(b"two", None)
    assert client.eof_received()
    task.join(client)
    assert to_task.done == []
    task.session_started()
    assert to_task.done == [b"one", b"two", "eof"]
    assert not from_client.held
    task.data_received(b"wrong", asyncssh.EXTENDED_DATA_STDERR)
    assert from_client.done == [(b"wrong", asyncssh.EXTENDED_DATA_STDERR)]


def test_data_sent_before_the_other_end_was_ready_arrives_after_the_sender_has_left(
    ends: tuple[Made, Made],
) -> None:
    (client, _), (task, to_task) = ends
    client.session_started()
    client.data_received(b"last", None)
    client.connection_lost(None)
    task.join(client)
    task.session_started()
    assert to_task.done == [b"last", "close"]


def test_while_one_end_takes_nothing_the_other_is_not_read(ends: tuple[Made, Made]) -> None:
    (client, from_client), (task, from_task) = ends
    client.session_started()
    task.session_started()
    task.join(client)
    client.pause_writing()
    assert (from_task.held, from_client.held) == (True, False)
    client.resume_writing()
    assert not from_task.held
    task.connection_lost(None)
    assert from_client.done == ["close"]


def test_an_end_that_is_closed_counts_no_more_and_many_have_smaller_windows() -> None:
    near, far = socket.socketpair()
    with near, far:
        line = asyncio.run(_line(near))
        first = line.window
        ends = [ChannelEnd(line) for _ in range(100)]
        assert line.window < first
        for end in ends:
            end.connection_lost(None)
        assert not line.ends
        assert line.window == first


async def _line(sock: socket.socket) -> PeerConnection:
    return PeerConnection(sock)
