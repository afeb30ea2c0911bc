"""The connection between a notebook and its kernel, which may still wait for its turn.

jupyter_server gives a kernel a minute to answer, and a browser less to connect. Here a notebook is connected
at once: what is run in it is kept until there is a kernel, in order, however long that takes.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from jupyter_server.services.kernels.connection.channels import ZMQChannelsWebsocketConnection
from tornado import web
from tornado.websocket import WebSocketClosedError

from .manager import job_of

#: Messages of one notebook that are kept; a person does not run so many cells.
_MOST = 10_000


class JobKernelConnection(ZMQChannelsWebsocketConnection):
    """Connects a notebook to a kernel that runs, or will run."""

    #: what was said before there was a kernel; None: it is there
    _kept: list[Any] | None = None
    _waiting: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        """Get ready; a kernel that waits is waited for later."""
        job = job_of(self.kernel_manager)
        if job is not None and job.ending is not None:
            raise web.HTTPError(404, str(job.ending.message))
        if job is not None and not job.reachable.is_set():
            await self._register_session()
            self.session.key = self.kernel_manager.session.key
            self._kept = []
        else:
            await super().prepare()

    def connect(self) -> Any:
        """Connect, now or as soon as there is a kernel; return what `open` awaits."""
        if self._kept is None:
            return super().connect()
        self._send_status_message("starting")
        self._waiting = asyncio.ensure_future(self._connect_later())
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        """Pass on what the notebook says, or keep it."""
        if self._kept is None:
            super().handle_incoming_message(incoming_msg)
        elif len(self._kept) < _MOST:
            self._kept.append(incoming_msg)

    def disconnect(self) -> None:  # type: ignore[override]
        """Notice that the notebook has gone."""
        if self._waiting is not None and not self._waiting.done():
            self._waiting.cancel()
        if self._kept is None:
            super().disconnect()
        elif self._open_sessions.get(self.session_key) is self.websocket_handler:
            # as if it had never been there
            self._open_sessions.pop(self.session_key)

    async def _connect_later(self) -> None:
        job = job_of(self.kernel_manager)
        if job is not None:
            await job.settled()
        if self.kernel_id not in self.multi_kernel_manager:
            self._kept = None
            self._send_dead()
            return
        try:
            connected = super().connect()
            if connected is not None:
                await connected
        except (web.HTTPError, TimeoutError) as error:
            self.log.warning("Kernel %s does not answer: %s", self.kernel_id, error)
        kept, self._kept = self._kept or [], None
        for message in kept:
            super().handle_incoming_message(message)

    def _send_dead(self) -> None:
        with suppress(WebSocketClosedError):
            self._send_status_message("dead")
