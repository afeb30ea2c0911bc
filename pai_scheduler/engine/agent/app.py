"""The agent's HTTP API (`engine/swarm/protocol.py` says what is spoken); who may ask is TLS's business."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from tornado.iostream import IOStream, StreamClosedError
from tornado.web import Application, RequestHandler, stream_request_body

from pai_scheduler.engine.logs.replication import missing
from pai_scheduler.engine.protocol import Engine, EngineError, Gang, Launch, NoSshEndpointError
from pai_scheduler.engine.swarm.protocol import (
    LOG_BYTES,
    SESSION,
    GangAddress,
    Kill,
    Listen,
    LogWanted,
    Open,
    WayIn,
    decode,
    encode,
)
from pai_scheduler.engine.swarm.tunnel import connect, splice
from pai_scheduler.job.message_documents import message_document
from pai_scheduler.job.task import TaskRef

from .folders import FolderCopy, FolderError, Folders
from .host import EngineHost, SessionError

_log = logging.getLogger(__name__)

_SWITCHING = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: tcp\r\nConnection: Upgrade\r\n\r\n"

#: more bytes than can have been read together with a request
_ALL = 2**30

_Step = Callable[[Engine, Any], Awaitable[object]]


def make_app(host: EngineHost, folders: Folders) -> Application:
    """Return the application of an agent."""
    context: dict[str, object] = {"host": host, "folders": folders}
    return Application(
        [
            (r"/v1/folders/([0-9a-f]{64})/([^/]+)", FolderHandler, context),
            (r"/v1/tasks/([^/]+)/connect/([0-9]{1,5})", ConnectHandler, context),
            (r"/v1/callers/([0-9a-f]{32})", CallerHandler, context),
            (r"/v1/([a-z_]+)", CallHandler, context),
        ],
        log_function=lambda _: None,
    )


class AgentHandler(RequestHandler):
    """Base of all handlers: the session, and refusals that the other side understands."""

    def initialize(self, host: EngineHost, folders: Folders) -> None:
        """Take what the application has."""
        self.host, self.folders = host, folders

    @property
    def session(self) -> str:
        """Return the session that the request names."""
        return self.request.headers.get(SESSION, "")

    def answer(self, value: object) -> None:
        """End with a value."""
        self.set_header("Content-Type", "application/vnd.msgpack")
        self.finish(encode(value))

    def refuse(self, status: int, reason: object) -> None:
        """End with an error: a message's document, or a text for the log."""
        self.set_status(status)
        self.answer(reason)

    def write_error(self, status_code: int, **about: Any) -> None:
        """Answer what no call expects, such as a path that there is not."""
        error = about.get("exc_info", (None, None, None))[1]
        self.finish(encode(f"{status_code}: {error}"))


class CallHandler(AgentHandler):
    """The calls of the engine protocol, one a name."""

    async def post(self, name: str) -> None:
        """Answer a call."""
        try:
            if name == "open":
                opened = await self.host.open(decode(self.request.body, Open))
                self.answer(opened)
            elif name == "listen":
                self.answer(await self.host.listen(self.session, decode(self.request.body, Listen)))
            elif name in _CALLS:
                kind, step = _CALLS[name]
                engine = self.host.engine_of(self.session)
                asked = decode(self.request.body, kind)
                self.answer(await step(engine, asked))
            else:
                self.refuse(404, f"there is no call {name}")
        except msgspec.MsgspecError as error:
            self.refuse(400, str(error))
        except SessionError:
            self.refuse(409, "the session is over")
        except (EngineError, NoSshEndpointError) as error:
            self.refuse(422, message_document(error.message))


@stream_request_body
class FolderHandler(AgentHandler):
    """Takes a copy of a folder over, as a tar archive; or tells whether it is there."""

    copy: FolderCopy | None = None
    dropping: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Let nobody in whose session is over, before anything is sent."""
        try:
            self.host.engine_of(self.session)
        except SessionError:
            self.refuse(409, "the session is over")
        if self.request.connection is not None:
            self.request.connection.set_max_body_size(2**62)  # type: ignore[attr-defined]

    def get(self, key: str, name: str) -> None:
        """Return where the copy is; null where it is not there."""
        found = self.folders.find(key, name)
        self.answer(None if found is None else str(found))

    async def data_received(self, chunk: bytes) -> None:
        """Take a piece."""
        if self.copy is None:
            self.copy = self.folders.begin(*self.path_args)
        await self.copy.add(chunk)

    async def put(self, key: str, name: str) -> None:  # noqa: ARG002
        """Put the copy in its place."""
        try:
            if self.copy is None:
                self.refuse(400, "nothing was sent")
                return
            copy, self.copy = self.copy, None
            self.answer(str(await copy.finish()))
        except (FolderError, OSError) as error:
            await copy.give_up()
            self.refuse(507, str(error))

    async def delete(self, key: str, name: str) -> None:  # noqa: ARG002
        """Remove the copy."""
        await self.folders.remove(key)
        self.answer(None)

    def on_connection_close(self) -> None:
        """Drop what came of a copy whose sender has gone."""
        copy, self.copy = self.copy, None
        if copy is not None:
            self.dropping = asyncio.create_task(copy.give_up())


class ConnectHandler(AgentHandler):
    """Passes bytes on to a port of a task: after the answer 101 the connection is a plain one."""

    async def post(self, name: str, port: str) -> None:
        """Connect."""
        task = TaskRef.parse(name)
        try:
            engine = self.host.engine_of(self.session)
            if task is None:
                self.refuse(404, "no such task")
                return
            connection = await connect(await engine.task_address(task), int(port))
        except SessionError:
            self.refuse(409, "the session is over")
            return
        except (NoSshEndpointError, EngineError) as error:
            self.refuse(422, message_document(error.message))
            return
        except (OSError, OverflowError) as error:  # (such as a port that there cannot be)
            self.refuse(502, str(error))
            return
        await _hand_over(self.detach(), connection)


class CallerHandler(AgentHandler):
    """Hands a connection of a container over, after the answer 101."""

    async def post(self, caller: str) -> None:
        """Take the connection."""
        try:
            connection = self.host.take_caller(self.session, caller)
        except SessionError:
            self.refuse(409, "the session is over")
            return
        if connection is None:
            self.refuse(404, "it waits no more")
            return
        await _hand_over(self.detach(), connection)


async def _hand_over(stream: IOStream, connection: socket.socket) -> None:
    """Carry bytes between a request's connection and another one until both have ended; close both."""
    with connection:
        try:
            await stream.write(_SWITCHING)
            begun = _read_already(stream)
            # from here on its socket is read and written without tornado
            stream.io_loop.remove_handler(stream.fileno())
            await splice(connection, stream.socket, begun)
        except (StreamClosedError, OSError) as error:
            _log.info("a connection broke off: %s", error)
        finally:
            stream.close()


def _read_already(stream: IOStream) -> bytes:
    """Return what was read together with the request."""
    reading = asyncio.ensure_future(stream.read_bytes(_ALL, partial=True))
    return reading.result() if reading.done() and reading.exception() is None else b""


async def _adopt(engine: Engine, expected: list[TaskRef]) -> None:
    await engine.adopt(dict.fromkeys(expected, ""))


async def _prepare(engine: Engine, gang: Gang) -> list[GangAddress]:
    return [GangAddress(task, address) for task, address in (await engine.prepare(gang)).items()]


async def _kill(engine: Engine, kill: Kill) -> None:
    await engine.kill(kill.task, kill.grace_seconds)


async def _refuses_image(engine: Engine, image: str) -> object:
    reason = await engine.refuses_image(image)
    return None if reason is None else message_document(reason)


async def _way_in(engine: Engine, task: TaskRef) -> WayIn:
    found = await engine.ssh_endpoint(task)
    return WayIn(found.port, found.isolated, found.signals, found.published)


async def _log_part(engine: Engine, wanted: LogWanted) -> object:
    return await asyncio.to_thread(missing, engine.log(wanted.task).folder, wanted.copied, LOG_BYTES)


_CALLS: Mapping[str, tuple[Any, _Step]] = {
    "adopt": (list[TaskRef], _adopt),
    "prepare": (Gang, _prepare),
    "launch": (Launch, lambda engine, launch: engine.launch(launch)),
    "kill": (Kill, _kill),
    "refuses_image": (str, _refuses_image),
    "end_for_room": (TaskRef, lambda engine, task: engine.end_for_room(task)),
    "release": (Gang, lambda engine, gang: engine.release(gang)),
    "forget": (TaskRef, lambda engine, task: engine.forget(task)),
    "usage": (TaskRef, lambda engine, task: engine.usage(task)),
    "ssh_endpoint": (TaskRef, _way_in),
    "log": (LogWanted, _log_part),
}
