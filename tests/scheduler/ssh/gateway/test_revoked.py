"""A key or token that is revoked ends what it opened; a service that is away ends nothing."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest

from pai_scheduler.ssh.keys import KeyPair
from tests.scheduler.ssh.gateway.gate import Gate
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer

REASON = "The key or token that you logged in with was revoked: this connection ends."


async def test_a_revoked_key_ends_the_shells_it_opened_and_opens_no_other(
    gate: Gate, service: StandIn, task: TaskServer
) -> None:
    async with gate.connect() as connection:
        shell = await connection.create_process("cat")
        shell.stdin.write("here\n")
        assert await shell.stdout.readline() == "here\n"
        listener = await connection.forward_local_port("127.0.0.1", 0, "localhost", task.port)
        _, tunnel = await asyncio.open_connection("127.0.0.1", listener.get_port())
        service.users.clear()
        async with asyncio.timeout(60):
            await shell.wait()
            await connection.wait_closed()
        with pytest.raises((asyncssh.Error, OSError)):
            await connection.run("echo again")
        tunnel.close()
    # the next connection is refused, and what the first one ran has ended
    with pytest.raises(asyncssh.PermissionDenied):
        async with gate.connect():
            pass
    async with asyncio.timeout(60):
        while task.sessions():  # noqa: ASYNC110 - of processes of another program
            await asyncio.sleep(0.05)


async def test_openssh_is_told_why(gate: Gate, service: StandIn) -> None:
    pipe = asyncio.subprocess.PIPE
    ssh = await asyncio.create_subprocess_exec(
        *gate.ssh("echo in; exec sleep 600"), stdin=pipe, stdout=pipe, stderr=pipe
    )
    assert ssh.stdout is not None
    assert await ssh.stdout.readline() == b"in\n"
    service.users.clear()
    async with asyncio.timeout(60):
        _, error = await ssh.communicate()
    assert ssh.returncode == 255
    assert REASON in error.decode()


async def test_clients_with_other_credentials_stay_connected(gate: Gate, service: StandIn) -> None:
    service.users[KeyPair.from_seed(b"b" * 32).public] = "alice"
    other = asyncssh.connect(
        "127.0.0.1", gate.port, username="alice", password="token-of-alice", client_keys=None,
        known_hosts=str(gate.known_hosts), config=None, agent_path=None,
    )  # fmt: skip
    async with gate.connect() as by_key, other as by_token:
        await by_key.run("true", check=True)
        del service.users["token-of-alice"]
        async with asyncio.timeout(60):
            await by_token.wait_closed()
        assert (await by_key.run("echo in")).stdout == "in\n"


async def test_while_the_service_is_away_nobody_is_put_out(gate: Gate, service: StandIn) -> None:
    async with gate.connect() as connection, connection.create_process("cat") as process:
        await service.until(lambda: service.questions("still"))
        service.users.clear()
        service.away = True
        asked = service.refused
        await service.until(lambda: service.refused >= asked + 3)
        process.stdin.write("here\n")
        assert await process.stdout.readline() == "here\n"
        # until it is back, and says who is gone
        service.away = False
        async with asyncio.timeout(60):
            await connection.wait_closed()


async def test_credentials_are_not_logged(gate: Gate, service: StandIn) -> None:
    async with asyncssh.connect(
        "127.0.0.1", gate.port, username="alice", password="token-of-alice", client_keys=None,
        known_hosts=str(gate.known_hosts), config=None, agent_path=None,
    ) as connection:  # fmt: skip
        service.users.clear()
        async with asyncio.timeout(60):
            await connection.wait_closed()
    await gate.close()
    assert "'alice' from 127.0.0.1: token was revoked" in gate.log().replace(" as 'alice'", "")
    assert "token-of-alice" not in gate.log()
