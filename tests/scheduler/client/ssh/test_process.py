"""Commands in a task, through a real OpenSSH server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest

from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.client.ssh.process import Pty, StandardStreams, run


class Said:
    """Collects what a command writes."""

    def __init__(self, *stdin: bytes) -> None:
        self.out, self.err, self._stdin = bytearray(), bytearray(), stdin
        self._more = asyncio.Event()

    @property
    def ends(self) -> StandardStreams:
        return StandardStreams(self._read(), self._write_out, self._write_err)

    async def until(self, text: bytes) -> None:
        while text not in self.out:
            self._more.clear()
            await self._more.wait()

    async def _read(self) -> AsyncIterator[bytes]:
        for piece in self._stdin:
            yield piece

    async def _write_out(self, data: bytes) -> None:
        self.out += data
        self._more.set()

    async def _write_err(self, data: bytes) -> None:
        self.err += data


async def test_every_byte_passes_in_both_directions_and_errors_stay_apart(
    connection: asyncssh.SSHClientConnection,
) -> None:
    data = bytes(range(256)) * 20_000
    said = Said(data[:1], data[1:3_000_000], data[3_000_000:])
    assert await run(connection, "tee /dev/stderr", said.ends) == 0
    assert (bytes(said.out), bytes(said.err)) == (data, data)


@pytest.mark.parametrize(("command", "code"), [("exit 7", 7), ("kill -TERM $$", 143), ("true", 0)])
async def test_the_exit_code_is_the_commands(
    connection: asyncssh.SSHClientConnection, command: str, code: int
) -> None:
    assert await run(connection, command, Said().ends) == code


async def test_a_command_that_reads_nothing_does_not_hold_up(
    connection: asyncssh.SSHClientConnection,
) -> None:
    said = Said(*[b"x" * 100_000] * 100)
    assert await run(connection, "echo done", said.ends) == 0
    assert said.out == b"done\n"


async def test_a_terminal_has_its_type_and_size_and_is_told_a_new_one(
    connection: asyncssh.SSHClientConnection,
) -> None:
    said = Said()
    command = "trap 'stty size; exit 5' WINCH; stty size; echo $TERM; while :; do sleep 0.1; done"

    async def sizes() -> AsyncIterator[tuple[int, int]]:
        await said.until(b"vt220")
        yield 132, 43

    async def keyboard() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    ends = StandardStreams(keyboard(), said.ends.stdout, said.ends.stderr)
    assert await run(connection, command, ends, pty=Pty("vt220", 100, 30, sizes())) == 5
    assert said.out.split() == [b"30", b"100", b"vt220", b"43", b"132"]


async def test_a_login_shell_reads_what_is_typed(connection: asyncssh.SSHClientConnection) -> None:
    said = Said(b"echo $((40 + 2)); exit 3\n")
    assert await run(connection, None, said.ends) == 3
    assert b"42" in said.out


async def test_a_connection_that_breaks_is_no_exit_code(
    connection: asyncssh.SSHClientConnection,
) -> None:
    said = Said()
    running = asyncio.ensure_future(run(connection, "echo $PPID; sleep 1000", said.ends))
    await said.until(b"\n")
    os.kill(int(said.out), 9)
    with pytest.raises(RemoteError, match="broke off"):
        await running


async def test_cancelling_ends_the_command(connection: asyncssh.SSHClientConnection, tmp_path: Path) -> None:
    said = Said()
    mark = tmp_path / "mark"
    command = f"trap 'echo interrupted > {mark}; exit' INT HUP; echo up; while :; do sleep 0.1; done"
    running = asyncio.ensure_future(run(connection, command, said.ends, pty=Pty("dumb", 80, 24)))
    await said.until(b"up")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    for _ in range(600):
        if mark.exists():
            return
        await asyncio.sleep(0.05)
    pytest.fail("the command was not interrupted")


async def test_an_output_that_nobody_reads_any_more_ends_it_as_such(
    connection: asyncssh.SSHClientConnection,
) -> None:
    async def closed(_data: bytes) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await run(connection, "yes", StandardStreams(None, closed, closed))
