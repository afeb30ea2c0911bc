"""Which ports a task has, by label, and an HTTP client to each task: what the proxy of ports stands on."""

from __future__ import annotations

import ipaddress
import time
from dataclasses import dataclass, field
from http import HTTPStatus

import aiohttp

from pai_labextension.base_handlers import RefusedError
from pai_labextension.messages import msg
from pai_scheduler.client.ssh.connection import RemoteError, find_way
from pai_scheduler.i18n import Message

from .connections import TaskConnections, TaskName
from .port_channel import http_session

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
    """Finds ports of this notebook server's own user, and speaks HTTP to them."""

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
        """Refuse tasks of others: what listens there is shown as pages of this server."""
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
