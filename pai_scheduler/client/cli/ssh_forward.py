"""`pai port-forward`: ports of a task at ports of this machine."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import asyncssh

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError, connect
from pai_scheduler.client.ssh.forward import keep_open, listening
from pai_scheduler.client.ssh.shared_connection import SharedConnection
from pai_scheduler.client.ssh.task_lookup import TaskAddress, find_way, is_task_name, why_nothing_runs
from pai_scheduler.i18n import Message, msg

from .session import CliSession
from .tables import printable_lines

_LAST_PORT = 65535
#: Seconds between two tries to hear of the job.
_AGAIN_SECONDS = 1.0
_WRITTEN = re.compile(r"(?:(?P<local>[0-9]{1,5}):)?(?P<remote>[^:\s]+)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """A port as somebody wrote it. `local` None: the same number as there, or a free one."""

    local: int | None
    remote: str


async def port_forward(
    session: CliSession, *, name: str, user: str | None, task: str | None, ports: Sequence[str]
) -> int:
    """Forward ports until it is ended (^C), or the task has."""
    owner = await session.owner(user)
    if task is not None and not is_task_name(task):
        # there is but one task: it need not be named
        ports = [task, *ports]
        task = None
    way = await find_way(session.client, owner, name, task)
    numbers = await _ports_of(session, way)
    wanted = [_read(port) for port in ports]
    remotes = [_number(each.remote, numbers) for each in wanted]

    async def open_again() -> asyncssh.SSHClientConnection:
        # another attempt of the job may run by now, or none
        now = await find_way(session.client, owner, name, way.task)
        return await connect(now.gateway, str(now.login), session.client.token)

    def complain(message: Message) -> None:
        print(printable_lines(message.in_locale(session.locale)), file=sys.stderr, flush=True)

    async with AsyncExitStack() as stack:
        shared = SharedConnection(open_again)
        stack.push_async_callback(shared.close)
        async with shared.use():
            # what is wrong with the way is said before any port is
            pass
        for each, remote in zip(wanted, remotes, strict=True):
            local = await stack.enter_async_context(listening(shared, each.local, remote, complain))
            shown = each.remote if each.remote == str(remote) else f"{remote} ({each.remote})"
            session.say("127.0.0.1:{local} is port {port} of {task}.", local=local, port=shown, task=way.task)
        sys.stdout.flush()
        await _first_of(keep_open(shared, complain), _until_ended(session.client, owner, name))
    return 0


async def _first_of(*endless: Coroutine[Any, Any, None]) -> None:
    """Wait for the first that ends, by an error."""
    try:
        async with asyncio.TaskGroup() as group:
            for each in endless:
                group.create_task(each)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _until_ended(client: Client, user: str, job: str) -> None:
    """Wait for the end of the job, of which a connection that nobody uses hears nothing; RemoteError then."""
    seen = 0
    while True:
        try:
            async for event in client.events(user, job, after=seen):
                seen = event["id"]
            raise RemoteError(await why_nothing_runs(client, user, job))
        except UnreachableError:
            # it is being restarted: what runs goes on
            await asyncio.sleep(_AGAIN_SECONDS)


def _read(written: str) -> Wanted:
    match = _WRITTEN.fullmatch(written)
    if match is None or int(match["local"] or 0) > _LAST_PORT:
        raise RemoteError(msg("{port} is no port: write 8888, http, or 8080:http.", port=written))
    return Wanted(int(match["local"]) if match["local"] else None, match["remote"])


def _number(written: str, labels: Mapping[str, Sequence[int]]) -> int:
    """Return the number of a task's port: as written, of a label, or of its second one (`label.1`)."""
    if written.isascii() and written.isdigit() and 0 < int(written) <= _LAST_PORT:
        return int(written)
    label, _, place = written.rpartition(".")
    if written in labels:
        return labels[written][0]
    if label in labels and place.isascii() and place.isdigit() and int(place) < len(labels[label]):
        return labels[label][int(place)]
    raise RemoteError(
        msg(
            "The task has no port {port}. Its ports have the labels {labels}.",
            port=written,
            labels=", ".join(labels) or "-",
        )
    )


async def _ports_of(session: CliSession, way: TaskAddress) -> Mapping[str, Sequence[int]]:
    detail = await session.client.job(way.login.user, way.login.job)
    role, _, index = way.task.rpartition("-")
    for task in detail["taskRoles"][role]["taskStatuses"]:
        if task["taskIndex"] == int(index):
            ports = task["containerPorts"].items()
            return {
                label: [int(number) for number in numbers.split(",")] for label, numbers in ports if numbers
            }
    return {}
