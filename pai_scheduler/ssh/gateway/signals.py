"""Signals to what a session started in a container, whose SSH server sends none for root.

A program in the container sends them, which is run in a session of its own. It finds what is meant by a
random token, which the session has brought along in its environment.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shlex
from collections import deque
from collections.abc import Callable

import asyncssh

from pai_scheduler.ssh.keys.task_files import SESSION_VARIABLE

#: Signals that wait for the one before them.
_MOST_WAITING = 16
#: Seconds until that program is given up.
_RUN_SECONDS = 30.0

_log = logging.getLogger(__name__)


class Signals:
    """Sends signals to what one session started, one after the other.

    `program`: where it is in the container. `otherwise` is called with the name of a signal that it could not
    send, and may try itself.
    """

    def __init__(
        self, connection: asyncssh.SSHClientConnection, program: str, otherwise: Callable[[str], None]
    ) -> None:
        self._connection, self._program, self._otherwise = connection, program, otherwise
        self._token = secrets.token_hex(16)
        self._waiting: deque[str] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def environment(self) -> dict[bytes, bytes]:
        """Return what the session is to have in its environment."""
        return {SESSION_VARIABLE.encode(): self._token.encode()}

    def send(self, name: str) -> None:
        """Have a signal sent; where too many wait, it is left out."""
        if not (name.isascii() and name.isalnum()):
            # nothing that could be more than a word of the program's line
            self._otherwise(name)
        elif len(self._waiting) < _MOST_WAITING:
            self._waiting.append(name)
            if self._task is None:
                self._task = asyncio.create_task(self._send_all())

    def close(self) -> None:
        """Send nothing more: the session has ended."""
        self._waiting.clear()

    async def _send_all(self) -> None:
        while self._waiting:
            name = self._waiting.popleft()
            if not await self._sent(name):
                self._otherwise(name)
        self._task = None

    async def _sent(self, name: str) -> bool:
        try:
            running = await self._connection.create_process(
                shlex.join((self._program, self._token, name)),
                stdin=asyncssh.DEVNULL,
                stdout=asyncssh.DEVNULL,
                stderr=asyncssh.DEVNULL,
                encoding=None,
            )
            try:
                ended = await running.wait(timeout=_RUN_SECONDS)
            finally:
                running.close()
        except (asyncssh.Error, OSError) as error:
            _log.debug("signal %s could not be sent: %s", name, error)
            return False
        return ended.exit_status == 0
