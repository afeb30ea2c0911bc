"""Whether what is free, or a queue, has changed: waited for, so that nobody need ask again and again."""

from __future__ import annotations

import asyncio

from pai_scheduler.rest.cluster import ClusterVersion

from .base_handlers import Route, routes
from .operations import TOO_MANY_STREAMS, Answer, operation, query
from .stream import StreamHandler

#: Seconds after which who waits is told that nothing has changed: below the idle limits of common proxies.
LONGEST_WAIT = 25.0


class ChangesHandler(StreamHandler):
    """`/changes`: answers when something has changed."""

    @operation(
        "GET /changes",
        "changes",
        "cluster",
        "Wait until what is free, or a queue, has changed",
        {200: Answer("The present version.", ClusterVersion)},
        description="Whoever shows what is free, or what would start, asks for that again when the version "
        "is another one. Without `after`, or where it is no longer the present version, the answer comes at "
        "once; else when something has changed, or unchanged after 25 seconds.",
        parameters=[query("after", str, "The version that the caller knows")],
        refusals=[TOO_MANY_STREAMS],
    )
    async def get(self) -> None:
        """Wait, and tell."""
        changes = self.service.changes
        known = self.query_text("after") or ""
        if changes.version == known:
            with self.counted():
                await self._wait(known)
        if not self.gone.is_set():
            self.answer({"version": changes.version})

    async def _wait(self, known: str) -> None:
        """Wait for a change, but not longer than the reader stays."""
        changed = asyncio.create_task(self.service.changes.other_than(known))
        gone = asyncio.create_task(self.gone.wait())
        try:
            await asyncio.wait({changed, gone}, timeout=LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            gone.cancel()


ROUTES: list[Route] = routes(ChangesHandler)
