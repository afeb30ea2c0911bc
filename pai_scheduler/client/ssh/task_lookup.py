"""Finds the task that somebody means, and the way to it, or says why there is none."""

from __future__ import annotations

import itertools
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncssh

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.models import SshContainer, SshInfo
from pai_scheduler.ssh.keys.login_name import LoginName

from .connection import GatewayAddress, RemoteError, connect, gateway_of

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
