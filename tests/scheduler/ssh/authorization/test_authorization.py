"""Who is let in, into which task, and what is told of it: asked as the gateway asks."""

from __future__ import annotations

import asyncio
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.api.auth import TokensFile
from pai_scheduler.job.messages import msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.ssh.keys.job_keys import KeyPair
from pai_scheduler.ssh.keys.public_key import PublicKey
from tests.scheduler.ssh.authorization.house import ALICE, ROOT, House, open_house

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
    late = await house.ask("open", login="alice+one", passport=session_token)
    assert (late.status_code, late.json()["message"]) == (404, "The job of this key has ended.")
    # nor does it open the next job of that name
    await house.service.delete_job(ROOT, "alice", "one")
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
    assert (await house.ask("open", login="alice+one", passport=session_token)).status_code == 401


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
async def test_what_proves_nothing_is_refused_alike(house: House, credential: str) -> None:
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
            session_token = answer.json()["passport"]
            answer = await house.ask("open", login=login, passport=session_token)
            assert answer.status_code == 404
        else:
            assert (answer.status_code, answer.json()) == REFUSED


async def test_a_user_name_of_shell_characters_is_only_a_name(house: House) -> None:
    name = "$(id);`id`"
    await house.begin("one", name)
    assert await house.task(f"{name}+one", "token-shell") == "one/worker-0"


# -- passports


async def test_a_passport_is_good_for_its_login_only_and_cannot_be_changed(house: House) -> None:
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
            assert (await house.ask("open", login=login, passport=other)).status_code == 401, other
            note = await house.ask(
                "note", login=login, passport=other, peer="10.0.0.3", event="opened", what=["shell"]
            )
            assert note.status_code == 401
    assert (await house.ask("open", login="bob+theirs", passport=session_token)).status_code == 401
    assert (await house.ask("open", login="alice+one", passport=session_token)).status_code == 200


async def test_who_has_logged_in_by_a_token_is_looked_up_again_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    await house.begin("theirs", "bob")
    session_token = await house.session_token("bob+theirs", "token-root")
    later = int(time.time() * 1000) + 3_600_000
    monkeypatch.setattr(house.service.ssh_authorization, "_now", lambda: later)

    async def opened() -> int:
        return (await house.ask("open", login="bob+theirs", passport=session_token)).status_code

    assert await opened() == 200
    tokens = house.folder / "tokens.json"
    everybody = json.loads(tokens.read_text())
    tokens.write_text(json.dumps({**everybody, "token-root": {"name": "root"}}))
    assert await opened() == 404, "no administrator any more"
    tokens.write_text(json.dumps({name: who for name, who in everybody.items() if name != "token-root"}))
    assert await opened() == 401, "gone"
    tokens.write_text(json.dumps(everybody))
    assert await opened() == 200
    monkeypatch.setattr(house.service.ssh_authorization, "_now", lambda: later + 8 * 24 * 3_600_000)
    assert await opened() == 401, "too old"


# -- which task


async def test_the_way_into_a_task_has_all_that_the_gateway_needs(house: House) -> None:
    job = await house.begin("gang", tasks=2)
    answer = (await house.open("alice+gang+worker-1", "token-a")).json()
    assert (answer["user"], answer["job"], answer["task"]) == ("alice", "gang", "worker-1")
    assert (answer["host"], answer["port"]) == ("127.0.0.1", 4711)
    assert answer["privateKey"].encode() == house.keys.identity(job.id).private
    assert answer["hostKey"] == house.keys.host(job.id).public
    assert answer["forward"] == ["localhost", "127.0.0.1", "::1", "worker-0", "worker-1"]
    assert not answer["isolated"]
    assert answer["notice"] == (
        "Job gang runs without a container: this is the scheduler's own machine and account."
    )
    assert "signals" not in answer
    house.engine.isolated = True
    house.engine.signals = "/a/program"
    answer = (await house.open("alice+gang+worker-1", "token-a")).json()
    assert answer["isolated"]
    assert answer["signals"] == "/a/program"
    assert "notice" not in answer


async def test_a_notebook_server_is_found_by_its_name_in_the_hub(house: House) -> None:
    await house.begin("jupyter-alice-x", extras={"session": {"server": "gpu"}})
    await house.begin("jupyter-alice", extras={"session": {"server": ""}})
    await house.begin("plain")
    assert await house.task("alice+gpu", "token-a") == "jupyter-alice-x/worker-0"
    assert await house.task("alice+notebook", "token-a") == "jupyter-alice/worker-0"
    assert await house.task("alice+jupyter-alice-x", "token-a") == "jupyter-alice-x/worker-0"


async def test_what_is_not_there_or_not_clear_is_said_with_what_there_is(house: House) -> None:
    async def said(login: str, status: int, token: str = "token-a", language: str = "en") -> str:  # noqa: S107
        answer = await house.open(login, token, language=language)
        assert answer.status_code == status, answer.text
        return str(answer.json()["message"])

    assert await said("alice", 404) == "No job of user alice runs."
    await house.begin("gang", tasks=2)
    await house.begin("theirs", "bob")
    assert await said("alice", 409) == (
        "Job gang has several tasks: log in as one of alice+gang+worker-0, alice+gang+worker-1."
    )
    assert await said("alice+gong", 404) == "No job gong of user alice runs. There are: gang."
    assert "没有" in await said("alice+gong", 404, language="zh_CN")
    assert await said("alice+gang+worker-2", 404) == (
        "Job gang has no task worker-2. There are: worker-0 … worker-1."
    )
    await house.begin("other")
    assert await said("alice", 409) == "Several jobs run: log in as one of alice+gang, alice+other."
    await house.service.submit(
        ALICE,
        "alice",
        {"jobName": "big", "image": "x", "taskRoles": [{"name": "main", "cpuNumber": 64, "command": "true"}]},
    )
    assert (await said("alice+big", 409)).startswith("Job big does not run yet. Waiting in virtual cluster")
    house.engine.off = "The image has a program of its own on this port."
    assert await said("alice+other", 409) == "The image has a program of its own on this port."
    house.engine.off = ""


async def test_a_task_that_has_ended_is_said_to_have(house: House) -> None:
    first = "[ $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX = 0 ] || exec sleep 1000"
    await house.begin("gang", tasks=2, command=first)
    await house.until(
        "gang", "alice", lambda job: any(task.state.ended for task in job.attempt.tasks.values())
    )
    answer = await house.open("alice+gang+worker-0", "token-a")
    assert (answer.status_code, answer.json()["message"]) == (409, "Task worker-0 of job gang has ended.")
    assert await house.task("alice+gang", "token-a") == "gang/worker-1"


# -- what is told


async def test_the_story_of_a_job_tells_who_was_in_it_from_where_and_how_long(house: House) -> None:
    job = await house.begin("one")
    login, key = "alice+one", house.key(job)
    session_token = await house.session_token(login, key, "publickey")
    await house.ask("open", login=login, passport=session_token)
    who: dict[str, Any] = {"login": login, "passport": session_token, "peer": "10.0.0.3"}
    assert (await house.ask("note", **who, event="opened", what=["shell"])).status_code == 204
    await house.ask("note", **who, event="opened", what=["forward"], detail="localhost:8888\x1b[2J")
    await house.ask("note", **who, event="closed", what=["shell", "forward"], seconds=35.2)
    assert await house.told("one") == [
        "alice opened a terminal in worker-0 from 10.0.0.3 (the job's key).",
        "alice opened a way to localhost:8888?[2J in worker-0 from 10.0.0.3 (the job's key).",
        "alice left worker-0 after 35 s: a terminal, forwarded ports, from 10.0.0.3.",
    ]


async def test_who_leaves_after_the_end_of_the_job_is_told_of_and_after_its_deletion_harms_nothing(
    house: House,
) -> None:
    await house.begin("one")
    session_token = await house.session_token("alice+one", "token-a")
    await house.ask("open", login="alice+one", passport=session_token)
    await house.end("one")
    who: dict[str, Any] = {
        "login": "alice+one",
        "passport": session_token,
        "peer": "10.0.0.3",
        "what": ["shell"],
    }
    await house.ask("note", **who, event="closed", seconds=3)
    await house.begin("two")  # written after it
    story = await house.service.story(ROOT, "alice", "one")
    assert str(story[-1].entry.message) == "alice left worker-0 after 3 s: a terminal, from 10.0.0.3."
    session_token = await house.session_token("alice+two", "token-a")
    await house.ask("open", login="alice+two", passport=session_token)
    await house.service.delete_job(ROOT, "alice", "two")
    who = {"login": "alice+two", "passport": session_token, "peer": "10.0.0.3", "what": ["shell"]}
    await house.ask("note", **who, event="opened")
    await house.begin("three")
    await house.ask("note", **who, event="closed", seconds=3)
    assert (await house.begin("four")).name == "four"


async def test_a_passport_outlives_a_restart_of_the_service(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.begin("one")
        session_token = await house.session_token("alice+one", "token-a")
        await house.ask("open", login="alice+one", passport=session_token)
        house.service._ssh_authorization._opened.clear()  # type: ignore[union-attr]  # as a new one
        who: dict[str, Any] = {
            "login": "alice+one",
            "passport": session_token,
            "peer": "10.0.0.3",
            "what": ["exec"],
        }
        await house.ask("note", **who, event="closed", seconds=1)
        assert await house.told("one") == ["alice left worker-0 after 1 s: a command, from 10.0.0.3."]


async def test_nobody_fills_a_story_with_connections(house: House) -> None:
    await house.begin("one")
    session_token = await house.session_token("alice+one", "token-a")
    await house.ask("open", login="alice+one", passport=session_token)
    ssh_authorization = house.service.ssh_authorization
    opened = ("alice+one", session_token, "10.0.0.3", "opened", ["exec"], "", 0.0)
    await asyncio.gather(*(ssh_authorization.note(*opened) for _ in range(5000)))
    told = await house.told("one")
    assert 300 <= len(told) <= 310
    assert told[-1].startswith("More is opened here than is written down")


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


async def test_who_holds_another_passport_than_their_own_may_not_stay(house: House) -> None:
    mine, theirs = await house.held("alice", "token-a"), await house.held("bob", "token-b")
    turned = {**mine, "credential": theirs["credential"]}
    swapped = {**mine, "passport": theirs["passport"]}
    assert await house.gone(mine, turned, swapped, {**mine, "passport": "x"}) == [1, 2, 3]


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
