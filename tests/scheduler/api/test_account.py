"""What answers, who I am, and logging in as old clients do."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.rate_limit import LONGEST_PAUSE, GuessThrottle
from pai_scheduler.rest.models import UserInfo
from tests.scheduler.service.house import open_house


async def test_the_service_tells_what_it_is(alice: Client) -> None:
    about = await alice.about()
    assert about == {
        "name": "PAI for Jupyter",
        "version": version("pai-for-jupyter"),
        "engine": "process",
        "frontDoor": None,
        "ssh": None,
    }


async def test_programs_are_told_how_to_log_in(http: httpx.AsyncClient) -> None:
    info = (await http.get("/authn/info")).json()
    assert info == {"authn_type": "basic", "loginURI": "/api/v1/token", "loginURIMethod": "post"}


@pytest.mark.parametrize("form", [True, False])
async def test_the_password_is_a_token_and_comes_back(http: httpx.AsyncClient, form: bool) -> None:
    login = {"username": "root", "password": "token-of-root", "expiration": "3600"}
    answer = await http.post("/token", data=login if form else None, json=None if form else login)
    assert answer.status_code == 200
    assert answer.json() == {"user": "root", "token": "token-of-root", "admin": True, "hasGitHubPAT": False}


@pytest.mark.parametrize(
    ("login", "code"),
    [
        ({"username": "nobody", "password": "x"}, "NoUserError"),
        ({"username": "alice", "password": "x"}, "IncorrectPasswordError"),
        ({"username": "alice", "password": "token-of-root"}, "IncorrectPasswordError"),
        ({"username": "alice"}, "InvalidParametersError"),
        ({"username": ["alice"], "password": "token-of-alice"}, "InvalidParametersError"),
    ],
)
async def test_a_wrong_login_is_refused(http: httpx.AsyncClient, login: dict[str, object], code: str) -> None:
    answer = await http.post("/token", json=login)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


async def test_users_see_themselves_and_admins_everybody(alice: Client, root: Client) -> None:
    me = await alice.whoami()
    assert (me["username"], me["admin"], me["grouplist"]) == ("alice", False, ["vision"])
    assert await alice._read(UserInfo, "GET", "user/alice") == me
    assert await root._read(UserInfo, "GET", "user/alice") == me
    with pytest.raises(ApiError) as refusal:
        await alice._read(UserInfo, "GET", "user/root")
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")
    with pytest.raises(ApiError) as refusal:
        await root._read(UserInfo, "GET", "user/nobody")
    assert (refusal.value.status, refusal.value.code) == (400, "NoUserError")


async def test_users_see_what_their_next_job_could_have_and_admins_what_everybodys(
    alice: Client, bob: Client, root: Client
) -> None:
    mine = await alice.available("alice")
    assert mine == await root.available("alice")
    assert list(mine) == ["default", "vision", "your_virtual_cluster"]
    assert list(await root.available("bob")) == ["default", "your_virtual_cluster"]
    assert mine["vision"]["most"]["gpus"] == mine["vision"]["mostOnOne"]["gpus"] == {"TITANX": 0, "P100": 0}
    assert mine["default"]["most"]["gpus"] == {"TITANX": 2, "P100": 2}
    assert mine["default"]["most"]["cpus"] == 32
    borrowing = await alice.available("alice", borrowing=True)
    assert borrowing["vision"]["most"]["gpus"] == {"TITANX": 4, "P100": 4}
    with pytest.raises(ApiError) as refusal:
        await bob.available("alice")
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")
    with pytest.raises(ApiError) as refusal:
        await root.available("nobody")
    assert (refusal.value.status, refusal.value.code) == (400, "NoUserError")


async def test_a_password_guesser_waits_and_a_right_password_is_let_in(tmp_path: Path) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    throttle = GuessThrottle(sleep=pause)
    async with open_house(tmp_path, throttle=throttle) as house, house.client("") as guesser:

        async def log_in(password: str, **headers: str) -> int:
            login = {"username": "alice", "password": password}
            return (await guesser.post("/token", json=login, headers=headers)).status_code

        assert {await log_in(f"guess {number}") for number in range(60)} == {400}
        assert max(pauses) == LONGEST_PAUSE
        # another address is not had by saying so
        pauses.clear()
        forged = {"X-Forwarded-For": "10.9.9.9", "X-Real-Ip": "10.9.9.8"}
        assert await log_in("guess", **forged) == 400
        assert pauses == [LONGEST_PAUSE]
        # as late as a wrong one the first time, at once from then on
        pauses.clear()
        assert [await log_in("token-a"), await log_in("token-a")] == [200, 200]
        assert pauses == [LONGEST_PAUSE]
        # another account of that address
        pauses.clear()
        login = {"username": "bob", "password": "token-b"}
        assert (await guesser.post("/token", json=login)).status_code == 200
        assert pauses == []


async def test_wrong_tokens_in_a_header_are_slowed_for_their_address(tmp_path: Path) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async with (
        open_house(tmp_path, throttle=GuessThrottle(lambda: 1.0, sleep=pause)) as house,
        house.client() as alice,
    ):
        assert (await alice.get("/user")).status_code == 200
        for number in range(200):
            wrong = {"Authorization": f"Bearer guess-{number}"}
            assert (await alice.get("/user", headers=wrong)).status_code == 401
        assert max(pauses) == LONGEST_PAUSE
        pauses.clear()
        assert (await alice.get("/user")).status_code == 200
        assert pauses == []
