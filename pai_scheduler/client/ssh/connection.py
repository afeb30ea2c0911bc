"""Connections into tasks: the task that is meant, one SSH connection through the gateway, shared."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

import asyncssh

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.models import SshContainer, SshGateway, SshInfo
from pai_scheduler.ssh.login import LoginName

# The way to a task: one SSH connection through the gateway, with the token that the scheduler knows too.

#: Seconds until a gateway that does not answer is given up, and after which a silent one is asked for a sign.
_CONNECT_SECONDS, _KEEPALIVE_SECONDS = 15.0, 30.0


class RemoteError(Exception):
    """A task cannot be reached; `message` says why, and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class UnreachableGatewayError(RemoteError):
    """Nobody answers at the gateway's address, or no longer: it may be back in a moment."""


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    """Address of the SSH gateway, and the key by which it is known (a line `ssh-ed25519 …`)."""

    host: str
    port: int
    host_key: str


async def find_gateway(client: Client) -> GatewayAddress:
    """Ask the scheduler for its gateway; RemoteError where there is none. `ApiError` and the like as ever.

    Where it has no name of its own, it is at the address at which the scheduler was reached.
    """
    return gateway_of((await client.about()).get("ssh"), client.url)


def gateway_of(found: SshGateway | None, url: str) -> GatewayAddress:
    """Read what the scheduler at `url` says of its gateway; RemoteError where it has none."""
    if found is None:
        raise RemoteError(msg("This scheduler has no SSH gateway."))
    host = found["host"] or urlsplit(url).hostname or "127.0.0.1"
    return GatewayAddress(host, found["port"], found["hostKey"])


async def connect(gateway: GatewayAddress, login: str, token: str) -> asyncssh.SSHClientConnection:
    """Log in as `login` (`<user>+<job>+<role>-<index>`, see docs/users/ssh.md); RemoteError with the reason.

    UnreachableGatewayError where nobody answers.
    """
    address = f"{gateway.host}:{gateway.port}"
    try:
        known = asyncssh.import_known_hosts(f"* {gateway.host_key}\n")
        return await asyncssh.connect(
            gateway.host,
            gateway.port,
            username=login,
            password=token,
            known_hosts=known,
            # nothing of this user's own settings: it must work the same for everybody
            config=[],
            client_keys=[],
            agent_path=None,
            connect_timeout=_CONNECT_SECONDS,
            keepalive_interval=_KEEPALIVE_SECONDS,
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise RemoteError(
            msg(
                "At {address} answers another SSH server than the scheduler's gateway. Ask an administrator.",
                address=address,
            )
        ) from error
    except asyncssh.PermissionDenied as error:
        raise RemoteError(msg("The gateway does not let {login} in with this token.", login=login)) from error
    except (OSError, asyncssh.Error, TimeoutError) as error:
        reason = str(error) or type(error).__name__
        raise UnreachableGatewayError(
            msg(
                "The SSH gateway at {address} does not answer: {reason}. Where it never does, ask an "
                "administrator whether its port is open from here, and by which name.",
                address=address,
                reason=reason,
            )
        ) from error


# Finds the task that somebody means, and the way to it, or says why there is none.

#: Tasks that a sentence lists before it says "…".
_LISTED = 10
_TASK_NAME = re.compile(r"[A-Za-z0-9._~]+-[0-9]+")


@dataclass(frozen=True, slots=True)
class TaskAddress:
    """The way to one running task, as it was when the scheduler was asked."""

    gateway: GatewayAddress
    login: LoginName

    @property
    def task(self) -> str:
        """The task's name, `<role>-<index>`."""
        return self.login.task

    @asynccontextmanager
    async def opened(self, token: str) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """Log in with a token, and out again; RemoteError, UnreachableGatewayError."""
        connection = await connect(self.gateway, str(self.login), token)
        try:
            yield connection
        finally:
            connection.close()
            await connection.wait_closed()


async def find_way(client: Client, user: str, job: str, task: str | None) -> TaskAddress:
    """Find the way to a task, by default to the only one that runs; RemoteError says why there is none."""
    ways = await find_ways(client, user, job, [task] if task else None)
    if len(ways) > 1:
        raise RemoteError(
            msg(
                "Job {job} has several tasks: name one of {tasks}.",
                job=job,
                tasks=_listed([way.task for way in ways]),
            )
        )
    return ways[0]


async def find_ways(
    client: Client, user: str, job: str, tasks: Sequence[str] | None = None
) -> list[TaskAddress]:
    """Find the ways to tasks of a job, by default to all that run; never an empty list.

    RemoteError where one of them does not run or has no SSH.
    """
    try:
        info = await _info(client, user, job, tasks)
    except ApiError as error:
        if error.code != "NoJobSshInfoError":
            raise
        raise RemoteError(await why_nothing_runs(client, user, job)) from None
    running = {container["task"]: container for container in info["containers"]}
    for task in tasks or ():
        if task not in running:
            raise RemoteError(_no_such_task(job, task, list(running)))
    chosen = [running[task] for task in tasks] if tasks else list(running.values())
    for container in chosen:
        _check_open(container)
    gateway = gateway_of(info["gateway"], client.url)
    return [TaskAddress(gateway, LoginName(user, job, container["task"])) for container in chosen]


async def _info(client: Client, user: str, job: str, tasks: Sequence[str] | None) -> SshInfo:
    if tasks and len(tasks) == 1:
        try:
            return await client.ssh(user, job, tasks[0])
        except ApiError as error:
            if error.code != "NoJobSshInfoError":
                raise
    # also to name those that do run
    return await client.ssh(user, job)


async def why_nothing_runs(client: Client, user: str, job: str) -> Message:
    """Return why nobody can be in a job now."""
    status = (await client.job(user, job))["jobStatus"]
    if status["subState"] == "ENDED":
        return msg(
            "Job {job} has ended ({state}): nothing of it runs any more.", job=job, state=status["state"]
        )
    if status["subState"] == "ENDING" and status["appExitCode"] is not None:
        return msg("Job {job} is ending: its last tasks are being stopped.", job=job)
    if status["waitingReason"]:
        return msg("Job {job} does not run yet: {reason}", job=job, reason=status["waitingReason"])
    return msg(
        "Nothing of job {job} runs now ({state}): try again in a moment.", job=job, state=status["state"]
    )


def is_task_name(text: str) -> bool:
    """Return whether this is how a task is called: `<role>-<index>`."""
    return _TASK_NAME.fullmatch(text) is not None


def _no_such_task(job: str, task: str, running: Sequence[str]) -> Message:
    if not is_task_name(task):
        return msg("{task} is no task; write role and index, for example worker-0.", task=task)
    return msg(
        "No task {task} of job {job} runs. Those that run: {tasks}.",
        task=task,
        job=job,
        tasks=_listed(running),
    )


def _check_open(container: SshContainer) -> None:
    if container["off"] is not None:
        raise RemoteError(
            msg("SSH is off in {task}: {reason}", task=container["task"], reason=container["off"])
        )


def _listed(tasks: Sequence[str]) -> str:
    names = list(itertools.islice(tasks, _LISTED))
    return ", ".join(names) + (", …" if len(tasks) > _LISTED else "")


# One SSH connection to a task for all who need one: opened when needed, opened anew after it broke.

OpenConnection = Callable[[], Awaitable[asyncssh.SSHClientConnection]]


class SharedConnection:
    """Shares the connection that `open_connection` makes; closes it when unused for `idle` seconds."""

    def __init__(self, open_connection: OpenConnection, idle: float = 60.0) -> None:
        self._open = open_connection
        self._idle = idle
        self._turn = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None
        self._users = 0
        self._closing: asyncio.TimerHandle | None = None

    @property
    def unused(self) -> bool:
        """Return whether nobody uses it and nothing is open."""
        return self._users == 0 and (self._connection is None or self._connection.is_closed())

    @asynccontextmanager
    async def use(self) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """Keep the connection open for a while; whatever `open_connection` raises."""
        connection = await self.take()
        try:
            yield connection
        finally:
            self.give_back()

    async def take(self) -> asyncssh.SSHClientConnection:
        """Keep the connection open until it is given back; whatever `open_connection` raises."""
        self._users += 1
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        try:
            return await self._get()
        except BaseException:
            self.give_back()
            raise

    def give_back(self) -> None:
        """Need the connection no more; once for each `take`."""
        self._users -= 1
        if self._users == 0:
            self._closing = asyncio.get_running_loop().call_later(self._idle, self._close_now)

    async def close(self) -> None:
        """Close the connection, also where it is in use."""
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None
        connection = self._connection
        self._close_now()
        if connection is not None:
            await connection.wait_closed()

    async def _get(self) -> asyncssh.SSHClientConnection:
        async with self._turn:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._open()
            return self._connection

    def _close_now(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
