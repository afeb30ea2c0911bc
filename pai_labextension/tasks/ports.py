"""Ports of tasks, and the HTTP client that reaches them through SSH."""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, cast

import aiohttp
import asyncssh
from aiohttp.client_proto import ResponseHandler
from asyncssh import OPEN_CONNECT_FAILED

from pai_labextension.callers import RefusedError
from pai_labextension.messages import msg
from pai_scheduler.client.ssh.connection import RemoteError, SharedConnection, find_way
from pai_scheduler.i18n import Message

from .connections import TaskConnections, TaskName

# HTTP to a port of a task: aiohttp's client, whose connections are channels of one SSH connection.


#: A task's own machine, as it calls it.
_THERE = "localhost"
#: Bytes of a line of a header that an application may write.
_HEADER_BYTES = 64 * 1024


def http_session(shared: SharedConnection, address: str) -> aiohttp.ClientSession:
    """Make a client for the task at the end of `shared`; its URLs name `localhost`.

    An application that does not listen there is looked for at the task's `address`. Requests raise
    asyncssh.ChannelOpenError where nobody listens, and whatever the connection raises when it is opened.
    """
    return aiohttp.ClientSession(
        connector=_Connector(shared, [_THERE, *([address] if address else [])]),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        # an application may think, or say nothing, for as long as it likes
        timeout=aiohttp.ClientTimeout(total=None),
        skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        max_line_size=_HEADER_BYTES,
        max_field_size=_HEADER_BYTES,
    )


class _Connector(aiohttp.BaseConnector):
    """Opens channels where aiohttp's own connectors open sockets, in the same method."""

    def __init__(self, shared: SharedConnection, hosts: list[str]) -> None:
        # what a browser opens is bounded by the browser
        super().__init__(limit=0)
        self._shared, self._hosts = shared, hosts

    async def _create_connection(
        self,
        req: aiohttp.ClientRequest,
        traces: list[Any],  # noqa: ARG002 - aiohttp asks for it
        timeout: aiohttp.ClientTimeout,  # noqa: ARG002, ASYNC109
    ) -> ResponseHandler:
        port = req.url.port or 0
        try:
            return await self._opened(port)
        except _BrokenError:
            # it broke while nobody used it, which is noticed only now
            return await self._opened(port)

    async def _opened(self, port: int) -> ResponseHandler:
        connection = await self._shared.take()
        try:
            for host in self._hosts:
                try:
                    make = partial(_Channel, self._shared.give_back)
                    _, channel = await connection.create_connection(make, host, port)
                    return cast(_Channel, channel).protocol
                except asyncssh.ChannelOpenError as error:
                    refused = error
                    if error.code != OPEN_CONNECT_FAILED:
                        break
            if connection.is_closed():
                raise _BrokenError(refused.code, refused.reason)
            raise refused
        except BaseException:
            self._shared.give_back()
            raise


class _BrokenError(asyncssh.ChannelOpenError):
    """The connection is gone in which a channel was to be opened."""


class _Channel(asyncssh.SSHTCPSession[bytes]):
    """Is a transport to aiohttp's protocol, and tells when it is closed."""

    def __init__(self, closed: Callable[[], None]) -> None:
        self.protocol = ResponseHandler(asyncio.get_running_loop())
        self._closed = closed
        self._channel: asyncssh.SSHTCPChannel[bytes] | None = None

    def connection_made(self, chan: asyncssh.SSHTCPChannel[bytes]) -> None:
        """Take the channel, which has all that a transport has."""
        self._channel = chan
        self.protocol.connection_made(cast(asyncio.Transport, chan))

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:  # noqa: ARG002
        """Hand on what came."""
        self.protocol.data_received(data)

    def eof_received(self) -> bool:
        """Nothing more comes: an HTTP connection is at its end then, as if a socket had been closed."""
        if self._channel is not None:
            self._channel.close()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Hand on the end."""
        self.protocol.connection_lost(exc)
        self._closed()

    def pause_writing(self) -> None:
        """Hand on that the task does not keep up."""
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        """Hand on that it does again."""
        self.protocol.resume_writing()


# Which ports a task has, by label, and an HTTP client to each task: what the proxy of ports stands on.

#: Seconds for which a task is taken to have the ports that it had.
_KNOWN_SECONDS = 10.0
_MOST = 65535


@dataclass(frozen=True, slots=True)
class TaskPorts:
    """The ports of a running task by label, and the address at which it listens besides its loopback."""

    by_label: dict[str, list[int]]
    address: str

    def number(self, label: str) -> int | None:
        """Find a port: `tensorboard`, its second one `tensorboard.1`, or any number; None: there is none."""
        if label in self.by_label:
            return next(iter(self.by_label[label]), None)
        name, _, place = label.rpartition(".")
        if name in self.by_label and place.isdecimal() and int(place) < len(self.by_label[name]):
            return self.by_label[name][int(place)]
        if label.isdecimal() and label.isascii() and 0 < int(label) <= _MOST:
            return int(label)
        return None

    def listed(self) -> list[tuple[str, int]]:
        """List them as one asks for them."""
        return [
            (label if place == 0 else f"{label}.{place}", port)
            for label, ports in self.by_label.items()
            for place, port in enumerate(ports)
        ]


@dataclass(slots=True)
class _Known:
    ports: TaskPorts
    http: aiohttp.ClientSession
    #: `time.monotonic` of the last time that the scheduler was asked
    since: float = field(default_factory=time.monotonic)


class Ports:
    """Finds ports of one person's own tasks, and speaks HTTP to them."""

    def __init__(self, connections: TaskConnections) -> None:
        self._connections = connections
        self._known: dict[TaskName, _Known] = {}

    async def find(self, task: TaskName, label: str) -> tuple[int, aiohttp.ClientSession]:
        """Find a port's number and the client for it.

        RefusedError where it is not theirs or there is none, RemoteError where the task does not run;
        `ApiError`, `UnreachableError`.
        """
        await self.check_owner(task)
        known = self._known.get(task)
        if known is None or time.monotonic() - known.since > _KNOWN_SECONDS:
            known = await self._ask(task, known)
        port = known.ports.number(label)
        if port is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, _no_port(task, label, known.ports))
        return port, known.http

    async def check_owner(self, task: TaskName) -> None:
        """Refuse tasks of others: what listens there is shown as pages of one's own server."""
        if task.user != await self._connections.owner():
            sentence = msg("The ports of {user}'s tasks are open to {user} only.", user=task.user)
            raise RefusedError(HTTPStatus.FORBIDDEN, sentence)

    async def of(self, task: TaskName) -> TaskPorts:
        """Ask the scheduler which ports a running task has; RemoteError, `ApiError`, `UnreachableError`."""
        async with self._connections.client() as client:
            detail = await client.job(task.user, task.job)
            role = detail["taskRoles"].get(task.role)
            for status in role["taskStatuses"] if role is not None else ():
                if status["taskIndex"] == task.index and status["taskState"] == "RUNNING":
                    ports = status["containerPorts"].items()
                    return TaskPorts(
                        {label: [int(port) for port in text.split(",") if port] for label, text in ports},
                        _reachable(status["containerIp"]),
                    )
            # says why there is no way to it
            await find_way(client, task.user, task.job, task.task)
            raise RemoteError(msg("{task} of job {job} does not run.", task=task.task, job=task.job))

    def forget(self, task: TaskName) -> None:
        """Ask anew the next time: it may have been started again, with other ports."""
        if task in self._known:
            self._known[task].since = float("-inf")

    async def close(self) -> None:
        """Close all connections."""
        for known in self._known.values():
            await known.http.close()

    async def _ask(self, task: TaskName, known: _Known | None) -> _Known:
        ports = await self.of(task)
        if known is not None and known.ports.address == ports.address:
            known.ports, known.since = ports, time.monotonic()
            return known
        made = self._known[task] = _Known(
            ports, http_session(self._connections.connection(task), ports.address)
        )
        if known is not None:
            await known.http.close()
        return made


def _reachable(address: str) -> str:
    try:
        return "" if ipaddress.ip_address(address).is_loopback else address
    except ValueError:
        return ""


def _no_port(task: TaskName, label: str, ports: TaskPorts) -> Message:
    listed = ", ".join(name for name, _ in ports.listed())
    if not listed:
        return msg("{task} has no port “{label}”: its portList is empty.", task=task.task, label=label)
    return msg("{task} has no port “{label}”, only {ports}.", task=task.task, label=label, ports=listed)
