"""Tells those who wait for it that what is free, or a queue, has changed, once that is durable."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from pai_scheduler.core.state_machine import Core


class Changes:
    """Knows by a version how the cluster and the queues stand. A version is compared with others only.

    `core` gives the core of the moment: after a failed write it is another one.
    """

    def __init__(self, core: Callable[[], Core]) -> None:
        self._core = core
        # a version of a scheduler that ran before is none of this one
        self._run, self._number = secrets.token_hex(4), 0
        self._seen: tuple[Core, int] | None = None
        self._changed = asyncio.Event()

    @property
    def version(self) -> str:
        """Return the present version."""
        return f"{self._run}-{self._number}"

    async def other_than(self, version: str) -> str:
        """Return the present version, as soon as it is another one."""
        while self.version == version:
            await self._changed.wait()
        return self.version

    def look(self) -> None:
        """Notice what has become durable, and wake those who wait."""
        core = self._core()
        seen, now = self._seen, (core, core.dispatcher.version)
        if seen is not None and seen[0] is core and seen[1] == now[1]:
            return
        self._seen = now
        self._number += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
