"""How a job's tasks are reached, and its key: asked with a token, by a link, and with neither."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.scheduler.service.house import House, open_house
from tests.testbed.answers import check_answer

JOB = "/user/alice/jobs/one"


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house


async def get(house: House, path: str, token: str = "token-a") -> httpx.Response:  # noqa: S107
    async with house.client(token) as client:
        client.event_hooks = {"response": [check_answer]}
        return await client.get(path)


async def test_every_running_task_is_reached_through_the_gateway(house: House) -> None:
    await house.begin("one", tasks=2)
    answer = (await get(house, f"{JOB}/ssh")).json()
    assert [(c["task"], c["sshUser"]) for c in answer["containers"]] == [
        ("worker-0", "alice+one+worker-0"),
        ("worker-1", "alice+one+worker-1"),
    ]
    for container in answer["containers"]:
        assert (container["sshIp"], container["sshPort"]) == ("127.0.0.1", "2222")
        assert not container["published"]
        assert container["off"] is None
        assert container["id"]
    assert answer["gateway"] == {"host": None, "port": 2222, "hostKey": house.keys.gateway_host().public}
    key = answer["keyPair"]
    assert key["folderPath"] == "/Container/alice/alice~one/ssh/keyFiles"
    assert (key["privateKeyFileName"], key["publicKeyFileName"]) == ("alice~one", "alice~one.pub")


async def test_one_task_can_be_asked_for_by_its_name(house: House) -> None:
    await house.begin("one", tasks=2)
    (container,) = (await get(house, f"{JOB}/ssh?task=worker-1")).json()["containers"]
    assert container["sshUser"] == "alice+one+worker-1"
    elsewhere = await get(house, f"{JOB}/ssh?task=worker-2")
    assert (elsewhere.status_code, elsewhere.json()["code"]) == (404, "NoJobSshInfoError")
    assert elsewhere.json()["message"] == "Task worker-2 of job one does not run now."


async def test_a_published_task_is_reached_as_root(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    await house.begin("one")
    # (tasks with a machine of their own, as containers have)
    monkeypatch.setattr(house.engine, "shares_host_ports", False)
    house.engine.published = ("192.0.2.7", 40022)
    (container,) = (await get(house, f"{JOB}/ssh")).json()["containers"]
    assert container["published"]
    assert (container["sshIp"], container["sshPort"], container["sshUser"]) == ("192.0.2.7", "40022", "root")
    house.engine.off = "The image has no room for it."
    (container,) = (await get(house, f"{JOB}/ssh")).json()["containers"]
    assert container["off"] == "The image has no room for it."


async def test_a_notebook_server_is_called_by_its_name_in_the_hub(house: House) -> None:
    await house.begin("notebook_1", extras={"session": {"server": ""}})
    await house.begin("notebook.gpu_2", extras={"session": {"server": "gpu"}})
    for name, job in (("notebook", "notebook_1"), ("gpu", "notebook.gpu_2")):
        info = await get(house, f"/user/alice/jobs/{name}/ssh")
        assert [each["sshUser"] for each in info.json()["containers"]] == [f"alice+{job}+worker-0"]
        key = await get(house, f"/user/alice/jobs/{name}/ssh/key")
        assert f"alice~{job}" in key.headers["Content-Disposition"]
        for path in ("ssh", "ssh/key"):
            others = await get(house, f"/user/alice/jobs/{name}/{path}", "token-b")
            assert others.status_code == 404
            assert job not in others.text
    # a job of that name comes first
    await house.begin("gpu")
    info = await get(house, "/user/alice/jobs/gpu/ssh")
    assert info.json()["containers"][0]["sshUser"] == "alice+gpu+worker-0"


async def test_a_job_that_has_ended_has_no_ssh_address_and_no_key(house: House) -> None:
    await house.begin("one")
    await house.end("one")
    for path in (f"{JOB}/ssh", f"{JOB}/ssh/key"):
        refused = await get(house, path)
        assert (refused.status_code, refused.json()["code"]) == (404, "NoJobSshInfoError")


async def test_the_key_comes_in_every_form_under_its_own_name(house: House) -> None:
    job = await house.begin("one")
    plain = await get(house, f"{JOB}/ssh/key")
    assert plain.content == house.keys.identity(job.id).private
    assert plain.headers["Content-Disposition"] == 'attachment; filename="alice~one"'
    assert plain.headers["Cache-Control"] == "no-store"
    putty = await get(house, f"{JOB}/ssh/key?format=ppk")
    assert putty.text.startswith("PuTTY-User-Key-File-3: ssh-ed25519\r\n")
    assert "alice~one.ppk" in putty.headers["Content-Disposition"]
    public = await get(house, f"{JOB}/ssh/key?format=public")
    assert public.text == f"{house.key(job)} alice~one\n"
    refused = await get(house, f"{JOB}/ssh/key?format=der")
    assert refused.json()["message"] == "There is no format der, only openssh, ppk, public."


async def test_the_link_gives_the_key_without_a_token(house: House) -> None:
    job = await house.begin("one")
    link = (await get(house, f"{JOB}/ssh")).json()["keyPair"]["privateKeyDirectDownloadLink"]
    async with httpx.AsyncClient(trust_env=False) as stranger:
        answer = await stranger.get(link)
        assert answer.content == house.keys.identity(job.id).private
        await house.end("one")
        late = await stranger.get(link)
        assert (late.status_code, late.json()["code"]) == (404, "NoJobSshInfoError")


async def test_a_link_that_was_changed_opens_nothing_and_tells_nothing(house: House) -> None:
    await house.begin("one")
    await house.begin("two")
    link = urlsplit((await get(house, f"{JOB}/ssh")).json()["keyPair"]["privateKeyDirectDownloadLink"])
    query = {name: values[0] for name, values in parse_qs(link.query).items()}
    expires, signature = query["expires"], query["signature"]
    changed = [
        ("one", f"expires={int(expires) + 1}&signature={signature}"),
        ("one", f"expires={expires}&signature={signature[:-1]}{'1' if signature.endswith('0') else '0'}"),
        ("one", f"expires=&signature={signature}"),
        ("one", f"signature={signature}"),
        ("one", f"expires={expires}&signature="),
        ("one", f"expires=1&signature={house.keys.signature('1')}"),
        ("two", link.query),
        ("none", link.query),
    ]
    said = set()
    async with httpx.AsyncClient(trust_env=False, event_hooks={"response": [check_answer]}) as stranger:
        for name, parameters in changed:
            answer = await stranger.get(f"{house.url}/api/v1/user/alice/jobs/{name}/ssh/key?{parameters}")
            said.add((answer.status_code, answer.text))
        assert len(said) == 1
        assert said.pop()[0] == 401
        # nor does nothing at all open it
        assert (await stranger.get(f"{house.url}/api/v1{JOB}/ssh/key")).status_code == 401
        assert (await stranger.get(f"{house.url}/api/v1{JOB}/ssh")).status_code == 401


async def test_a_link_is_worth_nothing_beside_another_users_token(house: House) -> None:
    await house.begin("one")
    link = (await get(house, f"{JOB}/ssh")).json()["keyPair"]["privateKeyDirectDownloadLink"]
    place = link.removeprefix(f"{house.url}/api/v1")
    assert (await get(house, place, "token-b")).json()["code"] == "NoJobError"
    for path in (f"{JOB}/ssh", f"{JOB}/ssh/key"):
        assert (await get(house, path, "token-b")).json()["code"] == "NoJobError"
        assert (await get(house, path, "token-root")).status_code == 200


async def test_clients_of_openpai_read_where_tasks_are_without_a_token_but_no_key(tmp_path: Path) -> None:
    async with open_house(tmp_path, openpai_compat=True) as house:
        await house.begin("one")
        async with httpx.AsyncClient(trust_env=False) as stranger:
            answer = await stranger.get(f"{house.url}/rest-server/api/v1{JOB}/ssh")
            assert answer.json()["containers"][0]["sshUser"] == "alice+one+worker-0"
            assert answer.json()["keyPair"]["privateKeyDirectDownloadLink"] == ""
            assert (await stranger.get(f"{house.url}/rest-server/api/v1{JOB}/ssh/key")).status_code == 401
