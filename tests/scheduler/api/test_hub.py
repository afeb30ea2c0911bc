"""Callers as a real Hub knows them: scopes, groups, administrators, services, and a Hub that is gone."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from pai_scheduler.api.hub_auth import HubTokens
from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.principal import Principal
from pai_scheduler.rest.models import UserInfo
from tests.testbed.hub import RunningHub
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

SCOPE = "access:services!service=pai"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningHub]:
    """Run a Hub."""
    running = RunningHub(tmp_path_factory.mktemp("hub"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def service(hub: RunningHub, module_scheduler: StartScheduler) -> RunningScheduler:
    """Run the scheduler as the Hub's service."""
    return module_scheduler("--admin-service", "pai-spawner", environ=hub.service_environ())


async def test_it_answers_under_the_prefix_that_the_hub_gave(service: RunningScheduler) -> None:
    assert service.url.endswith("/services/pai")
    async with Client(service.url) as stranger:
        assert (await stranger.about())["name"] == "PAI for Jupyter"
        with pytest.raises(ApiError) as refusal:
            await stranger.jobs()
    assert refusal.value.status == 401


async def test_a_token_with_the_scope_is_its_users_with_the_groups(
    hub: RunningHub, service: RunningScheduler
) -> None:
    async with Client(service.url, hub.token("alice", SCOPE)) as alice:
        me = await alice.whoami()
        assert (me["username"], me["admin"], me["grouplist"]) == ("alice", False, ["vision"])
        await alice.submit(hello_job("in-vision", virtualCluster="vision"))
    async with Client(service.url, hub.token("bob", SCOPE)) as bob:
        with pytest.raises(ApiError) as refusal:
            await bob.submit(hello_job("in-vision", virtualCluster="vision"))
        assert refusal.value.status == 403
        with pytest.raises(ApiError) as refusal:
            await bob.job("alice", "in-vision")
        assert refusal.value.status == 404


async def test_who_has_just_left_a_group_starts_no_job_with_its_rights(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in hub.service_environ().items():
        monkeypatch.setenv(name, value)
    users = HubTokens.from_environment()
    member, no_member = Principal("alice", groups=("vision",)), Principal("alice")
    assert await users.find("alice") == member
    hub.leave_group("alice", "vision")
    try:
        assert await users.find("alice") == member  # remembered for some seconds
        assert await users.find_now("alice") == no_member
        assert await users.find("alice") == no_member
    finally:
        hub.join_group("alice", "vision")
    assert await users.find_now("alice") == member
    assert await users.find_now("nobody") is None


async def test_a_token_without_the_scope_is_refused_and_told_which(
    hub: RunningHub, service: RunningScheduler
) -> None:
    async with Client(service.url, hub.token("alice", "access:servers!user=alice")) as alice:
        with pytest.raises(ApiError, match="access:services!service=pai") as refusal:
            await alice.jobs()
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")


async def test_an_unknown_token_is_nobodys(service: RunningScheduler) -> None:
    async with Client(service.url, "0" * 32) as nobody:
        with pytest.raises(ApiError) as refusal:
            await nobody.jobs()
    assert (refusal.value.status, refusal.value.code) == (401, "UnauthorizedUserError")


async def test_an_admin_of_the_hub_is_admin_here(hub: RunningHub, service: RunningScheduler) -> None:
    async with Client(service.url, hub.token("root", SCOPE)) as root:
        assert (await root.whoami())["admin"] is True
        alice = await root._read(UserInfo, "GET", "user/alice")
        assert (alice["username"], alice["grouplist"]) == ("alice", ["vision"])
        with pytest.raises(ApiError) as refusal:
            await root._read(UserInfo, "GET", "user/nobody")
        assert (refusal.value.status, refusal.value.code) == (400, "NoUserError")


async def test_a_listed_service_acts_for_users_and_another_one_does_not(service: RunningScheduler) -> None:
    async with Client(service.url, "token-of-the-spawner") as spawner:
        assert (await spawner.whoami())["admin"] is True
        await spawner.submit(hello_job("notebook-of-bob"), user="bob")
        assert (await spawner.job("bob", "notebook-of-bob"))["jobStatus"]["username"] == "bob"
    async with Client(service.url, "token-of-a-stranger") as stranger:
        with pytest.raises(ApiError, match="stranger") as refusal:
            await stranger.jobs()
    assert refusal.value.status == 403


async def test_a_hub_token_is_a_password_for_old_clients(hub: RunningHub, service: RunningScheduler) -> None:
    token = hub.token("alice", SCOPE)
    async with httpx.AsyncClient(base_url=f"{service.url}/api/v1", trust_env=False) as client:
        login = await client.post("/token", json={"username": "alice", "password": token})
        assert login.json() == {"user": "alice", "token": token, "admin": False, "hasGitHubPAT": False}
        for name, password, code in (
            ("bob", token, "IncorrectPasswordError"),
            ("nobody", token, "NoUserError"),
            ("alice", "wrong", "IncorrectPasswordError"),
        ):
            answer = await client.post("/token", json={"username": name, "password": password})
            assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_without_the_hub_known_callers_go_on_and_others_are_told(
    hub: RunningHub, service: RunningScheduler
) -> None:
    known, unknown = hub.token("alice", SCOPE), hub.token("alice", SCOPE)
    async with Client(service.url, known) as alice:
        await alice.jobs()
        hub.close()
        await alice.submit(hello_job("while-the-hub-is-down"))
    async with Client(service.url, unknown) as late:
        with pytest.raises(ApiError) as refusal:
            await late.jobs()
    assert (refusal.value.status, refusal.value.code) == (503, "HubUnreachableError")
    hub.start()
    async with Client(service.url, unknown) as late:
        assert "while-the-hub-is-down" in [job["name"] for job in await late.jobs()]
