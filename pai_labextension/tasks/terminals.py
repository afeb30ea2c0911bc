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
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado import web
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.callers import RefusedError
from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.messages import msg
from pai_labextension.models import TerminalInfo
from pai_labextension.tasks.connections import Terminal, Terminals
from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.i18n import Message

from .connections import NoTaskError, TaskConnections, TaskName

# What handlers of terminals, *Connect* and ports share: which task is meant, why it cannot be reached.

#: The parts of an address that name a task.
TASK_PATTERN = r"([^/]+)/([^/]+)/([^/]+)"
#: Raised where a task cannot be reached; `reason_of` puts it into a sentence.
TASK_ERRORS = (RemoteError, ApiError, UnreachableError, asyncssh.Error, OSError)


class TaskHandler(PAIHandler):
    """Is asked about a task, which the first three parts of its path name."""

    def task(self) -> TaskName:
        """Read which task is meant."""
        user, job, task = self.path_args[:3]
        try:
            return TaskName.read(str(user), str(job), str(task))
        except NoTaskError:
            raise web.HTTPError(HTTPStatus.NOT_FOUND) from None


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


# `<base_url>/pai/terminals/<user>/<job>/<role>-<index>/…`: JupyterLab's terminals, in a task.
#
# Below that stands what jupyter_server_terminals has below a server's base URL, REST API and WebSockets, so
# that JupyterLab's own client of them works with it.

#: What a terminal may be called.
NAME_PATTERN = r"\w{1,64}"


class _TaskTerminals(TaskHandler):
    def initialize(self, connections: TaskConnections) -> None:
        """Take the ways into tasks."""
        self._connections = connections

    def terminals(self) -> Terminals:
        """Find the terminals of the task in the address."""
        return self._connections.terminals(self.task())

    def note_activity(self) -> None:
        """Keep this server from being taken for idle while somebody types."""
        self.settings["last_activity_times"]["pai_terminals"] = datetime.now(UTC)


class TerminalsHandler(_TaskTerminals, APIHandler):
    """Lists a task's terminals, and opens another one."""

    @web.authenticated
    @authorized
    def get(self, *_names: str) -> None:
        """List those that are open."""
        self.finish(json.dumps([_model(one) for one in self.terminals().list()]))

    @web.authenticated
    @authorized
    async def post(self, *_names: str) -> None:
        """Open one; with a `name` that is open already, give that one."""
        name = (self.get_json_body() or {}).get("name")
        if name is not None and not (isinstance(name, str) and re.fullmatch(NAME_PATTERN, name)):
            raise web.HTTPError(HTTPStatus.BAD_REQUEST, "name: letters, digits and _ only")
        self._connections.locale = self.locale_asked
        try:
            self.finish(_model(await self.terminals().create(name)))
        except TASK_ERRORS as error:
            raise RefusedError(HTTPStatus.BAD_GATEWAY, reason_of(error)) from error


class TerminalHandler(_TaskTerminals, APIHandler):
    """One terminal of a task."""

    @web.authenticated
    @authorized
    def get(self, *names: str) -> None:
        """Send that the terminal is open."""
        self.finish(_model(self._terminal(names[-1])))

    @web.authenticated
    @authorized
    async def delete(self, *names: str) -> None:
        """Hang up."""
        await self._terminal(names[-1]).close()
        self.set_status(HTTPStatus.NO_CONTENT)
        self.finish()

    def _terminal(self, name: str) -> Terminal:
        terminal = self.terminals().get(name)
        if terminal is None:
            raise web.HTTPError(HTTPStatus.NOT_FOUND, f"There is no terminal {name}.")
        return terminal


class TerminalSocket(WebSocketMixin, WebSocketHandler, _TaskTerminals):
    """Looks at a terminal, and types into it. Messages are JSON lists, the first item says what it is."""

    _terminal: Terminal
    _viewing: asyncio.Task[None] | None = None

    async def get(self, *names: str) -> None:
        """Refuse, or become a WebSocket."""
        await self.check_permission("execute")
        terminal = self.terminals().get(names[-1])
        if terminal is None:
            raise web.HTTPError(HTTPStatus.NOT_FOUND)
        self._terminal = terminal
        await super().get(*names)

    def open(self, *args: Any, **kwargs: Any) -> None:
        """Begin to show what was, and what comes."""
        super().open(*args, **kwargs)
        self._viewing = asyncio.create_task(self._view())

    async def on_message(self, message: str | bytes) -> None:
        """Type, or resize; what is neither is not for us."""
        self.note_activity()
        match _parsed(message):
            case ["stdin", str() as text, *_]:
                await self._terminal.write(text)
            case ["set_size", int() as rows, int() as columns, *_]:
                self._terminal.resize(columns, rows)

    def on_close(self) -> None:
        """Look no more; the shell goes on."""
        if self._viewing is not None:
            self._viewing.cancel()

    async def _view(self) -> None:
        try:
            await self._send("setup", {})
            async with aclosing(self._terminal.view()) as pieces:
                async for piece in pieces:
                    await self._send("stdout", piece)
            if self._terminal.farewell is not None:
                await self._send("stdout", f"\r\n{self._terminal.farewell.in_locale(self.locale_asked)}\r\n")
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


def make_part(settings: RouteSettings) -> RouteGroup:
    """Make the routes of terminals, and the connections behind them."""
    connections = TaskConnections(settings.api_url, settings.token)
    terminals = rf"/pai/terminals/{TASK_PATTERN}"
    given = {"connections": connections}
    return RouteGroup(
        [
            (rf"{terminals}/api/terminals", TerminalsHandler, given),
            (rf"{terminals}/api/terminals/({NAME_PATTERN})", TerminalHandler, given),
            (rf"{terminals}/terminals/websocket/({NAME_PATTERN})", TerminalSocket, given),
        ],
        connections.close,
    )
