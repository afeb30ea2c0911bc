"""The ways from this notebook server into tasks: through the SSH gateway, with the server's own token."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncssh

from pai_scheduler.client.rest import Client
from pai_scheduler.client.ssh.connection import SharedConnection, connect, find_way
from pai_scheduler.client.ssh.terminals import Terminals

#: What the scheduler lets users, jobs and roles be called; a user has any name that the Hub knows.
_USER = re.compile(r"[^\x00-\x1f\x7f]{1,255}")
_JOB = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._~-]{1,255}")
_TASK = re.compile(r"(?P<role>[A-Za-z0-9._~]{1,255})-(?P<index>[0-9]{1,9})")


class NoTaskError(Exception):
    """There can be no task of this name."""


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task: whose, of which job, which of its tasks."""

    user: str
    job: str
    role: str
    index: int

    @classmethod
    def read(cls, user: str, job: str, task: str) -> TaskName:
        """Read the parts of an address, decoded; `task`: `<role>-<index>`. NoTaskError."""
        match = _TASK.fullmatch(task)
        if match is None or _JOB.fullmatch(job) is None or _USER.fullmatch(user) is None:
            raise NoTaskError(f"{user}/{job}/{task}")
        return cls(user, job, match["role"], int(match["index"]))

    @property
    def task(self) -> str:
        """Its name among the tasks of its job."""
        return f"{self.role}-{self.index}"


class TaskConnections:
    """The connections to tasks, what is kept open for each of them, and who we are."""

    def __init__(self, api_url: str, token: str) -> None:
        self._api_url, self._token = api_url, token
        self._terminals: dict[TaskName, Terminals] = {}
        self._connections: dict[TaskName, SharedConnection] = {}
        self._owner: str | None = None
        #: Of what the scheduler says; a notebook server has one person, who asked last in this language.
        self.locale = "en"

    def client(self) -> Client:
        """Make a client of the scheduler's API, to be closed."""
        return Client(self._api_url, self._token, locale=self.locale)

    async def owner(self) -> str:
        """Return whose notebook server this is; `ApiError`, `UnreachableError`."""
        if self._owner is None:
            async with self.client() as client:
                self._owner = (await client.whoami())["username"]
        return self._owner

    async def open(self, task: TaskName) -> asyncssh.SSHClientConnection:
        """Log into a task; RemoteError says why that cannot be. `ApiError`, `UnreachableError`."""
        async with self.client() as client:
            way = await find_way(client, task.user, task.job, task.task)
        return await connect(way.gateway, str(way.login), self._token)

    def terminals(self, task: TaskName) -> Terminals:
        """Return the terminals of a task."""
        if task not in self._terminals:
            self._terminals[task] = Terminals(partial(self.open, task))
        return self._terminals[task]

    def connection(self, task: TaskName) -> SharedConnection:
        """Return the connection that all ports of a task share."""
        if task not in self._connections:
            self._connections[task] = SharedConnection(partial(self.open, task))
        return self._connections[task]

    async def close(self) -> None:
        """Close all that is open."""
        closing: list[Coroutine[Any, Any, None]] = [
            *(terminals.close() for terminals in self._terminals.values()),
            *(connection.close() for connection in self._connections.values()),
        ]
        await asyncio.gather(*closing, return_exceptions=True)
