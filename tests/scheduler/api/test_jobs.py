"""Submitting, listing, showing, stopping and deleting over REST, with real tasks behind it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import yaml

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.job.json_text import loads_jsonc
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

TINY = """
nodes: [{name: node-a, cpus: 1, memoryMB: 100, gpus: {P100: 1}}]
virtualClusters: {default: {capacity: 50}, your_virtual_cluster: {capacity: 50}}
"""
DOCUMENTS = sorted((Path(__file__).parents[2] / "fixtures" / "jobs").iterdir())


async def until_ended(client: Client, user: str, name: str) -> None:
    """Wait for the end of a job."""
    async for _ in client.events(user, name):
        pass


@pytest.fixture(scope="module")
def tiny(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler on whose cluster no job of the documents fits: they are kept, and download nothing."""
    return module_scheduler(cluster=TINY)


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: file.stem)
async def test_the_documents_jobs_are_accepted_unchanged(tiny: RunningScheduler, file: Path) -> None:
    job = loads_jsonc(file.read_text())
    async with httpx.AsyncClient(
        base_url=f"{tiny.url}/api/v1", headers={"Authorization": "Bearer token-of-alice"}, trust_env=False
    ) as http:
        answer = await http.post("/user/alice/jobs", content=json.dumps(job))
        assert answer.status_code == 202, answer.text
        assert answer.json()["message"] == f"update job {job['jobName']} successfully"
        assert answer.headers["Location"] == f"/api/v1/user/alice/jobs/{job['jobName']}"
        path = f"/user/alice/jobs/{job['jobName']}"
        config = (await http.get(f"{path}/config")).json()
        assert config == {key: value for key, value in job.items() if key != "tmp"}
        detail = (await http.get(path)).json()
        assert list(detail["taskRoles"]) == [role["name"] for role in job["taskRoles"]]
        assert detail["jobStatus"]["state"] == "WAITING"
        assert detail["jobStatus"]["waitingReason"]


async def test_a_job_goes_from_submission_to_its_log(alice: Client) -> None:
    await alice.submit(hello_job("hello", "echo out; echo err >&2; exit 3"))
    await until_ended(alice, "alice", "hello")
    detail = await alice.job("alice", "hello")
    status = detail["jobStatus"]
    assert (status["state"], status["subState"], status["appExitCode"]) == ("FAILED", "ENDED", 3)
    assert status["appExitSpec"] is not None
    assert status["appExitSpec"]["code"] == 255
    assert status["appExitType"] == status["appExitSpec"]["type"]
    assert (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == ("main", 0)
    assert status["appExitDiagnostics"]
    assert status["waitingReason"] == ""
    assert status["appProgress"] == 1.0
    task = detail["taskRoles"]["main"]["taskStatuses"][0]
    assert (task["taskIndex"], task["taskState"], task["containerExitCode"]) == (0, "FAILED", 3)
    assert set(task["containerPorts"]) == {"http", "ssh"}
    assert task["containerLog"].endswith("/user/alice/jobs/hello/taskRoles/main/tasks/0/logs/all?attempt=0")
    assert await alice.log("alice", "hello", "main", 0, "stdout") == b"out\n"
    assert await alice.log("alice", "hello", "main", 0, "stderr") == b"err\n"
    assert task["node"] == "node-a"


async def test_every_attempt_is_listed_with_its_node(alice: Client) -> None:
    await alice.submit(hello_job("tries-again", "exit 7", retryCount=1))
    await until_ended(alice, "alice", "tries-again")
    attempts = await alice.attempts("alice", "tries-again")
    assert [attempt["attempt"] for attempt in attempts] == list(range(len(attempts)))
    # (another program of this machine may have had a port: such an attempt does not count)
    ran = [attempt for attempt in attempts if attempt["exitCode"] == 7]
    assert len(ran) == 2
    for attempt in ran:
        assert attempt["state"] == "FAILED"
        assert attempt["trigger"] == {"taskRole": "main", "taskIndex": 0}
        assert attempt["taskRoles"]["main"]["taskStatuses"][0]["node"] == "node-a"
        assert attempt["reason"]
    status = (await alice.job("alice", "tries-again"))["jobStatus"]
    details = status["retryDetails"]
    assert details["user"] == 1
    assert status["retries"] == details["user"] + details["platform"] + details["resource"]


async def test_attempts_are_listed_without_their_tasks_or_one_by_itself(
    alice: Client, http: httpx.AsyncClient
) -> None:
    await alice.submit(hello_job("tries-twice", "exit 7", retryCount=1))
    await until_ended(alice, "alice", "tries-twice")
    path = "/user/alice/jobs/tries-twice/attempts"
    whole = (await http.get(path)).json()
    assert (await http.get(f"{path}?tasks=1")).json() == whole
    assert (await http.get(f"{path}?tasks=0")).json() == [{**one, "taskRoles": {}} for one in whole]
    assert (await http.get(f"{path}?attempt=1")).json() == whole[1:2]
    assert (await http.get(f"{path}?attempt=99")).json() == []
    assert (await http.get(f"{path}?attempt=-1")).status_code == 400
    assert (await http.get(f"{path}?tasks=maybe")).status_code == 400


async def test_the_list_may_be_of_some_states_only(alice: Client) -> None:
    await alice.submit(hello_job("of-states-over"))
    async for _ in alice.events("alice", "of-states-over"):
        pass
    await alice.submit(
        hello_job("of-states-waits", taskRoles=[{"name": "a", "command": "true", "gpuNumber": 99}])
    )

    async def listed(*states: str) -> set[str]:
        jobs = await alice.jobs(states=states)
        assert {job["state"] for job in jobs} <= set(states)
        return {job["name"] for job in jobs}

    assert "of-states-waits" in await listed("WAITING", "RUNNING")
    assert "of-states-over" not in await listed("WAITING", "RUNNING")
    assert {"of-states-over", "of-states-waits"} <= await listed("SUCCEEDED", "WAITING")
    with pytest.raises(ApiError) as refusal:
        await alice.jobs(states=["WAITING", "SLEEPING"])
    assert (refusal.value.status, refusal.value.code) == (400, "InvalidParametersError")
    assert refusal.value.message == (
        "The query parameter state is wrong: there is no state SLEEPING; "
        "there are: WAITING, RUNNING, SUCCEEDED, FAILED, STOPPED."
    )
    await alice.delete("alice", "of-states-waits")


async def test_the_list_has_the_newest_first(alice: Client) -> None:
    for name in ("list-1", "list-2"):
        await alice.submit(hello_job(name))
    names = [job["name"] for job in await alice.jobs()]
    assert names.index("list-2") < names.index("list-1")
    item = next(job for job in await alice.jobs() if job["name"] == "list-2")
    assert item["username"] == "alice"
    assert (item["totalTaskNumber"], item["totalTaskRoleNumber"], item["totalGpuNumber"]) == (1, 1, 0)
    assert item["virtualCluster"] == "default"
    assert item["executionType"] == "START"


async def test_a_running_job_is_stopped(alice: Client) -> None:
    await alice.submit(hello_job("to-be-stopped", "sleep 600"))
    async for event in alice.events("alice", "to-be-stopped"):
        if event["type"] == "running":
            await alice.stop("alice", "to-be-stopped")
    status = (await alice.job("alice", "to-be-stopped"))["jobStatus"]
    assert (status["state"], status["executionType"], status["appExitCode"]) == ("STOPPED", "STOP", -7351)
    # stopping it again is no error, starting it again is
    await alice.stop("alice", "to-be-stopped")


async def test_why_a_job_was_stopped_is_told_with_its_end(http: httpx.AsyncClient, alice: Client) -> None:
    await alice.submit(hello_job("stopped-with-a-reason", "sleep 600"))
    await alice.stop("alice", "stopped-with-a-reason", reason="idle {for}\n an hour")
    await alice.stop("alice", "stopped-with-a-reason", reason="too late")
    await until_ended(alice, "alice", "stopped-with-a-reason")
    status = (await alice.job("alice", "stopped-with-a-reason"))["jobStatus"]
    assert status["appExitDiagnostics"] == "Stopped by alice: idle {for} an hour"
    events = await alice.list_events("alice", "stopped-with-a-reason")
    (stop,) = [event["data"] for event in events if event["type"] == "stop-requested"]
    assert stop == {"by": "alice", "reason": "idle {for} an hour"}
    for reason in ("x" * 501, 1, None, ["idle"]):
        answer = await http.put(
            "/user/alice/jobs/stopped-with-a-reason/executionType", json={"value": "STOP", "reason": reason}
        )
        assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "$.reason")


async def test_an_ended_job_is_not_started_again(http: httpx.AsyncClient, alice: Client) -> None:
    await alice.submit(hello_job("ended"))
    assert (await http.put("/user/alice/jobs/ended/executionType", json={"value": "START"})).status_code in (
        202,
        409,
    )
    await until_ended(alice, "alice", "ended")
    answer = await http.put("/user/alice/jobs/ended/executionType", json={"value": "START"})
    assert (answer.status_code, answer.json()["code"]) == (409, "ConflictJobError")
    answer = await http.put("/user/alice/jobs/ended/executionType", json={"value": "PAUSE"})
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "$.value")


async def test_a_deleted_job_is_gone_and_its_name_free(alice: Client) -> None:
    await alice.submit(hello_job("deleted", "sleep 600"))
    await alice.delete("alice", "deleted")
    for _ in range(200):
        with contextlib.suppress(ApiError):
            await alice.submit(hello_job("deleted"))
            break
        await asyncio.sleep(0.1)
    await until_ended(alice, "alice", "deleted")
    assert await alice.log("alice", "deleted", "main", 0) == b"hello\n"


async def test_a_name_is_used_once(http: httpx.AsyncClient) -> None:
    assert (await http.post("/jobs", json=hello_job("taken"))).status_code == 202
    for method, path in (("POST", "/jobs"), ("POST", "/user/alice/jobs"), ("PUT", "/user/alice/jobs/taken")):
        answer = await http.request(method, path, json=hello_job("taken"))
        assert (answer.status_code, answer.json()["code"]) == (409, "ConflictJobError")


async def test_put_submits_under_the_name_in_the_address(http: httpx.AsyncClient) -> None:
    assert (await http.put("/user/alice/jobs/by-put", json=hello_job("by-put"))).status_code == 202
    answer = await http.put("/user/alice/jobs/by-put-2", json=hello_job("other"))
    assert (answer.status_code, answer.json()["errors"][0]["path"]) == (400, "$.jobName")


async def test_everything_wrong_is_told_at_once_with_its_path(http: httpx.AsyncClient) -> None:
    job = {"jobName": "a b", "image": 5, "taskRoles": [{"name": "x", "cpuNumber": 0, "comand": "y"}]}
    answer = await http.post("/jobs", json=job)
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    paths = [error["path"] for error in answer.json()["errors"]]
    assert {"$.jobName", "$.image", "$.taskRoles[0].cpuNumber", "$.taskRoles[0].command"} <= set(paths)


async def test_fields_without_effect_are_warned_about_in_header_and_answer(http: httpx.AsyncClient) -> None:
    fields: dict[str, Any] = {"jobEnvs": {"paiAzRDMA": False}, "killAllOnCompletedTaskNumber": 1}
    answer = await http.post("/jobs", json=hello_job("warned", **fields), headers={"Accept-Language": "zh"})
    assert answer.status_code == 202
    assert answer.headers.get_list("X-Warning")[0] == "jobEnvs.paiAzRDMA is kept, and has no effect here."
    assert answer.headers.get_list("X-Warning")[1].startswith("killAllOnCompletedTaskNumber is ignored")
    first, second = answer.json()["warnings"]
    assert first == {
        "path": "$.jobEnvs.paiAzRDMA",
        "message": "jobEnvs.paiAzRDMA 会被保留，但在这里不起作用。",
    }
    assert second["path"] == "$.killAllOnCompletedTaskNumber"
    silent = await http.post("/jobs", json=hello_job("silent", extras={"tags": ["a"]}))
    assert (silent.json(), "X-Warning" in silent.headers) == (
        {"message": "update job silent successfully"},
        False,
    )


async def test_validate_has_warnings_with_their_paths_beside_errors(http: httpx.AsyncClient) -> None:
    told = [{"path": "$.extras.nodes", "message": "extras.nodes is kept, and has no effect here."}]
    job = hello_job("checked", extras={"nodes": ["node-a"]})
    checked = (await http.post("/validate", json=job)).json()
    assert (checked["errors"], checked["warnings"], checked["fits"]) == ([], told, "now")
    wrong = (await http.post("/validate", json={**job, "image": ""})).json()
    assert ([error["path"] for error in wrong["errors"]], wrong["warnings"]) == (["$.image"], told)
    assert (await http.post("/validate", json=hello_job("checked"))).json()["warnings"] == []


async def test_an_unknown_virtual_cluster_and_a_closed_one_are_told_apart(
    http: httpx.AsyncClient, bob: Client
) -> None:
    answer = await http.post("/jobs", json=hello_job("nowhere", virtualCluster="moon"))
    assert (answer.status_code, answer.json()["code"]) == (404, "NoVirtualClusterError")
    assert "your_virtual_cluster" in answer.json()["message"]
    with pytest.raises(ApiError) as refusal:
        await bob.submit(hello_job("not-open", virtualCluster="vision"))
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")


async def test_the_config_comes_as_yaml_where_that_is_preferred(http: httpx.AsyncClient) -> None:
    await http.post("/jobs", json=hello_job("in-yaml", 'echo "嗨"'))
    path = "/user/alice/jobs/in-yaml/config"
    answer = await http.get(path, headers={"Accept": "application/yaml, application/json;q=0.5"})
    assert answer.headers["Content-Type"].startswith("application/yaml")
    assert "嗨" in answer.text
    assert yaml.safe_load(answer.text) == (await http.get(path)).json()
    for accept in ("*/*", "application/json, text/yaml;q=0.1", "text/yaml;q=nonsense"):
        assert (await http.get(path, headers={"Accept": accept})).json()["jobName"] == "in-yaml"
    answer = await http.get("/user/alice/jobs/none/config")
    assert (answer.status_code, answer.json()["code"]) == (404, "NoJobConfigError")


async def test_users_see_and_touch_their_own_jobs_only(alice: Client, bob: Client, root: Client) -> None:
    await alice.submit(hello_job("private", "sleep 600"))
    for attempt in (
        bob.job("alice", "private"),
        bob.config("alice", "private"),
        bob.attempts("alice", "private"),
        bob.list_events("alice", "private"),
        bob.log("alice", "private", "main", 0),
        bob.stop("alice", "private"),
        bob.delete("alice", "private"),
    ):
        with pytest.raises(ApiError) as refusal:
            await attempt
        assert refusal.value.status == 404
    with pytest.raises(ApiError) as refusal:
        await bob.jobs("alice")
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")
    with pytest.raises(ApiError) as refusal:
        await bob.submit(hello_job("for-alice"), user="alice")
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")
    assert "private" not in [job["name"] for job in await bob.jobs()]
    # a name that there is not gets the very same answer
    with pytest.raises(ApiError) as other:
        await bob.job("alice", "never-submitted")
    assert (other.value.status, other.value.code) == (404, "NoJobError")
    # an administrator may do all of it
    assert "private" in [job["name"] for job in await root.jobs()]
    await root.stop("alice", "private")


async def test_two_users_may_use_one_name(alice: Client, bob: Client) -> None:
    for client in (alice, bob):
        await client.submit(hello_job("same-name"))
    assert (await bob.job("bob", "same-name"))["jobStatus"]["username"] == "bob"


async def test_a_user_may_have_any_name(scheduler: RunningScheduler) -> None:
    user = "王 小/明"
    async with Client(scheduler.url, "token-of-wang") as wang:
        assert (await wang.whoami())["username"] == user
        await wang.submit(hello_job("her-job"), user=user)
        await until_ended(wang, user, "her-job")
        assert (await wang.job(user, "her-job"))["jobStatus"]["username"] == user
        assert await wang.log(user, "her-job", "main", 0) == b"hello\n"
        log = (await wang.job(user, "her-job"))["taskRoles"]["main"]["taskStatuses"][0]["containerLog"]
        assert quote(user, safe="") in log


async def test_validate_tells_what_would_happen(alice: Client) -> None:
    assert (await alice.validate(hello_job("v")))["fits"] == "now"
    huge = hello_job("v")
    huge["taskRoles"] = [{"name": "a", "command": "x", "gpuNumber": 99}]
    answer = await alice.validate(huge)
    assert (answer["fits"], answer["errors"]) == ("never", [])
    assert answer["reason"]
    wrong = await alice.validate({"jobName": "v"})
    assert wrong["fits"] == "never"
    assert {error["path"] for error in wrong["errors"]} == {"$.image", "$.taskRoles"}
    assert wrong["reason"] == ""
    # what no node has is said beside what is still missing or wrong
    del huge["image"]
    huge["taskRoles"][0] = {"name": "a", "comand": "x", "gpuNumber": 99}
    both = await alice.validate(huge)
    assert {error["path"] for error in both["errors"]} == {
        "$.image",
        "$.taskRoles[0].command",
        "$.taskRoles[0].comand",
    }
    assert (both["fits"], both["reason"]) == ("never", answer["reason"])
    nowhere = await alice.validate(hello_job("v", virtualCluster="moon"))
    assert nowhere["reason"] == ""
    huge = hello_job("v", virtualCluster="moon")
    huge["taskRoles"][0]["gpuNumber"] = 99
    assert (await alice.validate(huge))["reason"] == answer["reason"]
    assert [error["path"] for error in nowhere["errors"]] == ["$.virtualCluster"]
    assert "vision" in nowhere["errors"][0]["message"]


async def test_an_admin_is_told_what_would_happen_to_a_job_of_somebody_else(
    bob: Client, root: Client
) -> None:
    job = hello_job("v", virtualCluster="vision")
    assert (await root.validate(job))["fits"] == "now"
    assert (await root.validate(job, user="alice"))["fits"] == "now"
    refused = await root.validate(job, user="bob")
    assert [error["path"] for error in refused["errors"]] == ["$.virtualCluster"]
    assert "not open to you" in refused["errors"][0]["message"]
    with pytest.raises(ApiError) as refusal:
        await bob.validate(job, user="alice")
    assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")
    with pytest.raises(ApiError) as refusal:
        await root.validate(job, user="nobody")
    assert (refusal.value.status, refusal.value.code) == (400, "NoUserError")


async def test_where_a_job_would_start_at_once_only_what_is_open_to_its_user_is_named(root: Client) -> None:
    job = hello_job("v", extras={"preemptible": False})
    job["taskRoles"] = [{"name": "a", "command": "x", "cpuNumber": 33}]
    answer = await root.validate(job, user="bob")
    assert (answer["fits"], answer["startsWithin"], answer["startsNowIn"]) == ("never", None, [])
    job["taskRoles"][0]["cpuNumber"] = 12
    job["virtualCluster"] = "your_virtual_cluster"
    assert (await root.validate(job, user="bob"))["startsWithin"] == 0
    job["taskRoles"][0]["cpuNumber"] = 20
    assert (await root.validate(job, user="bob"))["startsNowIn"] == ["default"]
    job["taskRoles"][0]["cpuNumber"] = 12
    job["virtualCluster"] = "default"
    assert (await root.validate(job, user="alice"))["startsNowIn"] == []


async def test_what_does_not_fit_waits_and_says_why(alice: Client) -> None:
    job = hello_job("too-big")
    job["taskRoles"] = [{"name": "a", "command": "x", "gpuNumber": 99}]
    await alice.submit(job)
    status = (await alice.job("alice", "too-big"))["jobStatus"]
    assert status["state"] == "WAITING"
    assert "99" in status["waitingReason"]
    assert (status["neverFits"], status["appExitCode"]) == (True, None)
    await alice.stop("alice", "too-big")
    status = (await alice.job("alice", "too-big"))["jobStatus"]
    assert (status["state"], status["appExitCode"]) == ("STOPPED", -7351)


async def test_a_task_knows_its_container_by_the_name_that_the_api_gives(alice: Client) -> None:
    await alice.submit(hello_job("named", "printf $PAI_CONTAINER_ID"))
    assert [event async for event in alice.events("alice", "named")]
    (task,) = (await alice.job("alice", "named"))["taskRoles"]["main"]["taskStatuses"]
    assert task["containerId"] == (await alice.log("alice", "named", "main", 0)).decode()
