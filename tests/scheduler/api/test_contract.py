"""The tables of job-contract.md, section 4, row by row: statuses, bodies, headers, codes of a real scheduler.

A row is what is asked and what must come back; `…` in a body stands for anything. One scheduler answers all
rows, in this order; what each needs is there before the first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tests.testbed.answers import check_answer
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

CLUSTER = """
nodes: [{name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 2}}]
virtualClusters: {default: {capacity: 60}, vision: {capacity: 30, groups: [vision]}, busy: {capacity: 10}}
"""
ANY: Any = object()
WAITS = [{"name": "main", "command": "true", "gpuNumber": 9}]
JOB = "/user/alice/jobs/ended"


@dataclass(frozen=True)
class Row:
    """A request and its answer. `who`: the name in a token (`token-of-…`); None: no token."""

    method: str
    path: str
    status: int
    body: Any = ANY
    code: str | None = None
    who: str | None = "alice"
    send: Any = None
    form: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    answered: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.code or self.status} {self.who}"


def refused(method: str, path: str, status: int, code: str, **more: Any) -> Row:
    return Row(method, path, status, code=code, **more)


VC = {
    "dedicated": False,
    "nodeList": ["node-a"],
    "status": "RUNNING",
    "maxCapacity": 100,
    "shorterFirst": 0,
    "fairShareHours": 0,
    "levelGpuHours": [],
    "shortestRemaining": False,
    "placement": "pack",
}
ROWS = [
    # POST /token
    Row(
        "POST",
        "/token",
        200,
        {"user": "alice", "token": "token-of-alice", "admin": False, "hasGitHubPAT": False},
        who=None,
        form={"username": "alice", "password": "token-of-alice", "expiration": "604800"},
    ),
    refused("POST", "/token", 400, "NoUserError", who=None, send={"username": "eve", "password": "x"}),
    refused(
        "POST", "/token", 400, "IncorrectPasswordError", who=None, send={"username": "bob", "password": "x"}
    ),
    refused("POST", "/token", 400, "InvalidParametersError", who=None, send={"username": "bob"}),
    # GET /authn/info
    Row(
        "GET",
        "/authn/info",
        200,
        {"authn_type": "basic", "loginURI": "/api/v1/token", "loginURIMethod": "post"},
        who=None,
    ),
    # GET /user/:u
    Row(
        "GET",
        "/user/alice",
        200,
        {
            "username": "alice",
            "email": "",
            "grouplist": ["vision"],
            "extension": {},
            "admin": False,
            "virtualCluster": ["default", "vision", "busy"],
        },
    ),
    Row(
        "GET",
        "/user/bob",
        200,
        {
            "username": "bob",
            "email": "",
            "grouplist": [],
            "extension": {},
            "admin": False,
            "virtualCluster": ["default", "busy"],
        },
        who="root",
    ),
    refused("GET", "/user/eve", 400, "NoUserError", who="root"),
    refused("GET", "/user/alice", 403, "ForbiddenUserError", who="bob"),
    # GET /jobs, /user/:u/jobs
    Row("GET", "/jobs", 200),
    Row("GET", "/jobs?username=alice", 200, who="root"),
    Row("GET", "/user/alice/jobs", 200),
    refused("GET", "/user/alice/jobs", 403, "ForbiddenUserError", who="bob"),
    refused("GET", "/jobs?username=alice", 403, "ForbiddenUserError", who="bob"),
    # POST /user/:u/jobs, POST /jobs, PUT /user/:u/jobs/:j
    Row(
        "POST",
        "/user/alice/jobs",
        202,
        {"message": "update job by-post successfully"},
        send=hello_job("by-post"),
        answered={"Location": "/api/v1/user/alice/jobs/by-post"},
    ),
    Row(
        "POST",
        "/jobs",
        202,
        {"message": "update job by-jobs successfully"},
        send=hello_job("by-jobs"),
        answered={"Location": "/api/v1/user/alice/jobs/by-jobs"},
    ),
    Row(
        "PUT",
        "/user/alice/jobs/by-put",
        202,
        {"message": "update job by-put successfully"},
        send=hello_job("by-put"),
        answered={"Location": "/api/v1/user/alice/jobs/by-put"},
    ),
    Row(
        "POST",
        "/user/alice/jobs",
        202,
        {"message": "update job by-form successfully", "warnings": ANY},
        form={
            "jobName": "by-form",
            "image": "x",
            "taskRoles[0][name]": "main",
            "taskRoles[0][command]": "true",
            "taskRoles[0][cpuNumber]": "1",
            "taskRoles[0][minSucceededTaskCount]": "",
            "killAllOnCompletedTaskNumber": "1",
        },
        answered={"X-Warning": "killAllOnCompletedTaskNumber is ignored…"},
    ),
    refused("POST", "/jobs", 404, "NoVirtualClusterError", send=hello_job("nowhere", virtualCluster="moon")),
    refused("POST", "/user/alice/jobs", 403, "ForbiddenUserError", who="bob", send=hello_job("hers")),
    refused(
        "POST", "/jobs", 403, "ForbiddenUserError", who="bob", send=hello_job("in", virtualCluster="vision")
    ),
    refused("POST", "/jobs", 409, "ConflictJobError", send=hello_job("ended")),
    refused("PUT", JOB, 409, "ConflictJobError", send=hello_job("ended")),
    refused("PUT", JOB, 400, "InvalidParametersError", send=hello_job("other")),
    refused("POST", "/jobs", 400, "InvalidParametersError", send={"jobName": "a b"}),
    # GET /user/:u/jobs/:j
    Row("GET", JOB, 200),
    Row("GET", JOB, 200, who="root"),
    refused("GET", JOB, 404, "NoJobError", who="bob"),
    refused("GET", "/user/alice/jobs/none", 404, "NoJobError"),
    # GET …/config
    Row("GET", f"{JOB}/config", 200, hello_job("ended")),
    Row(
        "GET",
        f"{JOB}/config",
        200,
        headers={"Accept": "text/yaml"},
        answered={"Content-Type": "application/yaml…"},
    ),
    refused("GET", "/user/alice/jobs/none/config", 404, "NoJobConfigError"),
    refused("GET", f"{JOB}/config", 404, "NoJobConfigError", who="bob"),
    # GET …/ssh
    refused("GET", f"{JOB}/ssh", 404, "NoJobSshInfoError"),
    refused("GET", f"{JOB}/ssh", 404, "NoJobError", who="bob"),
    # PUT …/executionType
    Row(
        "PUT",
        "/user/alice/jobs/waits/executionType",
        202,
        {"message": "execute job waits successfully"},
        send={"value": "START"},
    ),
    Row(
        "PUT",
        "/user/alice/jobs/waits/executionType",
        202,
        {"message": "execute job waits successfully"},
        form={"value": "STOP"},
    ),
    refused("PUT", f"{JOB}/executionType", 409, "ConflictJobError", send={"value": "START"}),
    Row(
        "PUT",
        f"{JOB}/executionType",
        202,
        {"message": "execute job ended successfully"},
        send={"value": "STOP", "force": True},
    ),
    Row(
        "PUT",
        f"{JOB}/executionType",
        202,
        {"message": "execute job ended successfully"},
        form={"value": "STOP", "force": "true"},
    ),
    refused("PUT", f"{JOB}/executionType", 400, "InvalidParametersError", send={"value": "stop"}),
    refused(
        "PUT", f"{JOB}/executionType", 400, "InvalidParametersError", send={"value": "STOP", "force": "now"}
    ),
    refused(
        "POST",
        "/jobs",
        400,
        "InvalidParametersError",
        send=hello_job("too-long", extras={"terminationGraceSeconds": 601}),
    ),
    refused(
        "POST",
        "/jobs",
        400,
        "InvalidParametersError",
        send=hello_job("too-long", extras={"terminationGraceSeconds": 3601}),
    ),
    refused("PUT", f"{JOB}/executionType", 404, "NoJobError", who="bob", send={"value": "STOP"}),
    # DELETE /user/:u/jobs/:j
    refused("DELETE", "/user/alice/jobs/by-post", 404, "NoJobError", who="bob"),
    Row("DELETE", "/user/alice/jobs/by-post", 202, {"message": "deleted job by-post successfully"}),
    Row("DELETE", "/user/alice/jobs/runs", 202, {"message": "deleted job runs successfully"}, who="root"),
    refused("DELETE", "/user/alice/jobs/none", 404, "NoJobError"),
    # GET /virtual-clusters
    Row("GET", "/virtual-clusters", 200, {"default": ANY, "vision": ANY, "busy": ANY}),
    Row(
        "GET",
        "/virtual-clusters/busy",
        200,
        VC
        | {
            "capacity": 10,
            "usedCapacity": 0,
            "numActiveJobs": 0,
            "numJobs": 1,
            "numPendingJobs": 1,
            "resourcesUsed": {"memory": 0, "vCores": 0, "GPUs": 0},
            "resourcesTotal": {"memory": ANY, "vCores": ANY, "GPUs": ANY},
        },
    ),
    refused("GET", "/virtual-clusters/moon", 404, "NoVirtualClusterError"),
    # PUT, DELETE /virtual-clusters/:vc, PUT …/status
    Row(
        "PUT",
        "/virtual-clusters/speech",
        201,
        {"message": "create vc: speech to capacity: 20 successfully"},
        who="root",
        send={"vcCapacity": 20, "vcMaxCapacity": 80},
    ),
    Row(
        "PUT",
        "/virtual-clusters/speech",
        201,
        {"message": "update vc: speech to capacity: 25 successfully"},
        who="root",
        form={"vcCapacity": "25"},
    ),
    refused("PUT", "/virtual-clusters/x", 403, "ForbiddenUserError", send={"vcCapacity": 1}),
    refused(
        "PUT", "/virtual-clusters/default", 403, "ForbiddenUserError", who="root", send={"vcCapacity": 1}
    ),
    refused("PUT", "/virtual-clusters/x", 403, "NoEnoughQuotaError", who="root", send={"vcCapacity": 90}),
    refused("PUT", "/virtual-clusters/Speech", 409, "ConflictVcError", who="root", send={"vcCapacity": 1}),
    refused("PUT", "/virtual-clusters/x", 400, "InvalidParametersError", who="root", send={}),
    Row(
        "PUT",
        "/virtual-clusters/speech/status",
        201,
        {"message": "stop vc speech successfully"},
        who="root",
        send={"vcStatus": "stopped"},
    ),
    refused(
        "POST", "/jobs", 403, "ForbiddenUserError", send=hello_job("in-stopped", virtualCluster="speech")
    ),
    Row(
        "PUT",
        "/virtual-clusters/speech/status",
        201,
        {"message": "active vc speech successfully"},
        who="root",
        form={"vcStatus": "running"},
    ),
    refused(
        "PUT", "/virtual-clusters/speech/status", 403, "ForbiddenUserError", send={"vcStatus": "stopped"}
    ),
    refused(
        "PUT",
        "/virtual-clusters/default/status",
        403,
        "ForbiddenUserError",
        who="root",
        send={"vcStatus": "stopped"},
    ),
    refused(
        "PUT",
        "/virtual-clusters/moon/status",
        404,
        "NoVirtualClusterError",
        who="root",
        send={"vcStatus": "stopped"},
    ),
    refused(
        "PUT",
        "/virtual-clusters/speech/status",
        400,
        "InvalidParametersError",
        who="root",
        send={"vcStatus": "STOPPED"},
    ),
    refused("DELETE", "/virtual-clusters/speech", 403, "ForbiddenUserError"),
    refused("DELETE", "/virtual-clusters/default", 403, "ForbiddenUserError", who="root"),
    refused("DELETE", "/virtual-clusters/busy", 403, "RemoveRunningVcError", who="root"),
    Row("DELETE", "/virtual-clusters/speech", 201, {"message": "Remove vc: speech successfully"}, who="root"),
    refused("DELETE", "/virtual-clusters/speech", 404, "NoVirtualClusterError", who="root"),
    # what is not in the table, but above it
    Row("GET", "", 200, who=None),
    Row("GET", "/healthz", 200, who=None),
    Row("GET", "/openapi.yaml", 200, who=None),
    refused("GET", "/no/such/path", 404, "NoApiError", who=None),
    refused("PATCH", "/jobs", 405, "MethodNotAllowedError", answered={"Allow": "GET, POST"}),
    refused("POST", "/jobs", 413, "BodyTooLargeError", send={"jobName": "x" * (8 << 20)}),
    refused("POST", "/jobs", 400, "InvalidParametersError", form="{"),
    *(
        refused(method, path, 401, "UnauthorizedUserError", who=None)
        for method, path in (
            ("GET", "/user"),
            ("GET", "/user/alice"),
            ("GET", "/jobs"),
            ("POST", "/jobs"),
            ("GET", "/user/alice/jobs"),
            ("POST", "/user/alice/jobs"),
            ("GET", JOB),
            ("PUT", JOB),
            ("DELETE", JOB),
            ("GET", f"{JOB}/config"),
            ("GET", f"{JOB}/ssh"),
            ("PUT", f"{JOB}/executionType"),
            ("GET", f"{JOB}/attempts"),
            ("GET", f"{JOB}/events"),
            ("PUT", f"{JOB}/queue"),
            ("GET", f"{JOB}/taskRoles/main/tasks/0/logs/all"),
            ("GET", f"{JOB}/taskRoles/main/tasks/0/metrics"),
            ("GET", "/user/alice/schedules"),
            ("GET", "/user/alice/schedules/nightly"),
            ("PUT", "/user/alice/schedules/nightly"),
            ("DELETE", "/user/alice/schedules/nightly"),
            ("PUT", "/user/alice/schedules/nightly/state"),
            ("POST", "/user/alice/schedules/nightly/runs"),
            ("POST", "/validate"),
            ("GET", "/events"),
            ("GET", "/nodes"),
            ("GET", "/queue"),
            ("GET", "/virtual-clusters"),
            ("PUT", "/nodes/node-a"),
            ("PUT", "/virtual-clusters/speech"),
            ("DELETE", "/virtual-clusters/busy"),
            ("PUT", "/virtual-clusters/busy/status"),
        )
    ),
]


@pytest.fixture(scope="module")
def own(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler with a job of alice's that ended, one that waits and one that runs."""
    running = module_scheduler(cluster=CLUSTER)
    headers = {"Authorization": "Bearer token-of-alice"}
    with httpx.Client(base_url=f"{running.url}/api/v1", headers=headers, trust_env=False) as alice:
        for job in (
            hello_job("ended"),
            hello_job("waits", taskRoles=WAITS),
            hello_job("waits-too", taskRoles=WAITS, virtualCluster="busy"),
            hello_job("runs", "sleep 600"),
        ):
            alice.post("/jobs", json=job).raise_for_status()
        alice.get(f"{JOB}/events?follow=1").raise_for_status()
    return running


@pytest.fixture
async def http(own: RunningScheduler) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"{own.url}/api/v1",
        trust_env=False,
        timeout=30,
        event_hooks={"response": [check_answer]},
    ) as client:
        yield client


@pytest.mark.parametrize("row", ROWS, ids=str)
async def test_the_row_is_true(http: httpx.AsyncClient, row: Row) -> None:
    headers = dict(row.headers)
    if row.who is not None:
        headers["Authorization"] = f"Bearer token-of-{row.who}"
    body: dict[str, Any] = {}
    if row.send is not None:
        body = {"json": row.send}
    elif isinstance(row.form, str):
        body = {"content": row.form}
    elif row.form is not None:
        body = {"data": row.form}
    answer = await http.request(row.method, row.path, headers=headers, **body)
    assert answer.status_code == row.status, answer.text
    if row.code is not None:
        assert answer.json()["code"] == row.code
        assert len(answer.json()["message"]) > 10
        assert ("errors" in answer.json()) == (row.code == "InvalidParametersError")
    if row.body is not ANY:
        assert _like(answer.json(), row.body), answer.text
    for name, value in row.answered.items():
        if value.endswith("…"):
            assert answer.headers[name].startswith(value[:-1])
        else:
            assert answer.headers[name] == value


def _like(found: Any, wanted: Any) -> bool:
    """Compare; ANY is like everything."""
    if wanted is ANY:
        return True
    if isinstance(wanted, dict) and isinstance(found, dict):
        return found.keys() == wanted.keys() and all(_like(found[key], wanted[key]) for key in wanted)
    return bool(found == wanted)


LIST_FIELDS = """
name username state subState executionType retries retryDetails createdTime completedTime appExitCode
virtualCluster totalGpuNumber totalTaskNumber totalTaskRoleNumber
"""
STATUS_FIELDS = """
username virtualCluster state subState executionType retries retryDetails createdTime completedTime appId
appProgress appTrackingUrl appLaunchedTime appCompletedTime appExitCode appExitSpec appExitDiagnostics
appExitMessages appExitTriggerMessage appExitTriggerTaskRoleName appExitTriggerTaskIndex appExitType
waitingReason endingUntil
"""
TASK_FIELDS = """
taskIndex taskState containerId containerIp containerPorts containerGpus containerLog containerExitCode node
"""


async def test_the_list_has_the_newest_first_and_every_field(http: httpx.AsyncClient) -> None:
    jobs = (await http.get("/jobs", headers={"Authorization": "Bearer token-of-alice"})).json()
    assert [job["createdTime"] for job in jobs] == sorted((job["createdTime"] for job in jobs), reverse=True)
    assert set(LIST_FIELDS.split()) <= jobs[0].keys()


async def test_the_detail_has_every_field(http: httpx.AsyncClient) -> None:
    detail = (await http.get(JOB, headers={"Authorization": "Bearer token-of-alice"})).json()
    assert set(detail) == {"name", "jobStatus", "taskRoles"}
    assert set(STATUS_FIELDS.split()) <= detail["jobStatus"].keys()
    assert set(detail["jobStatus"]["appExitMessages"]) == {"container", "runtime", "launcher"}
    assert set(detail["taskRoles"]["main"]["taskStatuses"][0]) == set(TASK_FIELDS.split())
