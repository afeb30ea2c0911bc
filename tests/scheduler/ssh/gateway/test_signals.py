"""Signals that a program in the task sends, because its server does not: what is run for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.scheduler.ssh.gateway.gate import Gate
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer

#: Sends nothing; writes down what it was told, and whether another runs for the same session.
PROGRAM = """#!/bin/sh
mkdir {folder}/$1 || echo two at once >> {folder}/told
echo "$@" >> {folder}/told
sleep 0.05
rmdir {folder}/$1
exit {code}
"""


class Program:
    """A program that stands for the one of the runtime."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "a program"
        self.exits(0)

    def exits(self, code: int) -> None:
        self.path.write_text(PROGRAM.format(folder=self.folder, code=code))
        self.path.chmod(0o755)

    async def told(self, count: int) -> list[str]:
        """Wait until it was called so many times; return what it was told."""
        async with asyncio.timeout(60):
            while len(lines := self.lines()) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        return lines

    def lines(self) -> list[str]:
        told = self.folder / "told"
        return told.read_text().splitlines() if told.exists() else []


@pytest.fixture
def program(service: StandIn, task: TaskServer, tmp_path: Path) -> Program:
    program = Program(tmp_path)
    service.target = {**task.target(), "signals": str(program.path)}
    return program


#: says what it is called, which a task's own command cannot see, and what it hears
COMMAND = "trap 'echo got USR1' USR1; echo $PAI_SSH_SESSION; while read line; do echo $line; done"


async def test_signals_are_sent_one_after_the_other_to_the_session_that_is_meant(
    gate: Gate, service: StandIn, program: Program
) -> None:
    async with (
        gate.connect() as connection,
        connection.create_process(COMMAND) as one,
        connection.create_process(COMMAND, env={"PAI_SSH_SESSION": "f" * 32}) as other,
    ):
        tokens = [(await process.stdout.readline()).strip() for process in (one, other)]
        assert all(len(token) == 32 and set(token) <= set("0123456789abcdef") for token in tokens)
        assert len({*tokens, "f" * 32}) == 3, "it is chosen at random, whatever the client says"
        for name in ("TERM", "INT", "USR1"):
            one.send_signal(name)
        other.send_signal("HUP")
        told = await program.told(4)
        # (the two sessions do not wait for each other)
        assert [line for line in told if tokens[1] not in line] == [
            f"{tokens[0]} {name}" for name in ("TERM", "INT", "USR1")
        ]
        assert f"{tokens[1]} HUP" in told
        for process in (one, other):
            process.stdin.write_eof()
            assert (await process.wait()).exit_status == 0
    # nobody is told of more than what the client opened
    await service.until(lambda: [note for note in service.notes if note["event"] == "closed"])
    assert [note["what"] for note in service.notes] == [["exec"], ["exec"]]


@pytest.mark.parametrize("name", ["TERM; id", "$(id)", "INFO@openssh.com", "-1", ""])
async def test_a_name_that_is_no_word_is_not_part_of_any_command(
    gate: Gate, program: Program, name: str
) -> None:
    async with gate.connect() as connection, connection.create_process(COMMAND) as process:
        token = (await process.stdout.readline()).strip()
        process.send_signal(name)
        process.send_signal("TERM")
        assert await program.told(1) == [f"{token} TERM"]
        process.stdin.write_eof()
        assert (await process.wait()).exit_status == 0


async def test_a_signal_before_there_is_a_session_is_sent_when_there_is(gate: Gate, program: Program) -> None:
    async with gate.connect() as connection, connection.create_process(COMMAND) as process:
        # (the gateway takes a session at once, and has yet to ask for the task)
        process.send_signal("TERM")
        token = (await process.stdout.readline()).strip()
        assert await program.told(1) == [f"{token} TERM"]
        process.stdin.write_eof()


async def test_what_the_program_cannot_send_is_left_to_the_server(gate: Gate, program: Program) -> None:
    async with gate.connect() as connection:
        program.exits(127)
        process = await connection.create_process(COMMAND)
        token = (await process.stdout.readline()).strip()
        process.send_signal("USR1")
        assert await program.told(1) == [f"{token} USR1"]
        # OpenSSH's server refuses root, as it does in a container; the session goes on
        process.stdin.write("still\n")
        assert (await process.stdout.readuntil("still\n")).endswith("still\n")
        process.close()


async def test_files_have_no_signals(gate: Gate, program: Program) -> None:
    async with gate.connect() as connection, connection.start_sftp_client() as files:
        assert await files.exists("/")
        assert not program.lines()
