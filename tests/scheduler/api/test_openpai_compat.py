"""`--openpai-compat`: old clients read without a token, where they are used to; nobody writes without one."""

from __future__ import annotations

import httpx
import pytest

from tests.scheduler.api.addresses import addresses
from tests.testbed.answers import check_answer
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job


@pytest.fixture(scope="module")
def compat(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler for old clients, with one job of alice's that waits."""
    running = module_scheduler("--openpai-compat")
    too_big = [{"name": "main", "command": "true", "gpuNumber": 99}]
    with httpx.Client(headers={"Authorization": "Bearer token-of-alice"}, trust_env=False) as alice:
        answer = alice.post(f"{running.url}/api/v1/jobs", json=hello_job("waits", taskRoles=too_big))
        answer.raise_for_status()
    return running


def stranger(scheduler: RunningScheduler) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=scheduler.url, trust_env=False, timeout=30, event_hooks={"response": [check_answer]}
    )


@pytest.mark.parametrize("base", ["/api/v1", "/rest-server/api/v1"])
async def test_anybody_reads_what_openpai_showed_to_anybody(compat: RunningScheduler, base: str) -> None:
    async with stranger(compat) as http:
        assert [job["name"] for job in (await http.get(f"{base}/jobs")).json()] == ["waits"]
        assert (await http.get(f"{base}/jobs?username=bob")).json() == []
        assert [job["name"] for job in (await http.get(f"{base}/user/alice/jobs")).json()] == ["waits"]
        job = f"{base}/user/alice/jobs/waits"
        assert (await http.get(job)).json()["jobStatus"]["username"] == "alice"
        assert (await http.get(f"{job}/config")).json()["jobName"] == "waits"
        assert (await http.get(f"{job}/ssh")).json()["code"] == "NoJobSshInfoError"
        assert "default" in (await http.get(f"{base}/virtual-clusters")).json()
        assert (await http.get(f"{base}/virtual-clusters/default")).status_code == 200


async def test_nobody_writes_or_reads_anything_else_without_a_token(compat: RunningScheduler) -> None:
    """All addresses and methods but those of the test above and those that never need one."""
    refused = 0
    async with stranger(compat) as http:
        for path, handler in addresses():
            for method in handler.allowed_methods():
                if handler.anonymous or (method == "GET" and handler.public_in_openpai):
                    continue
                for base in ("/api/v1", "/rest-server/api/v1"):
                    answer = await http.request(method, base + path, content=b"{}")
                    assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError"), path
                    refused += 1
    assert refused > 30


async def test_a_token_is_still_who_it_is(compat: RunningScheduler) -> None:
    async with stranger(compat) as http:
        bob = {"Authorization": "Bearer token-of-bob"}
        assert (await http.get("/api/v1/jobs", headers=bob)).json() == []
        assert (await http.get("/api/v1/user/alice/jobs/waits", headers=bob)).status_code == 404
        wrong = {"Authorization": "Bearer wrong"}
        assert (await http.get("/api/v1/jobs", headers=wrong)).status_code == 401


async def test_an_old_client_submits_with_a_token_at_the_old_address(compat: RunningScheduler) -> None:
    async with stranger(compat) as http:
        login = await http.post(
            "/rest-server/api/v1/token", data={"username": "alice", "password": "token-of-alice"}
        )
        headers = {"Authorization": f"Bearer {login.json()['token']}"}
        answer = await http.post(
            "/rest-server/api/v1/user/alice/jobs", json=hello_job("old"), headers=headers
        )
        assert answer.status_code == 202
        assert (await http.get(answer.headers["Location"])).json()["name"] == "old"
        assert (await http.delete(answer.headers["Location"], headers=headers)).status_code == 202


async def test_files_are_where_they_were_for_those_who_have_a_token(compat: RunningScheduler) -> None:
    async with httpx.AsyncClient(base_url=compat.url, trust_env=False) as http:
        for path in ("/webhdfs/api/v1/", "/webhdfs/api/v1/Output/alice?op=LISTSTATUS"):
            assert (await http.get(path)).status_code == 401
        headers = {"Authorization": "Bearer token-of-alice"}
        answer = await http.get("/webhdfs/api/v1/?op=GETHOMEDIRECTORY", headers=headers)
        assert answer.json() == {"Path": "/alice"}
        nothing = await http.get("/rest-server/")
        assert (nothing.status_code, nothing.json()["code"]) == (404, "NoApiError")


async def test_the_log_says_loudly_that_everybody_reads(
    compat: RunningScheduler, scheduler: RunningScheduler
) -> None:
    assert "WARNING" in next(line for line in compat.log.read_text().splitlines() if "EVERYBODY" in line)
    assert "EVERYBODY" not in scheduler.log.read_text()


async def test_without_the_option_nothing_of_it_is_so(scheduler: RunningScheduler) -> None:
    async with httpx.AsyncClient(base_url=scheduler.url, trust_env=False) as http:
        for path in ("/jobs", "/user/alice/jobs", "/user/alice/jobs/x/config", "/virtual-clusters"):
            assert (await http.get(f"/api/v1{path}")).status_code == 401
        assert (await http.get("/rest-server/api/v1/jobs")).json()["code"] == "NoApiError"
