"""What answers, who I am, and logging in as old clients do."""

from __future__ import annotations

from importlib.metadata import version

import httpx
import pytest

from pai_scheduler.client import ApiError, Client


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
    answer = await http.post("/token", **({"data": login} if form else {"json": login}))
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
    assert await alice._json("GET", "user/alice") == me
    assert await root._json("GET", "user/alice") == me
    with pytest.raises(ApiError) as refusal:
        await alice._json("GET", "user/root")
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")
    with pytest.raises(ApiError) as refusal:
        await root._json("GET", "user/nobody")
    assert (refusal.value.status, refusal.value.code) == (400, "NoUserError")
