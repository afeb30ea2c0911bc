"""A fake scheduler: an HTTP server that answers as the API does, with the jobs and faults that a test sets.

```python
async with FakeScheduler() as scheduler, scheduler.client() as client:
    job = scheduler.add("train")
    job.happen("started", state="RUNNING")
    assert [found["state"] for found in await client.jobs()] == ["RUNNING"]
```
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

from tornado.httpserver import HTTPServer
from tornado.iostream import StreamClosedError
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from pai_scheduler.client.rest import Client
from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo
from pai_scheduler.rest.models import (
    AttemptInfo,
    FieldError,
    JobDetail,
    JobEvent,
    JobLink,
    JobState,
    JobSummary,
    ServiceInfo,
    TaskMetrics,
    TaskRoleStatus,
    TaskStatus,
    UserInfo,
    Validation,
)

NODE: NodeInfo = {
    "name": "node-a",
    "state": "READY",
    "closed": None,
    "total": {"cpus": 32, "memoryMB": 100_000, "storageGB": 100, "gpus": {"P100": 1, "TITANX": 2}},
    "used": {"cpus": 2, "memoryMB": 8000, "storageGB": 0, "gpus": {"P100": 0, "TITANX": 1}},
    "gpus": [
        {
            "index": 0,
            "type": "TITANX",
            "uuid": "",
            "simulated": True,
            "memoryMB": None,
            "job": "busy",
            "user": None,
        },
        {
            "index": 1,
            "type": "TITANX",
            "uuid": "",
            "simulated": True,
            "memoryMB": None,
            "job": None,
            "user": None,
        },
        {
            "index": 2,
            "type": "P100",
            "uuid": "x",
            "simulated": False,
            "memoryMB": 16_384,
            "user": None,
            "job": None,
        },
    ],
    "rack": "",
    "disk": None,
}


class FakeJob:
    """A job as a test wants it seen."""

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.name, self.config = name, config
        self.state: JobState = "WAITING"
        self.sub_state = ""
        self.waiting_reason = "2 × P100 wanted, 1 free on node-a."
        self.diagnostics = ""
        self.exit_code: int | None = None
        self.trigger: tuple[str, int] | None = None
        self.attempt = 0
        self.priority = 50
        self.queue_position: int | None = None
        self.starts_within: int | None = None
        self.latest_end: int | None = None
        self.dependencies: list[JobLink] = []
        self.dependents: list[JobLink] = []
        #: whether its tasks take their time when they are stopped, and until when
        self.lingers = False
        self.ending_until: int | None = None
        #: what is said of each attempt besides the rest
        self.attempt_facts: dict[int, dict[str, Any]] = {}
        #: what each task used, by attempt, role and index
        self.usage: dict[tuple[int, str, int], dict[str, list[tuple[int, float]]]] = {}
        self.events: list[str] = []
        #: what an event says besides its message, by its id
        self.event_facts: dict[int, dict[str, Any]] = {}
        self.logs: dict[tuple[str, int, str], bytes] = {}
        self.changed = asyncio.Event()

    def happen(self, message: str, **changes: Any) -> None:
        """Change something and tell of it."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.events.append(message)
        self.wake()

    def write(self, role: str, index: int, data: bytes, stream: str = "all") -> None:
        """Have a task write to its log."""
        self.logs[role, index, stream] = self.logs.get((role, index, stream), b"") + data
        self.wake()

    def wake(self) -> None:
        """Wake up whoever follows events or logs."""
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def ended(self) -> bool:
        """True in a final state."""
        return self.state in ("SUCCEEDED", "FAILED", "STOPPED")

    def roles(self) -> dict[str, TaskRoleStatus]:
        """Return the task roles as the API does."""
        result: dict[str, TaskRoleStatus] = {}
        for role in self.config["taskRoles"]:
            result[role["name"]] = {"taskRoleStatus": {"name": role["name"]}, "taskStatuses": []}
            for index in range(role.get("taskNumber", 1)):
                status: TaskStatus = {
                    "taskIndex": index,
                    "taskState": self.state,
                    "containerId": "" if self.state == "WAITING" else "c1",
                    "containerIp": "" if self.state == "WAITING" else "10.0.0.7",
                    "containerPorts": {} if self.state == "WAITING" else {"http": "8080"},
                    "containerGpus": 0,
                    "containerLog": "",
                    "containerExitCode": self.exit_code,
                    "node": "" if self.state == "WAITING" else "node-a",
                }
                result[role["name"]]["taskStatuses"].append(status)
        return result

    def summary(self, user: str) -> JobSummary:
        """Return the job as it is in a list."""
        status = self.detail(user)["jobStatus"]
        return {
            "name": self.name,
            "username": user,
            "state": self.state,
            "subState": self.sub_state,
            "executionType": status["executionType"],
            "retries": status["retries"],
            "retryDetails": status["retryDetails"],
            "createdTime": status["createdTime"],
            "completedTime": status["completedTime"],
            "appExitCode": self.exit_code,
            "virtualCluster": status["virtualCluster"],
            "totalGpuNumber": 0,
            "totalTaskNumber": sum(role.get("taskNumber", 1) for role in self.config["taskRoles"]),
            "totalTaskRoleNumber": len(self.config["taskRoles"]),
            "priority": self.priority,
            "queuePlace": self.queue_position,
            "startsWithin": None,
        }

    def detail(self, user: str) -> JobDetail:
        """Return the job as `GET …/jobs/<name>` does."""
        failed = self.state == "FAILED"
        return {
            "name": self.name,
            "jobStatus": {
                "username": user,
                "virtualCluster": "default",
                "state": self.state,
                "subState": self.sub_state,
                "executionType": "START",
                "retries": self.attempt,
                "retryDetails": {"user": self.attempt, "platform": 0, "resource": 0},
                "createdTime": 1_700_000_000_000,
                "completedTime": 1_700_000_090_000 if self.ended else None,
                "appId": "j1",
                "appProgress": 0.0,
                "appTrackingUrl": "",
                "appLaunchedTime": None if self.state == "WAITING" else 1_700_000_010_000,
                "appCompletedTime": 1_700_000_085_000 if self.ended else None,
                "appExitCode": self.exit_code,
                "appExitSpec": {
                    "code": 255,
                    "phrase": "CONTAINER_RUNTIME_UNKNOWN_FAILURE",
                    "issuer": "",
                    "causer": "",
                    "type": "UNKNOWN_FAILURE",
                    "stage": "",
                    "behavior": "UNKNOWN",
                    "reaction": "",
                }
                if failed
                else None,
                "appExitDiagnostics": self.diagnostics,
                "appExitMessages": {"container": None, "runtime": None, "launcher": self.diagnostics or None},
                "appExitTriggerMessage": "",
                "appExitTriggerTaskRoleName": self.trigger[0] if self.trigger else "",
                "appExitTriggerTaskIndex": self.trigger[1] if self.trigger else None,
                "appExitType": "",
                "waitingReason": self.waiting_reason if self.state == "WAITING" else "",
                "neverFits": False,
                "priority": self.priority,
                "queuePlace": self.queue_position,
                "startsWithin": self.starts_within if self.state == "WAITING" else None,
                "endingUntil": self.ending_until,
                "latestEndTime": self.latest_end if self.state == "RUNNING" else None,
                "dependencies": self.dependencies,
                "dependents": self.dependents,
                "dependentCount": len(self.dependents),
            },
            "taskRoles": self.roles(),
        }

    def attempts(self) -> list[AttemptInfo]:
        """Return the attempts as the API does."""
        return [
            {
                "attempt": number,
                "state": self.state,
                "createdTime": 0,
                "launchedTime": 0,
                "completedTime": None,
                "exitCode": self.exit_code,
                "exitSpec": None,
                "trigger": {"taskRole": self.trigger[0], "taskIndex": self.trigger[1]}
                if self.trigger
                else None,
                "reason": "",
                "taskRoles": self.roles(),
                **self.attempt_facts.get(number, {}),  # type: ignore[typeddict-item]
            }
            for number in range(self.attempt + 1)
        ]


def job_of(name: str, *roles: str) -> FakeJob:
    """Make a waiting job with two tasks of each role."""
    names = roles or ("worker",)
    return FakeJob(name, {"jobName": name, "taskRoles": [{"name": role, "taskNumber": 2} for role in names]})


def validation(
    fits: Literal["now", "later", "never"] = "now",
    reason: str = "",
    *,
    borrows: bool = False,
    starts_within: int | None = None,
    starts_now_in: Sequence[str] = (),
) -> Validation:
    """Make what the scheduler answers to: would this job fit?"""
    return {
        "errors": [],
        "fits": fits,
        "reason": reason,
        "borrows": borrows,
        "limits": None,
        "startsWithin": starts_within,
        "warnings": [],
        "startsNowIn": list(starts_now_in),
    }


class FakeScheduler:
    """A fake scheduler: what it answers, and what it was asked."""

    def __init__(self) -> None:
        self.jobs: dict[str, FakeJob] = {}
        self.validation = validation()
        self.refusal: tuple[int, str, str, list[FieldError]] | None = None
        #: every body that came to /validate; answers wait for `gate`
        self.asked: list[dict[str, Any]] = []
        self.asking, self.most_asking = 0, 0
        self.gate = asyncio.Event()
        self.gate.set()
        #: attempt, role, index and after of every question about use
        self.usage_asked: list[tuple[int, str, int, int]] = []
        self.submitted: list[dict[str, Any]] = []
        self.submit_gate = asyncio.Event()
        self.submit_gate.set()
        self.nodes: list[NodeInfo] = [NODE]
        self.engine = "docker"
        #: of what is free and of the queues
        self.version = 1
        self.changed = asyncio.Event()
        self.port = 0
        self._server: HTTPServer | None = None
        self._streams: set[Any] = set()

    @property
    def url(self) -> str:
        """The address for a client."""
        return f"http://127.0.0.1:{self.port}"

    def client(self) -> Client:
        """Return a client of this scheduler."""
        return Client(self.url, "token")

    def add(self, name: str, *roles: str) -> FakeJob:
        """Add a waiting job with two tasks of each role."""
        self.jobs[name] = job_of(name, *roles)
        return self.jobs[name]

    def change(self) -> None:
        """Tell that what is free, or a queue, is another one."""
        self.version += 1
        self.changed.set()
        self.changed = asyncio.Event()

    async def start(self) -> None:
        """Listen, on the port it had before."""
        sockets = bind_sockets(self.port, "127.0.0.1")
        self.port = sockets[0].getsockname()[1]
        self._server = HTTPServer(_application(self))
        self._server.add_sockets(sockets)

    async def stop(self) -> None:
        """Go away as in a crash: every connection breaks off."""
        if self._server is not None:
            self._server.stop()
            for handler in tuple(self._streams):
                handler.request.connection.stream.close()
            await self._server.close_all_connections()
            self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.stop()


class _Handler(RequestHandler):
    def initialize(self, scheduler: FakeScheduler) -> None:
        self.scheduler = scheduler

    def refuse(self, status: int, code: str, message: str, errors: list[FieldError] | None = None) -> None:
        self.set_status(status)
        self.finish({"code": code, "message": message, "errors": errors or []})

    def answer(self, value: Any) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(value))


class _About(_Handler):
    def get(self) -> None:
        about: ServiceInfo = {
            "name": "PAI for Jupyter",
            "version": "0",
            "engine": self.scheduler.engine,
            "frontDoor": None,
            "ssh": None,
        }
        self.answer(about)


class _User(_Handler):
    def get(self) -> None:
        alice: UserInfo = {
            "username": "alice",
            "email": "",
            "grouplist": [],
            "extension": {},
            "admin": False,
            "virtualCluster": ["default", "vision"],
        }
        self.answer(alice)


class _Nodes(_Handler):
    def get(self) -> None:
        self.answer(self.scheduler.nodes)


class _Changes(_Handler):
    async def get(self) -> None:
        while self.get_query_argument("after", None) == str(self.scheduler.version):
            await self.scheduler.changed.wait()
        self.answer({"version": str(self.scheduler.version)})


class _VirtualClusters(_Handler):
    def get(self) -> None:
        cluster: VirtualClusterInfo = {
            "resourcesTotal": {"memory": 100_000, "vCores": 32, "GPUs": 3},
            "resourcesUsed": {"memory": 8000, "vCores": 2, "GPUs": 1},
            "capacity": 100,
            "maxCapacity": 100,
            "usedCapacity": 33.3,
            "numActiveJobs": 1,
            "numJobs": 1,
            "numPendingJobs": 0,
            "dedicated": False,
            "nodeList": ["node-a"],
            "status": "RUNNING",
            "shorterFirst": 0,
            "fairShareHours": 0,
            "levelGpuHours": [],
            "shortestRemaining": False,
            "placement": "pack",
        }
        self.answer({"default": cluster, "vision": cluster})


class _Validate(_Handler):
    async def post(self) -> None:
        scheduler = self.scheduler
        scheduler.asked.append(json.loads(self.request.body))
        answer = scheduler.validation
        scheduler.asking += 1
        scheduler.most_asking = max(scheduler.most_asking, scheduler.asking)
        await scheduler.gate.wait()
        scheduler.asking -= 1
        self.answer(answer)


class _Jobs(_Handler):
    def get(self) -> None:
        limit = self.get_query_argument("limit", None)
        jobs = [job.summary("alice") for job in self.scheduler.jobs.values()]
        self.answer(jobs[: int(limit) if limit else None])

    async def post(self) -> None:
        config = json.loads(self.request.body)
        self.scheduler.submitted.append(config)
        await self.scheduler.submit_gate.wait()
        if self.scheduler.refusal is not None:
            self.refuse(*self.scheduler.refusal)
            return
        self.scheduler.jobs[config["jobName"]] = FakeJob(config["jobName"], config)
        self.set_status(202)
        self.answer({"message": "update job successfully"})


class _Job(_Handler):
    def get(self, user: str, name: str, what: str | None = None) -> None:
        job = self.scheduler.jobs.get(name)
        if job is None:
            self.refuse(404, "NoJobError", f"There is no job {name}.")
        else:
            answers: dict[str, Callable[[], Any]] = {"attempts": job.attempts, "config": lambda: job.config}
            self.answer(answers[what]() if what else job.detail(user))


class _Stop(_Handler):
    def put(self, _user: str, name: str) -> None:
        job, force = self.scheduler.jobs[name], json.loads(self.request.body).get("force", False)
        if job.lingers and not force:
            until = 1_700_000_600_000
            job.happen("stop-requested", sub_state="ENDING", ending_until=until)
        else:
            job.happen("stopped", state="STOPPED", sub_state="ENDED", ending_until=None, exit_code=-7351)
        self.set_status(202)
        self.answer({})


class _Stream(_Handler):
    async def prepare(self) -> None:
        self.scheduler._streams.add(self)

    def on_finish(self) -> None:
        self.scheduler._streams.discard(self)

    async def send(self, data: bytes | str) -> None:
        self.write(data)
        await self.flush()


class _Events(_Stream):
    async def get(self, _user: str, name: str) -> None:
        job = self.scheduler.jobs[name]
        position = int(self.request.headers.get("Last-Event-ID", "0"))
        self.set_header("Content-Type", "text/event-stream")
        try:
            await self.send(": hello\n\n")
            while True:
                changed = job.changed
                while position < len(job.events):
                    position += 1
                    event: JobEvent = {
                        "id": position,
                        "time": 0,
                        "type": "x",
                        "attempt": None,
                        "taskRole": None,
                        "taskIndex": None,
                        "message": job.events[position - 1],
                        "data": {},
                        **job.event_facts.get(position, {}),  # type: ignore[typeddict-item]
                    }
                    await self.send(f"id: {position}\ndata: {json.dumps(event)}\n\n")
                if job.ended:
                    return
                await changed.wait()
        except StreamClosedError:
            return


class _Usage(_Handler):
    def get(self, _user: str, name: str, role: str, index: str) -> None:
        after, attempt = int(self.get_query_argument("after", "0")), int(self.get_query_argument("attempt"))
        self.scheduler.usage_asked.append((attempt, role, int(index), after))
        series = self.scheduler.jobs[name].usage.get((attempt, role, int(index)))
        if series is None:
            self.refuse(404, "NoTaskError", "There is no such task.")
            return
        later = {key: [point for point in points if point[0] > after] for key, points in series.items()}
        used: TaskMetrics = {"interval": 1.0, "gpuMemoryTotalMB": None, "series": later}
        self.answer(used)


class _Log(_Stream):
    async def get(self, _user: str, name: str, role: str, index: str, stream: str) -> None:
        job = self.scheduler.jobs.get(name)
        if job is None:
            self.refuse(404, "NoJobError", f"There is no job {name}.")
            return
        offset = int(self.get_query_argument("offset", "0"))
        follow = self.get_query_argument("follow", "0") == "1"
        key = (role, int(index), stream)
        position = max(0, len(job.logs.get(key, b"")) + offset) if offset < 0 else offset
        self.set_header("X-Log-Offset", str(position))
        try:
            while True:
                changed = job.changed
                data = job.logs.get(key, b"")[position:]
                position += len(data)
                if data:
                    await self.send(data)
                if job.ended or not follow:
                    return
                await changed.wait()
        except StreamClosedError:
            return


def _application(scheduler: FakeScheduler) -> Application:
    job = r"/api/v1/user/([^/]+)/jobs/([^/]+)"
    options = {"scheduler": scheduler}
    return Application(
        [
            (r"/api/v1", _About, options),
            (r"/api/v1/user", _User, options),
            (r"/api/v1/nodes", _Nodes, options),
            (r"/api/v1/changes", _Changes, options),
            (r"/api/v1/virtual-clusters", _VirtualClusters, options),
            (r"/api/v1/validate", _Validate, options),
            (r"/api/v1/jobs", _Jobs, options),
            (rf"{job}/executionType", _Stop, options),
            (rf"{job}/events", _Events, options),
            (rf"{job}/taskRoles/([^/]+)/tasks/(\d+)/logs/(\w+)", _Log, options),
            (rf"{job}/taskRoles/([^/]+)/tasks/(\d+)/metrics", _Usage, options),
            (rf"{job}(?:/(attempts|config))?", _Job, options),
        ]
    )
