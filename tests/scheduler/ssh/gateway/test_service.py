"""What the gateway asks the service, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pai_scheduler.ssh.gateway.client_session import ServiceClient, ServiceRefusedError, UnavailableError
from pai_scheduler.ssh.gateway.protocol import LoginRequest, Note
from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.gateway.stand_in import StandIn, TaskServer

NOTE: Note = {
    "session_token": "p",
    "login": "alice",
    "peer": "10.0.0.1",
    "event": "opened",
    "what": ["shell"],
}


def login(credential: str) -> LoginRequest:
    return {"login": "alice", "method": "password", "credential": credential, "peer": "10.0.0.1"}


@pytest.fixture
async def client(service: StandIn) -> AsyncIterator[ServiceClient]:
    client = ServiceClient(service.url, service.token)
    yield client
    await client.close()


async def test_a_login_is_answered_with_the_user_or_none(client: ServiceClient) -> None:
    answer = await client.login(login("token-of-alice"))
    assert answer is not None
    assert answer["user"] == "alice"
    assert await client.login(login("guess")) is None


async def test_opening_a_task_returns_its_address_or_the_reason_why_not(
    client: ServiceClient, service: StandIn, task: TaskServer
) -> None:
    assert await client.open({"login": "alice", "session_token": "p"}) == task.target()
    service.refusal = (404, "没有这个任务。")
    with pytest.raises(ServiceRefusedError, match="没有这个任务"):
        await client.open({"login": "alice", "session_token": "p"})


async def test_a_service_that_is_away_says_nothing_about_anybody(
    client: ServiceClient, service: StandIn
) -> None:
    service.away = True
    for question in (
        client.login(login("token-of-alice")),
        client.open({"login": "alice", "session_token": "p"}),
        client.note(NOTE),
    ):
        with pytest.raises(UnavailableError):
            await question
    nobody = ServiceClient(f"http://127.0.0.1:{free_port()}", "x")
    with pytest.raises(UnavailableError):
        await nobody.login(login("token-of-alice"))
    await nobody.close()


async def test_another_answer_than_was_agreed_is_none(client: ServiceClient, service: StandIn) -> None:
    service.target = []  # type: ignore[assignment]
    with pytest.raises(UnavailableError):
        await client.open({"login": "alice", "session_token": "p"})


async def test_a_service_that_does_not_know_this_gateway_says_nothing_about_anybody(service: StandIn) -> None:
    stranger = ServiceClient(service.url, "another token")
    for question in (
        stranger.login(login("token-of-alice")),
        stranger.open({"login": "alice", "session_token": "p"}),
        stranger.note(NOTE),
    ):
        with pytest.raises(UnavailableError):
            await question
    await stranger.close()
