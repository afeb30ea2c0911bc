"""Who logs in for SSH, by which proof; what session tokens are good for; who may stay."""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest

from pai_scheduler.api.auth import TokensFile
from pai_scheduler.i18n import msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.ssh.keys import KeyPair
from pai_scheduler.ssh.public_key import PublicKey
from tests.scheduler.service.house import ROOT, House

OWN = KeyPair.from_seed(b"a" * 32).public
REFUSED = (401, {"code": "UnauthorizedUserError", "message": "Nobody is let in with this."})


# -- who


async def test_a_user_logs_in_with_a_token_as_the_user_alone(house: House) -> None:
    answer = await house.login("alice+job", "token-a")
    assert (answer.json()["user"], answer.json()["by"]) == ("alice", "token")
    for login in ("bob+job", "alic", "ALICE", "root", "a+b", "+alice", "", "++"):
        refused = await house.login(login, "token-a")
        assert (refused.status_code, refused.json()) == REFUSED, login


async def test_an_administrator_may_come_into_everybodys_tasks_under_their_own_name(house: House) -> None:
    await house.begin("theirs", "bob")
    assert (await house.login("bob+theirs", "token-root")).json()["user"] == "root"
    assert await house.task("bob+theirs", "token-root") == "theirs/worker-0"


async def test_a_user_with_a_plus_in_the_name_is_understood(house: House) -> None:
    await house.begin("mine", "a+b")
    assert await house.task("a+b+mine+worker-0", "token-plus") == "mine/worker-0"
    assert await house.task("a+b", "token-plus") == "mine/worker-0"


async def test_the_key_of_a_job_opens_that_job_and_no_other(house: House) -> None:
    job, other = await house.begin("one"), await house.begin("two")
    answer = await house.login("alice+one", house.key(job), "publickey")
    assert (answer.json()["user"], answer.json()["by"]) == ("alice", "the job's key")
    assert await house.task("alice+one+worker-0", house.key(job), "publickey") == "one/worker-0"
    # two jobs run, and the key says which is meant
    assert await house.task("alice", house.key(other), "publickey") == "two/worker-0"
    for login in ("alice+two", "bob+one", "bob", "alice+three"):
        refused = await house.login(login, house.key(job), "publickey")
        assert (refused.status_code, refused.json()) == REFUSED, login


async def test_the_key_of_an_ended_job_opens_nothing(house: House) -> None:
    job = await house.begin("one")
    session_token = await house.session_token("alice+one", house.key(job), "publickey")
    await house.end("one")
    refused = await house.login("alice+one", house.key(job), "publickey")
    assert (refused.status_code, refused.json()) == REFUSED
    late = await house.ask("open", login="alice+one", session_token=session_token)
    assert (late.status_code, late.json()["message"]) == (404, "The job of this key has ended.")
    # nor does it open the next job of that name
    await house.service.jobs.delete(ROOT, "alice", "one")
    await house.begin("one")
    assert (await house.login("alice+one", house.key(job), "publickey")).status_code == 401


async def test_a_registered_key_opens_every_task_of_its_user_until_it_is_removed(house: House) -> None:
    await house.begin("one")
    assert (await house.login("alice+one", OWN, "publickey")).status_code == 401
    house.store.add_public_key("alice", PublicKey.parse(f"{OWN} laptop"), 1, 50)
    fingerprint = PublicKey.parse(OWN).fingerprint
    assert (await house.login("alice+one", OWN, "publickey")).json()["by"] == f"key {fingerprint}"
    session_token = await house.session_token("alice+one", f"{OWN} a@b", "publickey")
    assert await house.task("alice", OWN, "publickey") == "one/worker-0"
    assert (await house.login("bob", OWN, "publickey")).status_code == 401
    house.store.remove_public_key("alice", fingerprint)
    assert (await house.login("alice+one", OWN, "publickey")).status_code == 401
    assert (await house.ask("open", login="alice+one", session_token=session_token)).status_code == 401


async def test_the_key_of_a_user_who_is_gone_opens_nothing(house: House) -> None:
    house.store.add_public_key("ghost", PublicKey.parse(OWN), 1, 50)
    assert (await house.login("ghost", OWN, "publickey")).status_code == 401


async def test_the_token_of_a_job_for_the_storage_opens_no_task(house: House) -> None:
    job = await house.begin("one")
    files = house.service._job_files
    assert files is not None
    for login in ("alice+one", "alice"):
        refused = await house.login(login, files.token(job))
        assert (refused.status_code, refused.json()) == REFUSED


@pytest.mark.parametrize(
    "credential",
    [
        "",
        "  ",
        "token-x",
        "\0",
        "\ud800",
        "token-a\n",
        "x" * 100_000,
        'command="sh" ' + OWN,
        OWN + "\n" + OWN,
    ],
)
async def test_a_credential_that_proves_nothing_is_refused_with_the_same_answer(
    house: House, credential: str
) -> None:
    await house.begin("one")
    for method in ("password", "publickey"):
        refused = await house.login("alice+one", credential, method)
        assert (refused.status_code, refused.json()) == REFUSED


@pytest.mark.parametrize(
    "login",
    ["alice\0", "\ud800", "a" * 100_000, "../alice", "alice+../../etc", "$(id)+one", "alice+one+worker-0\n"],
)
async def test_a_hostile_login_name_is_refused_calmly(house: House, login: str) -> None:
    await house.begin("one")
    for method, credential in (("password", "token-a"), ("publickey", OWN), ("password", "token-root")):
        answer = await house.login(login, credential, method)
        if answer.status_code == 200:
            session_token = answer.json()["session_token"]
            answer = await house.ask("open", login=login, session_token=session_token)
            assert answer.status_code == 404
        else:
            assert (answer.status_code, answer.json()) == REFUSED


async def test_a_user_name_of_shell_characters_is_only_a_name(house: House) -> None:
    name = "$(id);`id`"
    await house.begin("one", name)
    assert await house.task(f"{name}+one", "token-shell") == "one/worker-0"


# -- session tokens


async def test_a_session_token_is_good_for_its_login_only_and_cannot_be_changed(house: House) -> None:
    await house.begin("one")
    await house.begin("theirs", "bob")
    session_token = await house.session_token("alice+one", "token-a")
    body, _, seal = session_token.partition(".")
    words = json.loads(urlsafe_b64decode(body))
    forged = [
        urlsafe_b64encode(json.dumps({**words, **change}).encode()).decode() + "." + seal
        for change in ({"admin": True}, {"login": "bob+theirs"}, {"user": "bob"})
    ]
    for other in (
        *forged,
        "",
        ".",
        session_token[:-1],
        session_token + "0",
        f"{body}.",
        "é" + session_token,
        "\ud800",
    ):
        for login in ("alice+one", "bob+theirs"):
            assert (await house.ask("open", login=login, session_token=other)).status_code == 401, other
            note = await house.ask(
                "note", login=login, session_token=other, peer="10.0.0.3", event="opened", what=["shell"]
            )
            assert note.status_code == 401
    assert (await house.ask("open", login="bob+theirs", session_token=session_token)).status_code == 401
    assert (await house.ask("open", login="alice+one", session_token=session_token)).status_code == 200


async def test_who_has_logged_in_by_a_token_is_looked_up_again_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.begin("theirs", "bob")
    session_token = await house.session_token("bob+theirs", "token-root")
    later = int(time.time() * 1000) + 3_600_000
    ssh_authorization = house.service.ssh_authorization
    monkeypatch.setattr(ssh_authorization.authentication, "_now", lambda: later)

    async def opened() -> int:
        return (await house.ask("open", login="bob+theirs", session_token=session_token)).status_code

    assert await opened() == 200
    tokens = house.folder / "tokens.json"
    everybody = json.loads(tokens.read_text())
    tokens.write_text(json.dumps({**everybody, "token-root": {"name": "root"}}))
    assert await opened() == 404, "no administrator any more"
    tokens.write_text(json.dumps({name: who for name, who in everybody.items() if name != "token-root"}))
    assert await opened() == 401, "gone"
    tokens.write_text(json.dumps(everybody))
    assert await opened() == 200
    monkeypatch.setattr(ssh_authorization, "_now", lambda: later + 8 * 24 * 3_600_000)
    assert await opened() == 401, "too old"


# -- who may stay


async def test_what_is_revoked_ends_what_it_opened_and_nothing_else(house: House) -> None:
    job = await house.begin("one")
    house.store.add_public_key("alice", PublicKey.parse(OWN), 1, 50)
    held = [
        await house.held("alice", "token-a"),
        await house.held("alice", "token-root"),
        await house.held("alice", OWN, "publickey"),
        await house.held("alice+one", house.key(job), "publickey"),
        await house.held("bob", "token-b"),
    ]
    assert await house.gone(*held) == []
    house.store.remove_public_key("alice", PublicKey.parse(OWN).fingerprint)
    assert await house.gone(*held) == [2]
    # root is there, and no administrator any more; alice has another token than the one she logged in with
    house.rewrite_tokens({"new-of-alice": {"name": "alice"}, "token-root": {"name": "root"}})
    assert await house.gone(*held) == [0, 1, 2, 4]
    # with the last token a user is gone, and the keys of the user's jobs open nothing
    house.rewrite_tokens({"token-root": {"name": "root"}})
    assert await house.gone(*held) == [0, 1, 2, 3, 4]


async def test_who_holds_another_session_token_than_their_own_may_not_stay(house: House) -> None:
    mine, theirs = await house.held("alice", "token-a"), await house.held("bob", "token-b")
    turned = {**mine, "credential": theirs["credential"]}
    swapped = {**mine, "session_token": theirs["session_token"]}
    assert await house.gone(mine, turned, swapped, {**mine, "session_token": "x"}) == [1, 2, 3]


async def test_nobody_is_gone_while_nobody_can_be_asked(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object) -> None:
        raise RequestError(503, "HubUnreachableError", msg("{reason}", reason="away"))

    job = await house.begin("one")
    house.store.add_public_key("alice", PublicKey.parse(OWN), 1, 50)
    held = [
        await house.held("alice", "token-a"),
        await house.held("alice", OWN, "publickey"),
        await house.held("alice+one", house.key(job), "publickey"),
    ]
    monkeypatch.setattr(TokensFile, "identify", away)
    monkeypatch.setattr(TokensFile, "find", away)
    assert await house.gone(*held) == []
