"""One process of the gateway: while the service is away, and when nobody is left."""

from __future__ import annotations

import asyncio

import asyncssh
import pytest

from tests.scheduler.ssh.gateway.gate import Gate, run
from tests.scheduler.ssh.gateway.stand_in import StandIn


class Banner(asyncssh.SSHClient):
    """Remembers what is said while one logs in."""

    def __init__(self) -> None:
        self.said = ""

    def auth_banner_received(self, msg: str, _lang: str) -> None:
        self.said += msg


async def test_a_service_that_is_away_is_not_taken_for_a_wrong_key(gate: Gate, service: StandIn) -> None:
    service.away = True
    banner = Banner()
    with pytest.raises(asyncssh.PermissionDenied):
        await asyncssh.connect(
            "127.0.0.1",
            gate.port,
            username="alice",
            client_keys=[str(gate.key)],
            known_hosts=str(gate.known_hosts),
            client_factory=lambda: banner,
            config=None,
            agent_path=None,
        )
    assert banner.said == "The scheduler does not answer just now; try again in a minute.\n"
    service.away = False
    assert (await run(*gate.ssh("echo in"))).out == b"in\n"
    await gate.close()
    assert "login refused" not in gate.log()


async def test_who_has_not_logged_in_is_not_waited_for_when_the_scheduler_is_gone(gate: Gate) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    await reader.readline()
    await gate.close()
    await asyncio.wait_for(reader.read(), 30)
    writer.close()


async def test_a_client_that_compresses_is_served_without(gate: Gate) -> None:
    command = gate.ssh("echo in")
    command[1:1] = ["-C"]
    assert (await run(*command)).out == b"in\n"
