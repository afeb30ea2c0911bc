"""Terminals in tasks: their REST handlers, and the WebSockets of their viewers."""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import aclosing
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import asyncssh
from tornado import web
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from pai_labextension.callers import PersonHandler, RefusedError
from pai_labextension.messages import msg
from pai_labextension.models import TerminalInfo
from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.i18n import Message

from .connections import NoTaskError, PerCaller, TaskConnections, TaskName, Terminal, Terminals

# What handlers of terminals, *Connect* and ports share: which task is meant, why it cannot be reached.

#: The parts of an address that name a task.
TASK_PATTERN = r"([^/]+)/([^/]+)/([^/]+)"
#: Raised where a task cannot be reached; `reason_of` puts it into a sentence.
TASK_ERRORS = (RemoteError, ApiError, UnreachableError, asyncssh.Error, OSError)


class TaskHandler(PersonHandler):
    """Is asked about a task, which the first three parts of its path name."""

    def initialize(self, people: PerCaller[Any]) -> None:
        """Take the ways into tasks, each person's apart."""
        self._people = people

    def task(self) -> TaskName:
        """Read which task is meant."""
        user, job, task = self.path_args[:3]
        try:
            return TaskName.read(str(user), str(job), str(task))
        except NoTaskError:
            raise web.HTTPError(HTTPStatus.NOT_FOUND) from None

    def finish_json(self, answer: object) -> None:
        """Answer with JSON."""
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(answer))


def reason_of(error: Exception) -> Message:
    """Return in a sentence why a task cannot be reached."""
    match error:
        case RemoteError():
            return error.message
        case ApiError():
            return msg("The scheduler refuses: {reason}", reason=error.message)
        case UnreachableError():
            return msg("The scheduler does not answer: {reason}", reason=str(error))
    return msg("The task cannot be reached: {reason}", reason=str(error) or type(error).__name__)


# `terminals/<user>/<job>/<role>-<index>/…`: terminals in a task.
#
# Below that stands what jupyter_server_terminals has below a server's base URL, REST API and WebSockets, so
# that JupyterLab's own client of them works with it.

#: What a terminal may be called.
NAME_PATTERN = r"\w{1,64}"
#: How many shells one person may have open at once; the output of each is kept for its next viewer.
MOST_SHELLS = 32


class _TaskTerminals(TaskHandler):
    @property
    def connections(self) -> TaskConnections:
        """Return the caller's ways into tasks."""
        connections: TaskConnections = self._people.of(self.caller)
        return connections

    def terminals(self) -> Terminals:
        """Find the caller's terminals of the task in the address."""
        return self.connections.terminals(self.task())

    def terminal(self) -> Terminal:
        """Find the one of them in the address."""
        name = str(self.path_args[-1])
        terminal = self.terminals().get(name)
        if terminal is None:
            raise web.HTTPError(HTTPStatus.NOT_FOUND, f"There is no terminal {name}.")
        return terminal


class TerminalsHandler(_TaskTerminals):
    """Lists a task's terminals, and opens another one."""

    async def get(self, *_names: str) -> None:
        """List those that are open."""
        await self.check_permission("read")
        self.finish_json([_model(one) for one in self.terminals().list()])

    async def post(self, *_names: str) -> None:
        """Open one; with a `name` that is open already, give that one."""
        await self.check_permission("write")
        body = _parsed(self.request.body or b"{}")
        name = body.get("name") if isinstance(body, dict) else ""
        if name is not None and not (isinstance(name, str) and re.fullmatch(NAME_PATTERN, name)):
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "name: letters, digits and _ only")
        terminals = self.terminals()
        if self.connections.shells >= MOST_SHELLS and (name is None or terminals.get(name) is None):
            raise RefusedError(
                HTTPStatus.TOO_MANY_REQUESTS,
                msg("You have {count} terminals open, the most there can be. Close one.", count=MOST_SHELLS),
            )
        self.connections.locale = self.locale_asked
        try:
            self.finish_json(_model(await terminals.create(name)))
        except TASK_ERRORS as error:
            raise RefusedError(HTTPStatus.BAD_GATEWAY, reason_of(error)) from error


class TerminalHandler(_TaskTerminals):
    """One terminal of a task."""

    async def get(self, *_names: str) -> None:
        """Send that the terminal is open."""
        await self.check_permission("read")
        self.finish_json(_model(self.terminal()))

    async def delete(self, *_names: str) -> None:
        """Hang up."""
        await self.check_permission("write")
        await self.terminal().close()
        self.set_status(HTTPStatus.NO_CONTENT)
        self.finish()


class TerminalSocket(WebSocketHandler, _TaskTerminals):
    """Looks at a terminal, and types into it. Messages are JSON lists, the first item says what it is."""

    _shell: Terminal
    _viewing: asyncio.Task[None] | None = None

    async def get(self, *names: str) -> None:
        """Refuse, or become a WebSocket."""
        await self.check_permission("execute")
        self._shell = self.terminal()
        await super().get(*names)

    def begin(self) -> None:
        """Begin to show what was, and what comes."""
        self._viewing = asyncio.create_task(self._view())

    async def receive(self, message: str | bytes) -> None:
        """Type, or resize; what is neither is not for us."""
        match _parsed(message):
            case ["stdin", str() as text, *_]:
                await self._shell.write(text)
            case ["set_size", int() as rows, int() as columns, *_]:
                self._shell.resize(columns, rows)

    def end(self) -> None:
        """Look no more; the shell goes on."""
        if self._viewing is not None:
            self._viewing.cancel()

    async def _view(self) -> None:
        try:
            await self._send("setup", {})
            async with aclosing(self._shell.view()) as pieces:
                async for piece in pieces:
                    await self._send("stdout", piece)
            if self._shell.farewell is not None:
                await self._send("stdout", f"\r\n{self._shell.farewell.in_locale(self.locale_asked)}\r\n")
            await self._send("disconnect", 1)
            self.close()
        except (WebSocketClosedError, StreamClosedError):
            pass

    async def _send(self, kind: str, content: object) -> None:
        # waits until the browser has taken it, so that a slow one is no burden
        await self.write_message(json.dumps([kind, content]))


def _model(terminal: Terminal) -> TerminalInfo:
    time = datetime.fromtimestamp(terminal.last_activity, UTC)
    return {"name": terminal.name, "last_activity": time.isoformat().replace("+00:00", "Z")}


def _parsed(message: str | bytes) -> object:
    try:
        return json.loads(message)
    except ValueError:
        return None
