"""Who is let in, into which task, and what is told of it: asked as the gateway asks."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from pai_scheduler.ssh.keys import KeyPair
from tests.scheduler.service.house import ALICE, ROOT, House, open_house

OWN = KeyPair.from_seed(b"a" * 32).public
REFUSED = (401, {"code": "UnauthorizedUserError", "message": "Nobody is let in with this."})


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
    await house.service.admission.submit(
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


async def test_job_events_tell_who_was_in_a_job_from_where_and_how_long(house: House) -> None:
    job = await house.begin("one")
    login, key = "alice+one", house.key(job)
    session_token = await house.session_token(login, key, "publickey")
    await house.ask("open", login=login, session_token=session_token)
    who: dict[str, Any] = {"login": login, "session_token": session_token, "peer": "10.0.0.3"}
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
    await house.ask("open", login="alice+one", session_token=session_token)
    await house.end("one")
    who: dict[str, Any] = {
        "login": "alice+one",
        "session_token": session_token,
        "peer": "10.0.0.3",
        "what": ["shell"],
    }
    await house.ask("note", **who, event="closed", seconds=3)
    await house.begin("two")  # written after it
    events = await house.service.job_events.read(ROOT, "alice", "one")
    assert str(events[-1].entry.message) == "alice left worker-0 after 3 s: a terminal, from 10.0.0.3."
    session_token = await house.session_token("alice+two", "token-a")
    await house.ask("open", login="alice+two", session_token=session_token)
    await house.service.jobs.delete(ROOT, "alice", "two")
    who = {"login": "alice+two", "session_token": session_token, "peer": "10.0.0.3", "what": ["shell"]}
    await house.ask("note", **who, event="opened")
    await house.begin("three")
    await house.ask("note", **who, event="closed", seconds=3)
    assert (await house.begin("four")).name == "four"


async def test_a_session_token_outlives_a_restart_of_the_service(tmp_path: Path) -> None:
    async with open_house(tmp_path) as house:
        await house.begin("one")
        session_token = await house.session_token("alice+one", "token-a")
        await house.ask("open", login="alice+one", session_token=session_token)
        house.service._ssh_authorization._opened.clear()  # type: ignore[union-attr]  # as a new one
        who: dict[str, Any] = {
            "login": "alice+one",
            "session_token": session_token,
            "peer": "10.0.0.3",
            "what": ["exec"],
        }
        await house.ask("note", **who, event="closed", seconds=1)
        assert await house.told("one") == ["alice left worker-0 after 1 s: a command, from 10.0.0.3."]


async def test_nobody_fills_the_job_events_with_connections(house: House) -> None:
    await house.begin("one")
    session_token = await house.session_token("alice+one", "token-a")
    await house.ask("open", login="alice+one", session_token=session_token)
    ssh_authorization = house.service.ssh_authorization
    opened = ("alice+one", session_token, "10.0.0.3", "opened", ["exec"], "", 0.0)
    await asyncio.gather(*(ssh_authorization.note(*opened) for _ in range(5000)))
    told = await house.told("one")
    assert 300 <= len(told) <= 310
    assert told[-1].startswith("More is opened here than is written down")
