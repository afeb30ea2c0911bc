"""Channels passed on: as much as the far end takes and no more, through new keys, and with those who lie."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import asyncssh
import pytest
from asyncssh.constants import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_OPEN,
    MSG_CHANNEL_WINDOW_ADJUST,
)
from asyncssh.packet import SSHPacket, String, UInt32

from pai_scheduler.gateway.relay import End, PassedOn
from pai_scheduler.gateway.settings import Settings
from pai_scheduler.gateway.supervisor import GatewaySupervisor

from .conftest import Gate, run
from .stand_in import KEYS, StandIn


def memory(pid: int) -> int:
    """Give the most memory that a process has had, in bytes."""
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
    settings = Settings(service.url, service.token, KEYS.gateway_host().private.decode(), keepalive=0.3)
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


class Wire:
    """A connection that remembers what is sent in it; for peers that no library will be."""

    def __init__(self) -> None:
        self.ends: dict[int, End] = {}
        self.sent: list[tuple[int, bytes]] = []
        self.answers: list[tuple[object, ...]] = []

    def add_channel(self, chan: Any) -> int:
        number = len(self.ends)
        self.ends[number] = chan
        return number

    def remove_channel(self, recv_chan: int) -> None:
        del self.ends[recv_chan]

    def send_packet(self, pkttype: int, *args: bytes) -> None:
        self.sent.append((pkttype, b"".join(args)))

    def send_channel_open_confirmation(self, *args: Any) -> None:
        self.answers.append(("open", *args))

    def send_channel_open_failure(self, *args: Any) -> None:
        self.answers.append(("refused", *args))


def packet(*parts: bytes) -> SSHPacket:
    return SSHPacket(b"".join(parts))


@pytest.fixture
def wires() -> tuple[Wire, Wire, PassedOn, End]:
    """Give a channel that was opened and passed on: both connections, both ends."""
    client, task = Wire(), Wire()
    end = PassedOn(client, lambda end: end.pass_on(task, b"direct-tcpip", b"details"))
    end.process_open(7, 1000, 500, None)
    other = task.ends[0]
    assert task.sent == [
        (MSG_CHANNEL_OPEN, String(b"direct-tcpip") + UInt32(0) + UInt32(1000) + UInt32(500) + b"details")
    ]
    other.process_open_confirmation(9, 2000, 600, packet(b"more"))
    assert client.answers == [("open", 7, 0, 2000, 600, b"more")]
    return client, task, end, other


def test_windows_and_data_are_passed_on_as_they_are(wires: tuple[Wire, Wire, PassedOn, End]) -> None:
    client, task, end, other = wires
    for kind in (MSG_CHANNEL_DATA, MSG_CHANNEL_WINDOW_ADJUST, 111):
        end.process_packet(kind, 0, packet(b"there"))
        assert task.sent[-1] == (kind, UInt32(9) + b"there")
        other.process_packet(kind, 0, packet(b"back"))
        assert client.sent[-1] == (kind, UInt32(7) + b"back")


def test_an_end_waits_for_the_other_peers_answer_and_both_numbers_are_free_then(
    wires: tuple[Wire, Wire, PassedOn, End],
) -> None:
    client, task, end, other = wires
    end.process_packet(MSG_CHANNEL_CLOSE, 0, packet())
    assert task.sent[-1] == (MSG_CHANNEL_CLOSE, UInt32(9))
    # what the other peer still had to say
    other.process_packet(MSG_CHANNEL_DATA, 0, packet(b"last"))
    assert client.sent == [(MSG_CHANNEL_DATA, UInt32(7) + b"last")]
    other.process_packet(MSG_CHANNEL_CLOSE, 0, packet())
    assert client.sent[-1] == (MSG_CHANNEL_CLOSE, UInt32(7))
    assert client.ends == task.ends == {}


def test_nothing_is_taken_from_a_peer_after_its_end(wires: tuple[Wire, Wire, PassedOn, End]) -> None:
    _, task, end, _ = wires
    end.process_packet(MSG_CHANNEL_CLOSE, 0, packet())
    before = list(task.sent)
    end.process_packet(MSG_CHANNEL_DATA, 0, packet(b"x"))
    end.process_packet(MSG_CHANNEL_CLOSE, 0, packet())
    assert task.sent == before


def test_a_lost_connection_ends_the_channels_of_the_other(wires: tuple[Wire, Wire, PassedOn, End]) -> None:
    client, task, end, other = wires
    other.process_connection_close(None)
    assert [kind for kind, _ in client.sent] == [MSG_CHANNEL_EOF, MSG_CHANNEL_CLOSE]
    assert task.ends == {}
    end.process_packet(MSG_CHANNEL_DATA, 0, packet(b"x"))
    end.process_packet(MSG_CHANNEL_CLOSE, 0, packet())
    assert client.ends == {}


def test_a_client_that_goes_before_its_channel_is_open_leaves_none_in_the_task() -> None:
    client, task = Wire(), Wire()
    end = PassedOn(client, lambda end: end.pass_on(task, b"direct-tcpip", b""))
    end.process_open(7, 1000, 500, None)
    end.process_connection_close(None)
    [other] = task.ends.values()
    other.process_open_confirmation(9, 2000, 600, packet())
    assert task.sent[-1] == (MSG_CHANNEL_CLOSE, UInt32(9))
    other.process_packet(MSG_CHANNEL_CLOSE, 0, packet())
    assert task.ends == {}
    assert client.answers == []


def test_a_refusal_is_passed_on_with_its_reason() -> None:
    client, task = Wire(), Wire()
    end = PassedOn(client, lambda end: end.pass_on(task, b"direct-tcpip", b""))
    end.process_open(7, 1000, 500, None)
    task.ends[0].process_open_failure(2, "Connection refused", "en")
    assert client.answers == [("refused", 7, 2, "Connection refused", "en")]
    assert client.ends == task.ends == {}


def test_who_answers_twice_or_too_early_is_cut_off(wires: tuple[Wire, Wire, PassedOn, End]) -> None:
    _, _, _, other = wires
    with pytest.raises(asyncssh.ProtocolError):
        other.process_open_confirmation(9, 2000, 600, packet())
    with pytest.raises(asyncssh.ProtocolError):
        other.process_open_failure(2, "no", "en")
    with pytest.raises(asyncssh.ProtocolError):
        End(Wire()).process_packet(MSG_CHANNEL_DATA, 0, packet(b"x"))
