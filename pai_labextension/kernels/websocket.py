"""The connection between a notebook and its kernel, which may still wait for its turn.

jupyter_server gives a kernel a minute to answer, and a browser less to connect. Here a notebook is connected
at once: what is run in it is kept until there is a kernel, in order, however long that takes. So it is when a
kernel comes back, after its death or a connection that broke: its channels are connections of their own, and
what it published before the one for output was there would be lost. A notebook that is closed meanwhile
leaves its cells here, and they run. Interrupt and Restart call off what waits.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from jupyter_client.jsonutil import json_default
from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)
from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from tornado import web
from tornado.websocket import WebSocketClosedError

from .manager import job_of

if TYPE_CHECKING:
    from .kernel_job import KernelJob

#: Messages of one notebook that are kept; a person does not run so many cells.
_MOST = 10_000
#: What a notebook that is closed wants done all the same; the rest are questions of its own.
_WORK = b"execute_request"
#: The protocol that JupyterLab chooses.
_V1 = "v1.kernel.websocket.jupyter.org"
#: Milliseconds for which ZeroMQ still hands over what a notebook left behind, on a machine that is busy.
_HAND_OVER = 10_000


class JobKernelConnection(ZMQChannelsWebsocketConnection):
    """Connects a notebook to a kernel that runs, or will run."""

    #: what was said while there was no kernel; None: it is there
    _kept: list[Any] | None = None
    _waiting: asyncio.Task[None] | None = None
    _connected = False
    #: whether the notebook was closed, and only what it left is waited with
    _left = False
    #: which of the job's `times_reached` this connection has heard the kernel in
    _heard_in = 0

    async def prepare(self) -> None:
        """Get ready; a kernel that waits is waited for later."""
        job = job_of(self.kernel_manager)
        if job is not None and job.ending is not None:
            raise web.HTTPError(404, str(job.ending.message))
        if job is not None and not job.reachable.is_set():
            await self._register_session()
            self.session.key = self.kernel_manager.session.key
            self._keep_for(job)
        else:
            await super().prepare()

    def connect(self) -> Any:
        """Connect, now or as soon as there is a kernel; return what `open` awaits."""
        if self._kept is None:
            return self._connect_now()
        self._send_status_message("starting")
        self._waiting = asyncio.ensure_future(self._connect_later())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        """Pass on what the notebook says, or keep it."""
        job = job_of(self.kernel_manager)
        if self._kept is None and job is not None and job.ending is None and self._is_another(job):
            self._keep_for(job)
            self._waiting = asyncio.ensure_future(self._connect_again(job))
        if self._kept is None:
            super().handle_incoming_message(incoming_msg)
        elif len(self._kept) < _MOST:
            self._kept.append(incoming_msg)

    def handle_outgoing_message(self, stream: Any, outgoing_msg: list[Any]) -> None:
        """Pass on what the kernel says, where there is still a notebook."""
        if not self._left:
            super().handle_outgoing_message(stream, outgoing_msg)

    def disconnect(self) -> None:  # type: ignore[override]
        """Notice that the notebook has gone; cells of it that wait for the kernel wait on."""
        waiting = self._waiting
        if waiting is not None and not waiting.done() and waiting is not asyncio.current_task():
            if any(map(_is_work, self._kept or ())):
                self._left = True
                return
            waiting.cancel()
        self._leave()

    def _leave(self) -> None:
        self._take_kept()
        if self._connected:
            super().disconnect()
        elif self._open_sessions.get(self.session_key) is self.websocket_handler:
            # as if it had never been there
            self._open_sessions.pop(self.session_key)

    def _connect_now(self) -> Any:
        job = job_of(self.kernel_manager)
        self._heard_in = job.times_reached if job is not None else 0
        self._connected = True
        return super().connect()

    async def _connect_later(self) -> None:
        job = job_of(self.kernel_manager)
        there = job is None or await job.settled()
        if not there or self.kernel_id not in self.multi_kernel_manager:
            self._take_kept()
            self._send_dead()
            if self._left:
                self._leave()
            return
        try:
            connected = self._connect_now()
            if connected is not None:
                await connected
        except (web.HTTPError, TimeoutError) as error:
            self.log.warning("Kernel %s does not answer: %s", self.kernel_id, error)
        self._pass_on_what_was_kept()

    async def _connect_again(self, job: KernelJob) -> None:
        """Wait until what the kernel publishes comes here, then let through what was kept."""
        while job.ending is None and self._is_another(job):
            if not await job.settled():
                break
            self._heard_in = job.times_reached
            iopub = self.channels.get("iopub")
            if iopub is None or iopub.closed():
                break
            try:
                await self.nudge()
            except TimeoutError:
                self.log.warning("Kernel %s does not answer", self.kernel_id)
            if not iopub.closed():
                iopub.on_recv_stream(self.handle_outgoing_message)
        self._pass_on_what_was_kept()

    def _is_another(self, job: KernelJob) -> bool:
        """Return whether the kernel is away, or came back since it was heard here."""
        return not job.reachable.is_set() or job.times_reached != self._heard_in

    def _keep_for(self, job: KernelJob) -> None:
        self._kept = []
        job.keepers.add(self._call_off)

    def _take_kept(self) -> list[Any]:
        job = job_of(self.kernel_manager)
        if job is not None:
            job.keepers.discard(self._call_off)
        kept, self._kept = self._kept or [], None
        return kept

    def _call_off(self) -> None:
        """Run none of the cells that wait, as a kernel does that is interrupted; their notebook hears it."""
        kept = self._kept or []
        self._kept = [message for message in kept if not _is_work(message)]
        for message in filter(_is_work, kept):
            with suppress(WebSocketClosedError):
                cause = self._header_of(message)
                self._send("shell", "execute_reply", cause, status="aborted")
                self._send("iopub", "status", cause, execution_state="idle")

    def _header_of(self, message: str | bytes) -> dict[str, Any]:
        if self.subprotocol == _V1:
            header: dict[str, Any] = self.session.unpack(deserialize_msg_from_ws_v1(message)[1][0])
        elif isinstance(message, bytes):
            header = deserialize_binary_message(message)["header"]
        else:
            header = json.loads(message)["header"]
        return header

    def _send(self, channel: str, kind: str, cause: dict[str, Any], **content: object) -> None:
        said = self.session.msg(kind, content, parent={"header": cause})
        if self.subprotocol == _V1:
            packed = serialize_msg_to_ws_v1(said, channel, self.session.pack)
            self.write_message(packed, binary=True)
        else:
            self.write_message(json.dumps({**said, "channel": channel}, default=json_default))

    def _pass_on_what_was_kept(self) -> None:
        kept = self._take_kept()
        for message in kept:
            super().handle_incoming_message(message)
        if self._left:
            shell = self.channels.get("shell")
            if shell is not None and not shell.closed():
                shell.socket.linger = _HAND_OVER
                # to ZeroMQ: the stream would take along what it has not passed on yet
                shell.flush()
            self._leave()

    def _send_dead(self) -> None:
        with suppress(WebSocketClosedError):
            self._send_status_message("dead")


def _is_work(message: str | bytes) -> bool:
    return _WORK in (message if isinstance(message, bytes) else message.encode())
