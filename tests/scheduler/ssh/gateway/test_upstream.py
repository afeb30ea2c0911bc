"""The connection to a task's server: what a task may not do to the clients that come to it."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest
from asyncssh.packet import String, UInt32

from pai_scheduler.ssh.gateway import session
from pai_scheduler.ssh.gateway.protocol import TaskTarget
from pai_scheduler.ssh.gateway.session import TaskServerUnreachableError, reach
from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer


async def test_a_task_gets_neither_agent_nor_ports_nor_screens_that_nobody_lent(
    gate: Gate, service: StandIn, task: TaskServer
) -> None:
    async def attack(process: asyncssh.SSHServerProcess[str]) -> None:
        connection = process.channel.get_connection()

        async def opened(kind: bytes, *details: bytes) -> str:
            channel = asyncssh.SSHTCPChannel(
                connection, asyncio.get_running_loop(), None, "strict", 2**20, 32768
            )
            try:
                await asyncio.wait_for(channel._open(kind, *details), 20)
            except asyncssh.ChannelOpenError as error:
                return error.reason
            return "opened"

        origin = String("127.0.0.1") + UInt32(1)
        for kind, *details in (
            (b"auth-agent@openssh.com",),
            (b"x11", origin),
            (b"forwarded-tcpip", String("localhost"), UInt32(service.port), origin),
            (b"forwarded-streamlocal@openssh.com", String("/run/x"), String("")),
            (b"session",),
            (b"direct-tcpip", String("127.0.0.1"), UInt32(service.port), origin),
            (b"direct-streamlocal@openssh.com", String("/run/x"), String(""), UInt32(0)),
            (b"tun@openssh.com", UInt32(1), UInt32(0)),
            (b"something-else",),
        ):
            process.stdout.write(f"{kind.decode()}: {await opened(kind, *details)}\n")
        process.exit(0)

    async with asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[asyncssh.import_private_key(task.host_key.private)],
        authorized_client_keys=asyncssh.import_authorized_keys(task.identity.public),
        process_factory=attack,
    ) as server:
        service.target = {**task.target(), "port": server.get_port()}
        ran = await run(*gate.ssh("attack"))
    lines = ran.out.decode().splitlines()
    assert len(lines) == 9, ran
    assert not [line for line in lines if line.endswith("opened")]
    # an agent that is lent is lent
    assert lines[0] == "auth-agent@openssh.com: Auth agent forwarding disabled"


async def test_a_server_that_begins_a_little_later_is_waited_for(task: TaskServer) -> None:
    port = free_port()
    connecting = asyncio.create_task(reach({**task.target(), "port": port}, lambda: None))
    await asyncio.sleep(0)
    async with asyncssh.listen(
        "127.0.0.1",
        port,
        server_host_keys=[asyncssh.import_private_key(task.host_key.private)],
        authorized_client_keys=asyncssh.import_authorized_keys(task.identity.public),
    ):
        upstream = await connecting
        assert upstream.usable
        upstream.finish()
        await upstream.ssh.wait_closed()
        assert not upstream.usable


async def test_neither_another_key_nor_another_servers_key_will_do(task: TaskServer) -> None:
    wrong = asyncssh.generate_private_key("ssh-ed25519")
    targets: list[TaskTarget] = [
        {**task.target(), "privateKey": wrong.export_private_key().decode()},
        {**task.target(), "hostKey": wrong.export_public_key().decode()},
    ]
    for target in targets:
        with pytest.raises(TaskServerUnreachableError):
            await reach(target, lambda: None)


async def test_a_server_that_is_no_ssh_server_is_given_up(task: TaskServer) -> None:
    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n" * 2000)
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(TaskServerUnreachableError):
        await reach({**task.target(), "port": port}, lambda: None)
    server.close()


@pytest.mark.parametrize("words", [b"", b"SSH-2.0-nobody\r\n"])
async def test_a_server_that_says_no_more_is_given_up_and_left(
    task: TaskServer, words: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    guests = []

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(words)
        guests.append(await reader.read(-1))
        writer.close()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    target: TaskTarget = {**task.target(), "port": server.sockets[0].getsockname()[1]}
    monkeypatch.setattr(session, "_CONNECT_SECONDS", 0.2)
    with pytest.raises(TaskServerUnreachableError):
        await reach(target, lambda: None)
    async with asyncio.timeout(30):
        while not guests:  # noqa: ASYNC110 - it sees the end of the connection
            await asyncio.sleep(0.02)
    server.close()
