"""Logging in at the gateway, and every way in which that fails."""

from __future__ import annotations

from urllib.parse import urlsplit

import asyncssh
import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.client.ssh.connection import (
    GatewayAddress,
    RemoteError,
    UnreachableGatewayError,
    connect,
    find_gateway,
    gateway_of,
)
from pai_scheduler.rest.models import SshGateway
from pai_scheduler.testing.ports import free_port
from tests.testbed.scheduler import RunningScheduler

TOKEN = "token-of-alice"


@pytest.fixture
async def gateway(entered: RunningScheduler) -> GatewayAddress:
    async with Client(entered.url, TOKEN) as client:
        return await find_gateway(client)


async def test_a_token_is_enough(gateway: GatewayAddress) -> None:
    async with await connect(gateway, "alice+one", TOKEN) as connection:
        said = await connection.run("echo $PAI_JOB_NAME", check=True)
    assert said.stdout == "one\n"


@pytest.mark.parametrize(
    ("login", "token"), [("alice+one", "wrong"), ("alice+one", "token-of-bob"), ("nobody+one", TOKEN)]
)
async def test_a_token_that_is_not_good_for_this_is_refused(
    gateway: GatewayAddress, login: str, token: str
) -> None:
    with pytest.raises(RemoteError, match=f"does not let {login.replace('+', '.')} in with this token"):
        await connect(gateway, login, token)


async def test_another_server_in_the_gateways_place_gets_no_token(gateway: GatewayAddress) -> None:
    other = asyncssh.generate_private_key("ssh-ed25519").export_public_key().decode()
    with pytest.raises(RemoteError, match="answers another SSH server"):
        await connect(GatewayAddress(gateway.host, gateway.port, other), "alice+one", TOKEN)


async def test_a_gateway_that_does_not_answer_may_be_back_later(gateway: GatewayAddress) -> None:
    port = free_port()
    with pytest.raises(
        UnreachableGatewayError, match=f"127.0.0.1:{port} does not answer: .*ask an administrator"
    ):
        await connect(GatewayAddress("127.0.0.1", port, gateway.host_key), "alice+one", TOKEN)
    with pytest.raises(UnreachableGatewayError, match="does not answer"):
        await connect(GatewayAddress("host.invalid", 22, gateway.host_key), "alice+one", TOKEN)


async def test_a_server_that_speaks_no_ssh_is_none(
    entered: RunningScheduler, gateway: GatewayAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.client.ssh.connection._CONNECT_SECONDS", 0.5)
    web = urlsplit(entered.url).port
    assert web is not None
    with pytest.raises(UnreachableGatewayError):
        await connect(GatewayAddress("127.0.0.1", web, gateway.host_key), "alice+one", TOKEN)


def test_where_the_gateway_has_no_name_it_is_where_the_scheduler_is() -> None:
    found: SshGateway = {"host": None, "port": 2222, "hostKey": "ssh-ed25519 x"}
    assert gateway_of(found, "https://hub.example.org/services/pai") == GatewayAddress(
        "hub.example.org", 2222, "ssh-ed25519 x"
    )
    assert gateway_of({**found, "host": "ssh.example.org"}, "http://x").host == "ssh.example.org"
    with pytest.raises(RemoteError, match="has no SSH gateway"):
        gateway_of(None, "http://x")
