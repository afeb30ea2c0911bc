"""What was opened is noted, in order, as soon as the service can; nobody waits for it."""

from __future__ import annotations

import logging

import pytest

from pai_scheduler.ssh.gateway.client_session import AuditQueue, ServiceClient
from pai_scheduler.ssh.gateway.protocol import Note
from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer


def note(login: str) -> Note:
    return {"session_token": "p", "login": login, "peer": "10.0.0.1", "event": "opened", "what": ["shell"]}


async def test_each_kind_is_noted_when_it_is_first_opened_and_all_when_they_end(
    gate: Gate, service: StandIn
) -> None:
    async with gate.connect() as connection:
        await connection.run("true")
        await connection.run("true")
        async with connection.start_sftp_client() as sftp:
            await sftp.getcwd()
        _, writer = await connection.open_connection("127.0.0.1", service.port)
        writer.close()
        listener = await connection.forward_remote_port("", 0, "127.0.0.1", service.port)
        port = listener.get_port()
        await connection.run(term_type="xterm", input="exit\n")
    await service.until(lambda: service.notes and service.notes[-1]["event"] == "closed")
    common = {
        "session_token": "session token of alice+train+worker-0",
        "login": "alice+train+worker-0",
        "peer": "127.0.0.1",
    }
    seconds = service.notes[-1].pop("seconds")
    assert service.notes == [
        {**common, "event": "opened", "what": ["exec"]},
        {**common, "event": "opened", "what": ["sftp"]},
        {**common, "event": "opened", "what": ["forward"], "detail": f"127.0.0.1:{service.port}"},
        {**common, "event": "opened", "what": ["remote-forward"], "detail": str(port)},
        {**common, "event": "opened", "what": ["shell"]},
        {**common, "event": "closed", "what": ["exec", "sftp", "forward", "remote-forward", "shell"]},
    ]
    assert 0 < seconds < 60


async def test_a_login_that_opens_nothing_is_not_noted(gate: Gate, service: StandIn) -> None:
    async with gate.connect():
        pass
    await gate.close()
    assert service.notes == []


async def test_a_lent_agent_is_noted(gate: Gate, service: StandIn) -> None:
    command = gate.ssh("true")
    command[1:1] = ["-A"]
    agent = gate.folder / "agent"
    await run("ssh-agent", "-a", str(agent), *command)
    await gate.close()
    assert [note["what"] for note in service.notes][-1] == ["agent", "exec"]


async def test_notes_wait_for_a_service_that_is_away_and_keep_their_order(task: TaskServer) -> None:
    service = StandIn(task.target())
    client = ServiceClient(service.url, service.token)
    service.away = True
    notes = AuditQueue(client, again=0.02)
    for number in range(20):
        notes.add(note(str(number)))
    service.away = False
    await notes.close()
    assert [noted["login"] for noted in service.notes] == [str(number) for number in range(20)]
    await client.close()
    await service.close()


async def test_what_cannot_be_told_in_time_is_logged(
    task: TaskServer, caplog: pytest.LogCaptureFixture
) -> None:
    service = StandIn(task.target())
    client = ServiceClient(service.url, service.token)
    service.away = True
    notes = AuditQueue(client, again=0.02)
    for _ in range(10_003):
        notes.add(note("x"))
    caplog.set_level(logging.ERROR)
    await notes.close(seconds=0.1)
    assert caplog.records[-1].message == "the service is away: 10000 notes are lost"
    await client.close()
    await service.close()
