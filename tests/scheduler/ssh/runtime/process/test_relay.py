"""A program and its channel, a stand-in, where one of the two is slower than the other, or gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import asyncssh
import pytest

from pai_scheduler.ssh.runtime.process.child import StartedProgram, start_on_pipes
from pai_scheduler.ssh.runtime.process.relay import Relay
from tests.scheduler.engine.lab import eventually
from tests.scheduler.ssh.runtime.process.test_task import make


class Channel:
    """What a relay needs of a channel. `backlog`: what arrives as soon as it may; `end`: after that."""

    def __init__(self) -> None:
        self.out, self.err = bytearray(), bytearray()
        self.ended_with: int | str | None = None
        self.at_end = self.paused = False
        self.backlog: list[Callable[[], None]] = []
        self.end: Callable[[], None] | None = None

    def write(self, data: bytes) -> None:
        self.out += data

    def write_stderr(self, data: bytes) -> None:
        self.err += data

    def write_eof(self) -> None:
        self.at_end = True

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False
        while self.backlog and not self.paused:
            self.backlog.pop(0)()
        # as the library does it, whether it may read or not
        if self.end and not self.backlog:
            self.end()

    def exit(self, status: int) -> None:
        self.ended_with = status

    def exit_with_signal(self, name: str) -> None:
        self.ended_with = name


def begin(folder: Path, command: str) -> tuple[Channel, Relay, StartedProgram]:
    channel = Channel()
    started = start_on_pipes(make(folder), ["/bin/sh", "-c", command], {})
    relay = Relay(cast("asyncssh.SSHServerChannel[bytes]", channel), started, terminal=False)
    return channel, relay, started


async def finished(relay: Relay, started: StartedProgram, channel: Channel) -> None:
    await asyncio.to_thread(started.process.wait, 30)
    relay.ended()
    await eventually(lambda: channel.ended_with is not None, "its end is told")
    relay.hang_up()


async def test_input_that_arrives_while_the_last_is_written_is_not_lost(tmp_path: Path) -> None:
    channel, relay, started = begin(tmp_path, "sleep 0.2; cat | wc -c")
    channel.backlog = [lambda: relay.feed(b"y" * 500_000), lambda: relay.feed(b"z" * 500_000)]
    channel.end = relay.end_input
    relay.feed(b"x" * 500_000)
    assert channel.paused
    await finished(relay, started, channel)
    assert int(channel.out) == 1_500_000


async def test_a_program_that_does_not_read_to_the_end_is_no_trouble(tmp_path: Path) -> None:
    channel, relay, started = begin(tmp_path, "head -c 1; exec 0<&-; sleep 0.2; echo ' done'; exit 3")
    relay.feed(b"x" * 500_000)
    await eventually(lambda: not channel.paused, "the rest is dropped")
    relay.feed(b"more")
    await finished(relay, started, channel)
    assert (bytes(channel.out), channel.ended_with) == (b"x done\n", 3)


async def test_output_waits_while_the_channel_is_full(tmp_path: Path) -> None:
    channel, relay, started = begin(tmp_path, "head -c 1000000 /dev/zero; echo end >&2")
    relay.pause()
    for _ in range(20):
        await asyncio.sleep(0.01)
        assert not channel.out
    relay.resume()
    await finished(relay, started, channel)
    assert (len(channel.out), bytes(channel.err)) == (1_000_000, b"end\n")


async def test_outputs_that_are_closed_before_the_end_are_told_as_that(tmp_path: Path) -> None:
    channel, relay, started = begin(tmp_path, "exec 1>&- 2>&-; read line; exit 4")
    await eventually(lambda: channel.at_end, "the channel is at its end")
    assert channel.ended_with is None
    relay.feed(b"\n")
    await finished(relay, started, channel)
    assert channel.ended_with == 4


async def test_the_end_is_told_after_what_a_child_still_writes(tmp_path: Path) -> None:
    channel, relay, started = begin(tmp_path, "mkfifo fifo; (read line; echo late) <fifo & exit 5")
    await asyncio.to_thread(started.process.wait, 30)
    relay.ended()
    assert channel.ended_with is None
    await asyncio.to_thread((tmp_path / "work" / "fifo").write_text, "go\n")
    await eventually(lambda: channel.ended_with == 5, "its end is told")
    assert channel.out == b"late\n"
    relay.hang_up()


@pytest.mark.parametrize(
    ("number", "name"), [(15, "TERM"), (24, "XCPU@openssh.com"), (40, "RTMIN+6@openssh.com")]
)
async def test_signals_have_the_protocols_names_or_openssh_s(tmp_path: Path, number: int, name: str) -> None:
    channel, relay, started = begin(tmp_path, "read line")
    started.process.send_signal(number)
    await finished(relay, started, channel)
    assert channel.ended_with == name


@pytest.mark.parametrize("name", ["NONE", "", "_DFL", "TERM; rm", "15", "CTRL_C_EVENT", "é"])
async def test_signals_that_there_are_not_are_left_out(tmp_path: Path, name: str) -> None:
    channel, relay, started = begin(tmp_path, "read line; exit 7")
    relay.signal(name)
    relay.feed(b"\n")
    await finished(relay, started, channel)
    assert channel.ended_with == 7


async def test_after_it_hung_up_nothing_is_open_or_told(tmp_path: Path) -> None:
    before = _open_files()
    channel, relay, started = begin(tmp_path, "read line")
    relay.hang_up()
    assert await asyncio.to_thread(started.process.wait, 30) == -1
    relay.ended()
    relay.feed(b"x")
    relay.end_input()
    relay.resize((1, 1, 0, 0))
    relay.signal("TERM")
    relay.pause()
    relay.resume()
    assert not relay.send_break()
    assert channel.ended_with is None
    assert _open_files() <= before


def _open_files() -> set[Path]:
    return set(Path("/proc/self/fd").iterdir())
