"""A visit: one way to the task for all that a client opens, asked for when it is needed and once."""

from __future__ import annotations

import asyncio

import pytest

from tests.scheduler.ssh.gateway.gate import Gate
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer


async def test_the_task_is_looked_for_when_something_is_opened_and_once(
    gate: Gate, service: StandIn, task: TaskServer
) -> None:
    before = set(task.sessions())
    async with gate.connect() as connection:
        assert service.questions("open") == []
        assert set(task.sessions()) <= before
        ran = await asyncio.gather(*(connection.run(f"echo {number}") for number in range(10)))
        assert [done.stdout for done in ran] == [f"{number}\n" for number in range(10)]
    assert service.questions("open") == [
        {
            "login": "alice+train+worker-0",
            "session_token": "session token of alice+train+worker-0",
            "language": "en",
        }
    ]


async def test_who_was_refused_may_ask_again_on_the_same_connection(gate: Gate, service: StandIn) -> None:
    service.refusal = (409, "It has not begun yet.")
    async with gate.connect() as connection:
        assert (await connection.run("true")).stderr == "It has not begun yet.\n"
        service.refusal = None
        assert (await connection.run("echo in")).stdout == "in\n"


async def test_when_a_client_is_gone_so_is_the_connection_to_the_task(gate: Gate, task: TaskServer) -> None:
    before = set(task.sessions())
    async with gate.connect() as connection:
        await connection.run("true")
        assert set(task.sessions()) - before
    async with asyncio.timeout(30):
        while set(task.sessions()) - before:  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.02)


async def test_simultaneous_clients_use_their_own_session_tokens(gate: Gate, service: StandIn) -> None:
    async with gate.connect() as one, gate.connect("alice") as two:
        await asyncio.gather(one.run("true"), two.run("true"))
    assert sorted(question["session_token"] for question in service.questions("open")) == [
        "session token of alice",
        "session token of alice+train+worker-0",
    ]


@pytest.mark.parametrize("login", ["alice", "alice+train", "alice+train+worker-0"])
async def test_the_service_reads_the_name(gate: Gate, service: StandIn, login: str) -> None:
    async with gate.connect(login) as connection:
        await connection.run("true")
    assert [question["login"] for question in service.questions("open")] == [login]
