"""What a person reads who opens something that cannot be had, and before and after what can."""

from __future__ import annotations

import asyncio

import pytest

from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer

WORDS = "Job train has two tasks: worker-0, worker-1. Say which."


@pytest.mark.parametrize("arguments", [("true",), ("-T",), ("-tt",), ("-s", "sftp")], ids=str)
async def test_why_nothing_opens_is_said_on_the_error_stream(
    gate: Gate, service: StandIn, arguments: tuple[str, ...]
) -> None:
    service.refusal = (409, WORDS)
    ran = await run(*gate.ssh(*arguments) if "true" in arguments else _with(gate, *arguments))
    assert (ran.code, ran.out) == (255, b"")
    assert ran.error.strip() == WORDS


def _with(gate: Gate, *arguments: str) -> list[str]:
    options = [argument for argument in arguments if argument.startswith("-")]
    command = gate.ssh(*(argument for argument in arguments if argument not in options))
    command[1:1] = options
    return command


async def test_sftp_shows_it_too(gate: Gate, service: StandIn) -> None:
    service.refusal = (409, WORDS)
    ran = await run("sftp", *gate.options, "-P", str(gate.port), "alice@127.0.0.1")
    assert ran.code != 0
    assert WORDS in ran.error


async def test_who_waits_for_every_answer_is_told_too(gate: Gate, service: StandIn) -> None:
    service.refusal = (404, WORDS)
    async with gate.connect() as connection:
        # asyncssh asks for a terminal, waits, and asks for a shell
        ran = await connection.run(term_type="xterm", timeout=30)
    assert (ran.exit_status, ran.stdout, ran.stderr) == (255, "", f"{WORDS}\r\n")


async def test_the_service_is_asked_in_the_language_of_the_client(gate: Gate, service: StandIn) -> None:
    command = _with(gate, "-oSendEnv=LANG")
    await run(*command, "true", env={"LANG": "zh_CN.UTF-8", "LC_ALL": ""})
    await run(*command, "true", env={"LANG": "C.UTF-8", "LC_ALL": ""})
    assert [question["language"] for question in service.questions("open")] == ["zh_CN", "en"]


async def test_a_scheduler_that_is_away_is_said_to_be(gate: Gate, service: StandIn) -> None:
    async with gate.connect() as connection:
        service.away = True
        ran = await connection.run("true", timeout=30)
        assert isinstance(ran.stderr, str)
        assert (ran.exit_status, ran.stderr.startswith("The scheduler does not answer")) == (255, True)
        service.away = False
        assert (await connection.run("echo again", timeout=30)).stdout == "again\n"


async def test_a_server_that_is_not_there_is_said_to_be_gone(gate: Gate, service: StandIn) -> None:
    service.target = {**service.target, "port": 1}
    ran = await run(*gate.ssh("true"))
    assert (ran.code, ran.error.strip()) == (
        255,
        "The SSH server of worker-0 cannot be reached. Has the task just ended?",
    )


async def test_another_server_than_the_tasks_is_not_let_in_on_anything(
    gate: Gate, service: StandIn, task: TaskServer
) -> None:
    service.target = {**task.target(), "hostKey": task.identity.public}
    ran = await run(*gate.ssh("echo secret"))
    assert (ran.code, ran.out) == (255, b"")
    assert "cannot be reached" in ran.error


async def test_a_terminal_begins_with_what_is_to_be_known_of_its_task(
    gate: Gate, service: StandIn, task: TaskServer
) -> None:
    service.target = {**task.target(), "isolated": False, "notice": "This task is not isolated."}
    shell = await run(*_with(gate, "-tt"), send=b"exit\n")
    assert shell.out.startswith(b"This task is not isolated.\r\n")
    # programs read what commands and shells without a terminal say
    for arguments in (("cat",), ("-T",)):
        ran = await run(*_with(gate, *arguments), send=b"echo out\n")
        assert b"isolated" not in ran.out + ran.error.encode()


async def test_nothing_is_lost_of_a_terminals_stream_beside_our_words(
    gate: Gate, service: StandIn, task: TaskServer
) -> None:
    service.target = {**task.target(), "notice": "x" * 3000}
    async with gate.connect() as connection:
        # more than the client's window, several times
        command = "head -c 9000000 /dev/zero | tr '\\0' a; echo end"
        async with connection.create_process(term_type="xterm", encoding=None, window=100_000) as process:
            process.stdin.write(f"{command}; exit\n".encode())
            text = await process.stdout.read()
    assert isinstance(text, bytes)
    assert text.startswith(b"x" * 3000 + b"\r\n")
    assert text.count(b"a") >= 9_000_000
    assert b"aend\r\n" in text


async def test_the_end_of_the_task_is_told_to_who_is_in_it(
    gate: Gate, service: StandIn, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ending = TaskServer(tmp_path_factory.mktemp("ending"))
    try:
        service.target = ending.target()
        async with gate.connect() as connection:
            async with connection.create_process("echo here; sleep 1000") as process:
                assert await process.stdout.readline() == "here\n"
                ending.end()
                words = await asyncio.wait_for(process.stderr.read(), 30)
                assert (
                    words == "The connection to worker-0 was lost: the task has ended, or its SSH server.\n"
                )
                assert (await process.wait()).exit_status == 255
            # the same connection serves the task's next server
            ending.start()
            assert (await connection.run("echo again", timeout=30)).stdout == "again\n"
    finally:
        ending.end()
