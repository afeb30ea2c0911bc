"""What is forwarded to where: the task and its job, by the names that the service gives, and nothing else."""

from __future__ import annotations

import asyncssh
import pytest

from pai_scheduler.ssh.gateway.session import NotForwardedError, check, check_port
from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.gateway.gate import Gate
from tests.scheduler.ssh.gateway.stand_in import StandIn

ALLOWED = ["localhost", "127.0.0.1", "::1", "worker-0", "worker-1", "172.20.0.3"]

EVERYWHERE = "0.0.0.0"  # noqa: S104 - nothing listens there
ELSEWHERE = [
    "169.254.169.254",
    "172.20.0.4",
    "172.20.0.1",
    "10.0.0.1",
    "scheduler",
    "hub.example.org",
    EVERYWHERE,
    "127.0.0.2",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "0251.0376.0251.0376",
    "2852039166",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "0:0:0:0:0:0:0:1",
    "[::1]",
    "localhost.",
    "localhost.localdomain",
    "worker-0.evil.example",
    "localtest.me",
    " localhost",
    "localhost\0.evil.example",
    "localhost\n",
    "",
    "ｌocalhost",
    "ⅼocalhost",
    "x" * 100_000,
]


@pytest.mark.parametrize("host", ELSEWHERE, ids=lambda host: ascii(host)[:30])
def test_an_address_is_not_known_by_another_spelling(host: str) -> None:
    with pytest.raises(NotForwardedError) as refused:
        check(host, ALLOWED)
    assert str(refused.value).isascii()
    assert len(str(refused.value)) < 200


def test_the_names_of_the_task_and_its_peers_are_known() -> None:
    for host in [*ALLOWED, "LocalHost", "WORKER-1"]:
        check(host, ALLOWED)


@pytest.mark.parametrize("port", [0, -1, 65536, 2**32 - 1])
def test_ports_are_ports(port: int) -> None:
    check_port(65535)
    with pytest.raises(NotForwardedError):
        check_port(port)


def test_any_port_is_a_port_to_listen_at() -> None:
    check_port(0, least=0)


async def test_a_port_that_is_none_is_refused_and_the_connection_goes_on(gate: Gate) -> None:
    async with gate.connect() as connection:
        for port in (0, 65536):
            with pytest.raises(asyncssh.ChannelOpenError) as refused:
                await connection.open_connection("localhost", port)
            assert refused.value.reason == f"{port} is no port"
        with pytest.raises(asyncssh.ChannelListenError):
            await connection.create_server(asyncssh.SSHTCPSession, "localhost", 65536)
        assert (await connection.run("echo here")).stdout == "here\n"


async def test_a_port_is_listened_to_as_long_as_the_client_wants(gate: Gate) -> None:
    async with gate.connect() as connection:
        listener = await connection.forward_remote_port("", 0, "127.0.0.1", free_port())
        port = listener.get_port()
        listener.close()
        await listener.wait_closed()
        again = await connection.forward_remote_port("", port, "127.0.0.1", free_port())
        assert again.get_port() == port


async def test_a_connection_elsewhere_is_refused_with_a_reason_and_not_noted_as_opened(
    gate: Gate, service: StandIn
) -> None:
    async with gate.connect() as connection:
        for host in ("169.254.169.254", "2130706433", "::ffff:127.0.0.1", "scheduler\n"):
            with pytest.raises(asyncssh.ChannelOpenError) as refused:
                await connection.open_connection(host, service.port)
            assert refused.value.code == asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED
            assert "forwarded to the task and its job only" in refused.value.reason
        # the connection goes on
        assert (await connection.run("echo here")).stdout == "here\n"
    await gate.close()
    assert [note["what"] for note in service.notes] == [["exec"], ["exec"]]
    log = gate.log()
    assert "no connection is forwarded to '169.254.169.254', port" in log
    assert "forwarded to 'scheduler\\n'" in log


async def test_other_kinds_of_channels_are_refused_and_the_connection_goes_on(gate: Gate) -> None:
    async with gate.connect() as connection:
        with pytest.raises(asyncssh.ChannelOpenError):
            await connection.create_tun(asyncssh.SSHTunTapSession, 0)
        assert (await connection.run("echo here")).stdout == "here\n"
