"""The typed, asynchronous client of the REST API."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Any, Literal, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.rest.address import DEFAULT_URL
from pai_scheduler.rest.cluster import (
    AvailableAmounts,
    ClusterUsage,
    ClusterVersion,
    MaintenanceInfo,
    NodeInfo,
    VirtualClusterInfo,
)
from pai_scheduler.rest.log_position import LogPart, LogPosition
from pai_scheduler.rest.models import (
    AttemptInfo,
    FieldError,
    JobDetail,
    JobEvent,
    JobSummary,
    PublicKeyInfo,
    QueueEntry,
    ServiceInfo,
    SshInfo,
    Submitted,
    TaskMetrics,
    TaskPort,
    UserInfo,
    Validation,
)
from pai_scheduler.rest.schedules import ScheduleDetail, ScheduleInfo, StartedRun

from .http import Connections, trusted_by

# What the scheduler foresees of a job, in words: when it would start, and where it would at once.

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def about_so_long(seconds: int) -> Message:
    """Return a time to wait as people say it, rounded up: `about 20 minutes`."""
    if seconds <= 2 * _HOUR:
        return counted("about {count} minute", "about {count} minutes", count=max(1, -(-seconds // _MINUTE)))
    if seconds <= 2 * _DAY:
        return counted("about {count} hour", "about {count} hours", count=-(-seconds // _HOUR))
    return counted("about {count} day", "about {count} days", count=-(-seconds // _DAY))


def starts_in(seconds: int) -> Message:
    """Say when something that waits starts, as it is estimated."""
    return msg("It starts in {time}.", time=about_so_long(seconds))


def start_in_words(validation: Validation) -> Iterator[Message]:
    """Return when a job that waits would start, where that is known, and where else it would at once."""
    seconds = validation["startsWithin"]
    if validation["fits"] == "later" and seconds is not None:
        yield starts_in(seconds)
    if validation["startsNowIn"]:
        yield msg(
            "It would start now in virtual cluster {names}.", names=", ".join(validation["startsNowIn"])
        )


# The way everybody else talks to the scheduler: one typed, asynchronous client of its REST API.

Answer = TypeVar("Answer")

_AS_JSON = {"Content-Type": "application/json"}

#: seconds for an answer that the scheduler gives within half a minute where nothing happens
_LONG_WAIT = 45.0


class ApiError(Exception):
    """The scheduler answered, and refused. `code` is the contract's name for it; `errors` by field.

    502 `UnexpectedAnswerError`: what answered is no scheduler, or not one that this client understands.
    """

    def __init__(self, status: int, code: str, message: str, errors: list[FieldError] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors or []


class UnreachableError(Exception):
    """Nobody answered at the scheduler's address, or only a standby; it says nothing about the jobs."""


class Client(Connections):
    """Talks to the scheduler at `url` with a user's bearer `token`.

    Defaults: `PAI_API_URL` (the address without `/api/v1`), then this machine's default port; `PAI_TOKEN`,
    then `JUPYTERHUB_API_TOKEN`. `locale` ("zh_CN") chooses the language of the messages. Every call raises
    `ApiError` when refused and `UnreachableError` when nobody answers. Use it as
    `async with Client() as pai:`.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        locale: str = "en",
        timeout: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
        warned: Callable[[str], None] = lambda _: None,
    ) -> None:
        #: hears what the scheduler says of a job that it has accepted all the same
        self.warned = warned
        self.url = (url or os.environ.get("PAI_API_URL") or DEFAULT_URL).rstrip("/")
        #: Empty where there is none.
        self.token = token or os.environ.get("PAI_TOKEN") or os.environ.get("JUPYTERHUB_API_TOKEN") or ""
        self._locale = locale
        self._http = httpx.AsyncClient(
            base_url=f"{self.url}/api/v1/",
            headers={
                # without a token the scheduler refuses by itself; an empty one is no header at all
                **({"Authorization": f"Bearer {self.token}"} if self.token else {}),
                "Accept-Language": locale.replace("_", "-"),
            },
            timeout=httpx.Timeout(timeout, pool=None),
            transport=transport,
            verify=trusted_by(self.url),
            trust_env=False,
        )

    async def about(self) -> ServiceInfo:
        """Return what answers at this address (needs no token)."""
        return await self._read(ServiceInfo, "GET", f"{self.url}/api/v1")

    async def whoami(self) -> UserInfo:
        """Return whose token this is."""
        return await self._read(UserInfo, "GET", "user")

    async def submit(
        self, config: Mapping[str, Any], *, user: str | None = None, text: str | None = None
    ) -> str:
        """Submit a job (durable on return), for oneself or, as admin, for `user`; return its name.

        `text`: what it was read from, to be kept with its comments.
        """
        path = f"user/{quote(user, safe='')}/jobs" if user else "jobs"
        body = {"json": config} if text is None else {"content": text.encode(), "headers": _AS_JSON}
        answer = await self._read(Submitted, "POST", path, **body)
        for warning in answer.get("warnings", ()):
            self.warned(warning["message"])
        return str(config["jobName"])

    async def jobs(
        self, user: str | None = None, *, states: Sequence[str] = (), limit: int | None = None
    ) -> list[JobSummary]:
        """List jobs, newest first; those of `user`, or in one of `states`, only, the first `limit` (1 to
        10,000), where given."""
        params = _present(username=user or None, state=",".join(states) or None, limit=limit)
        return await self._read(list[JobSummary], "GET", "jobs", params=params)

    async def job(self, user: str, name: str) -> JobDetail:
        """Return a job in full."""
        return await self._read(JobDetail, "GET", _job(user, name))

    async def config(self, user: str, name: str) -> dict[str, Any]:
        """Return a job's JSON as it was submitted."""
        return await self._read(dict[str, Any], "GET", f"{_job(user, name)}/config")

    async def attempts(self, user: str, name: str) -> list[AttemptInfo]:
        """List a job's attempts, oldest first."""
        return await self._read(list[AttemptInfo], "GET", f"{_job(user, name)}/attempts")

    async def stop(self, user: str, name: str, *, reason: str | None = None, force: bool = False) -> None:
        """Stop a job, and tell its user why; stopping an ended one is no error.

        `force`: kill its tasks at once, also where they are being stopped already.
        """
        body = _present(value="STOP", reason=reason, force=force or None)
        await self._send("PUT", f"{_job(user, name)}/executionType", json=body)

    async def delete(self, user: str, name: str) -> None:
        """Delete a job and its logs; a running one is stopped first."""
        await self._send("DELETE", _job(user, name))

    async def validate(self, config: Mapping[str, Any], *, user: str | None = None) -> Validation:
        """Check a job without submitting it: one's own or, as admin, one of `user`."""
        return await self._read(Validation, "POST", "validate", params=_present(user=user), json=config)

    async def available(self, user: str, *, borrowing: bool = False) -> dict[str, AvailableAmounts]:
        """Return what a user's next job could have in each virtual cluster open to the user.

        `borrowing`: also what the other virtual clusters do not use, which may be taken back.
        """
        path = f"user/{quote(user, safe='')}/available"
        params = _present(borrowing=1 if borrowing else None)
        return await self._read(dict[str, AvailableAmounts], "GET", path, params=params)

    async def nodes(self) -> list[NodeInfo]:
        """List the machines."""
        return await self._read(list[NodeInfo], "GET", "nodes")

    async def close_node(self, name: str, reason: str) -> None:
        """Let nothing new start on a machine (administrators); what runs goes on."""
        await self._send("PUT", _node(name), json={"schedulable": False, "reason": reason})

    async def open_node(self, name: str) -> None:
        """Let tasks start on a closed machine again (administrators)."""
        await self._send("PUT", _node(name), json={"schedulable": True})

    async def maintenance(self) -> list[MaintenanceInfo]:
        """List when machines are down, as administrators have planned."""
        return await self._read(list[MaintenanceInfo], "GET", "maintenance")

    async def set_maintenance(
        self, name: str, nodes: Sequence[str], *, begin: int, end: int, reason: str
    ) -> None:
        """Plan when machines are down (administrators); times in ms since the epoch."""
        body = {"nodes": list(nodes), "begin": begin, "end": end, "reason": reason}
        await self._send("PUT", f"maintenance/{quote(name, safe='')}", json=body)

    async def delete_maintenance(self, name: str) -> None:
        """Forget maintenance (administrators)."""
        await self._send("DELETE", f"maintenance/{quote(name, safe='')}")

    async def cluster_usage(self, *, after: int = 0) -> ClusterUsage:
        """Return how many GPUs were taken over the last day, later than `after` (ms since the epoch)."""
        return await self._read(ClusterUsage, "GET", "cluster/usage", params=_present(after=after or None))

    async def virtual_clusters(self) -> dict[str, VirtualClusterInfo]:
        """List the virtual clusters by name."""
        return await self._read(dict[str, VirtualClusterInfo], "GET", "virtual-clusters")

    async def queue(
        self, virtual_cluster: str | None = None, *, limit: int | None = None
    ) -> dict[str, list[QueueEntry]]:
        """List the waiting jobs of each virtual cluster (or of one), first come first.

        `limit`: so many places of each (1 to 10,000), and as many of one's own jobs that come later.
        """
        params = _present(virtualCluster=virtual_cluster, limit=limit, own=limit and 1)
        return await self._read(dict[str, list[QueueEntry]], "GET", "queue", params=params)

    async def changes(self, after: str | None = None) -> str:
        """Return the version of what is free and of the queues, when it is another one than `after`.

        Where nothing changes, the same version comes within half a minute. None: the present one, at once.
        """
        params = _present(after=after)
        answer = await self._read(ClusterVersion, "GET", "changes", params=params, timeout=_LONG_WAIT)
        return answer["version"]

    async def reorder(
        self, user: str, name: str, *, priority: int | None = None, place: int | None = None
    ) -> None:
        """Return a job another priority (0–100), or another place (from 1) among those of its priority."""
        body = _present(priority=priority, place=place)
        await self._send("PUT", f"{_job(user, name)}/queue", json=body)

    async def set_virtual_cluster(
        self,
        name: str,
        capacity: float,
        *,
        max_capacity: float | None = None,
        users: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
    ) -> None:
        """Make a virtual cluster, or change it (administrators); per cent. What is None stays as it is."""
        body = _present(vcCapacity=capacity, vcMaxCapacity=max_capacity, users=users, groups=groups)
        await self._send("PUT", _virtual_cluster(name), json=body)

    async def delete_virtual_cluster(self, name: str) -> None:
        """Delete a virtual cluster that has no jobs left (administrators); its share goes to `default`."""
        await self._send("DELETE", _virtual_cluster(name))

    async def stop_virtual_cluster(self, name: str) -> None:
        """Stop a virtual cluster (administrators): nothing more of it starts, what runs goes on."""
        await self._send("PUT", f"{_virtual_cluster(name)}/status", json={"vcStatus": "stopped"})

    async def start_virtual_cluster(self, name: str) -> None:
        """Start a stopped virtual cluster again (administrators)."""
        await self._send("PUT", f"{_virtual_cluster(name)}/status", json={"vcStatus": "running"})

    async def log(
        self,
        user: str,
        job: str,
        role: str,
        index: int,
        stream: str = "all",
        *,
        attempt: int | None = None,
        offset: int = 0,
        limit: int | None = None,
    ) -> bytes:
        """Read a task's log from a byte offset (negative: from the end)."""
        params = _present(attempt=attempt, offset=offset, limit=limit)
        response = await self._send("GET", _log(user, job, role, index, stream), params=params)
        return response.content

    async def follow_log(
        self,
        user: str,
        job: str,
        role: str,
        index: int,
        stream: str = "all",
        *,
        attempt: int | None = None,
        offset: int = 0,
    ) -> AsyncIterator[bytes]:
        """Return a task's log as it is written, until the task has ended."""
        whole = self.log_stream(user, job, role, index, stream, attempt=attempt, offset=offset, follow=True)
        async with aclosing(whole) as parts:
            async for part in parts:
                yield part.data

    async def log_parts(
        self,
        user: str,
        job: str,
        role: str,
        index: int,
        stream: str = "all",
        *,
        attempt: int | None = None,
        offset: int = 0,
    ) -> AsyncIterator[bytes]:
        """Return a task's log as it is now, piece by piece, however long it is."""
        whole = self.log_stream(user, job, role, index, stream, attempt=attempt, offset=offset)
        async with aclosing(whole) as parts:
            async for part in parts:
                yield part.data

    async def log_stream(
        self,
        user: str,
        job: str,
        role: str,
        index: int,
        stream: str = "all",
        *,
        attempt: int | None = None,
        offset: int = 0,
        follow: bool = False,
        timestamps: bool = False,
    ) -> AsyncGenerator[LogPart, None]:
        """Return a task's log with the offset after each part, at which another call would go on.

        `timestamps`: before each line when it began, and before the first one of the answer in any case.
        """
        params = _present(attempt=attempt, offset=offset)
        flags = {name: 1 for name, wanted in (("follow", follow), ("timestamps", timestamps)) if wanted}
        async with self._stream(_log(user, job, role, index, stream), {**params, **flags}) as response:
            position = LogPosition(response.headers, timestamps=timestamps)
            async for data in response.aiter_bytes():
                yield position.count(data)

    async def task_metrics(
        self, user: str, job: str, role: str, index: int, *, attempt: int | None = None, after: int = 0
    ) -> TaskMetrics:
        """Return what a task has used, later than `after` (ms since the epoch)."""
        path = f"{_task(user, job, role, index)}/metrics"
        params = _present(attempt=attempt, after=after or None)
        return await self._read(TaskMetrics, "GET", path, params=params)

    async def list_events(self, user: str, name: str, *, after: int = 0) -> list[JobEvent]:
        """Return what has happened to a job after event `after`, oldest first."""
        headers = {"Last-Event-ID": str(after)}
        return await self._read(list[JobEvent], "GET", f"{_job(user, name)}/events", headers=headers)

    def events(self, user: str, name: str, *, after: int = 0) -> AsyncIterator[JobEvent]:
        """Return a job's events later than `after`, and go on as they happen, until the job has ended."""
        return self._events(f"{_job(user, name)}/events", after, {})

    async def list_user_events(self, user: str, *, after: int = 0) -> list[JobEvent]:
        """Return what has happened to all jobs of a user after event `after`, oldest first."""
        headers, params = {"Last-Event-ID": str(after)}, {"username": user}
        return await self._read(list[JobEvent], "GET", "events", headers=headers, params=params)

    def user_events(self, user: str, *, after: int = 0) -> AsyncIterator[JobEvent]:
        """Return the events of all jobs of a user later than `after`, and go on as they happen, for ever."""
        return self._events("events", after, {"username": user})

    async def task_port(self, user: str, job: str, role: str, index: int, port: int) -> TaskPort:
        """Return where the scheduler's machine reaches a port of a task."""
        return await self._read(TaskPort, "GET", f"{_task(user, job, role, index)}/ports/{port}")

    async def ssh(self, user: str, name: str, task: str | None = None) -> SshInfo:
        """Return how to reach the running tasks of a job by SSH; `task`: only the one called so."""
        params = {} if task is None else {"task": task}
        return await self._read(SshInfo, "GET", f"{_job(user, name)}/ssh", params=params)

    async def ssh_key(self, user: str, name: str, form: str = "openssh") -> str:
        """Return the private key that opens a job's tasks; `form`: "openssh", "ppk" (PuTTY's) or "public"."""
        response = await self._send("GET", f"{_job(user, name)}/ssh/key", params={"format": form})
        return response.text

    async def public_keys(self, user: str) -> list[PublicKeyInfo]:
        """List the public keys that a user registered."""
        return await self._read(list[PublicKeyInfo], "GET", _public_keys(user))

    async def add_public_key(self, user: str, line: str) -> PublicKeyInfo:
        """Register a public key (a line `ssh-ed25519 AAAA… comment`): it opens every task of the user's."""
        return await self._read(PublicKeyInfo, "POST", _public_keys(user), json={"key": line})

    async def remove_public_key(self, user: str, fingerprint: str) -> None:
        """Forget a public key, by its fingerprint (`SHA256:…`)."""
        await self._send("DELETE", f"{_public_keys(user)}/{quote(fingerprint, safe='')}")

    async def schedules(self, user: str) -> list[ScheduleInfo]:
        """List a user's schedules (jobs that run again and again) by name."""
        return await self._read(list[ScheduleInfo], "GET", _schedules(user))

    async def schedule(self, user: str, name: str) -> ScheduleDetail:
        """Return a schedule with its job."""
        return await self._read(ScheduleDetail, "GET", _schedule(user, name))

    async def schedule_times(self, cron: str, zone: str) -> list[int]:
        """Return the next times at which a schedule would run, in ms since the epoch; nothing is made."""
        return await self._read(list[int], "GET", "schedule-times", params={"cron": cron, "timeZone": zone})

    async def set_schedule(
        self,
        user: str,
        name: str,
        config: Mapping[str, Any],
        *,
        cron: str,
        zone: str,
        overlap: Literal["skip", "allow"] = "skip",
        paused: bool = False,
    ) -> ScheduleInfo:
        """Make a schedule or change it: job `config` is submitted whenever `cron` is due.

        `zone`: the time zone whose clocks tell it, an IANA name. `overlap`: what is done when a run is
        due and another has not ended.
        """
        body = {"cron": cron, "timeZone": zone, "overlap": overlap, "paused": paused, "job": config}
        return await self._read(ScheduleInfo, "PUT", _schedule(user, name), json=body)

    async def pause_schedule(self, user: str, name: str, *, paused: bool = True) -> ScheduleInfo:
        """Pause a schedule, or let it go on; what is due meanwhile is not made up for."""
        return await self._read(
            ScheduleInfo, "PUT", f"{_schedule(user, name)}/state", json={"paused": paused}
        )

    async def run_schedule(self, user: str, name: str) -> str:
        """Submit a schedule's job now; return the job's name."""
        return (await self._read(StartedRun, "POST", f"{_schedule(user, name)}/runs"))["job"]

    async def remove_schedule(self, user: str, name: str) -> None:
        """Delete a schedule; its jobs stay as they are."""
        await self._send("DELETE", _schedule(user, name))

    async def _events(self, path: str, after: int, params: Mapping[str, str]) -> AsyncIterator[JobEvent]:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        async with self._stream(path, {"follow": 1, **params}, headers) as response:
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    yield self._as(JobEvent, line.removeprefix("data:"))

    async def _read(self, model: type[Answer], method: str, path: str, **options: Any) -> Answer:
        return self._as(model, (await self._send(method, path, **options)).content)

    def _as(self, model: type[Answer], answer: bytes | str) -> Answer:
        """Read an answer; what a newer scheduler says beside the model's fields is left out."""
        try:
            return msgspec.json.decode(answer, type=model)
        except ValueError as error:  # of msgspec, or of text that is not UTF-8
            text = msg(
                "What answers at {url} is no scheduler, or not of the version of this client: {reason}",
                url=self.url,
                reason=error,
            )
            raise ApiError(502, "UnexpectedAnswerError", text.in_locale(self._locale)) from error

    async def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = await self._http.request(method, path, **options)
        except httpx.TransportError as error:
            raise UnreachableError(f"the scheduler at {self.url} does not answer: {error}") from error
        _raise_for(response)
        return response

    def _stream(
        self, path: str, params: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> _Stream:
        request = self._http.build_request(
            "GET",
            path,
            params=dict(params),
            headers=dict(headers or {}),
            timeout=httpx.Timeout(30.0, read=None, pool=None),
        )
        return _Stream(self, request)


class _Stream:
    """A response that is read while it comes; refusals and lost connections as in every other call."""

    def __init__(self, client: Client, request: httpx.Request) -> None:
        self._client, self._request = client, request
        self._response: httpx.Response | None = None

    async def __aenter__(self) -> httpx.Response:
        try:
            self._response = await self._client._http.send(self._request, stream=True)
            if self._response.is_error:
                await self._response.aread()
        except httpx.TransportError as error:
            raise UnreachableError(f"the scheduler at {self._client.url} does not answer: {error}") from error
        _raise_for(self._response)
        return self._response

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None:
            await self._response.aclose()
        if isinstance(error, httpx.TransportError):
            raise UnreachableError(f"the connection to the scheduler broke off: {error}") from error


def _job(user: str, name: str) -> str:
    return f"user/{quote(user, safe='')}/jobs/{quote(name, safe='')}"


def _public_keys(user: str) -> str:
    return f"user/{quote(user, safe='')}/ssh-keys"


def _schedules(user: str) -> str:
    return f"user/{quote(user, safe='')}/schedules"


def _schedule(user: str, name: str) -> str:
    return f"{_schedules(user)}/{quote(name, safe='')}"


def _node(name: str) -> str:
    return f"nodes/{quote(name, safe='')}"


def _virtual_cluster(name: str) -> str:
    return f"virtual-clusters/{quote(name, safe='')}"


def _log(user: str, job: str, role: str, index: int, stream: str) -> str:
    return f"{_task(user, job, role, index)}/logs/{stream}"


def _task(user: str, job: str, role: str, index: int) -> str:
    return f"{_job(user, job)}/taskRoles/{quote(role, safe='')}/tasks/{index}"


def _present(**params: Any) -> dict[str, Any]:
    return {key: value for key, value in params.items() if value is not None}


def _raise_for(response: httpx.Response) -> None:
    if not response.is_error:
        return
    try:
        body = response.json()
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    if body.get("code") == "StandbyError":
        raise UnreachableError(str(body.get("message")))
    raise ApiError(
        response.status_code,
        str(body.get("code", "UnknownError")),
        str(body.get("message", f"{response.status_code} {response.reason_phrase}")),
        body.get("errors"),
    )
