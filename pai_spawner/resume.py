"""Taking up a start that a Hub did not live to see the end of; what the Hub may take for a ready server."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

#: What the Hub is told of a server whose start was cancelled; any number but None would do.
CANCELLED = 1


class ResumableStarts:
    """For a Spawner: starts outlive the Hub, and can be cancelled at any moment.

    JupyterHub takes every server that has an address and for which nothing is pending for a ready one. A
    start that is cancelled looks like that until its stop begins, a second later: pages would be told that it
    is ready, and sent in circles. Here a server is ready once the Hub watches it, which is the last step of
    every start.
    """

    #: the Hub's own, which its pages and its REST API read
    _spawn_future: asyncio.Future[None] | None = None
    _spawn_pending: bool
    _check_pending: bool
    _watched = False
    #: set while a cancelled start, taken up from an earlier Hub, waits for the Hub to stop it
    _cleared: asyncio.Event | None = None

    @property
    def ready(self) -> bool:
        """Return whether the server can be used."""
        return self._watched and bool(super().ready)  # type: ignore[misc]  # jupyterhub has no types

    def add_poll_callback(self, callback: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        """Watch the server from now on; called by the Hub when a start is over."""
        self._watched = True
        super().add_poll_callback(callback, *args, **kwargs)  # type: ignore[misc]

    def clear_state(self) -> None:
        """Forget the server that was."""
        super().clear_state()  # type: ignore[misc]
        self._watched = False
        if self._cleared is not None:
            self._cleared.set()

    async def resume(self, follow: Callable[[Callable[[], None]], Awaitable[None]]) -> int | None:
        """Go on with a start in sight of the Hub's pages; returns when the server answers or has failed.

        `follow` does the work; it calls what it is given when the server answers, and may go on after that.

        The Hub asks for a server's status once when it starts, and would take a server that still waits in
        the queue for a broken one. While the answer is held back, the server counts as pending, as it is.
        """
        answers = asyncio.Event()

        def answered() -> None:
            # from here on only the Hub's check is pending, so that the route is made right after it
            self._spawn_pending = False
            answers.set()

        start = asyncio.ensure_future(follow(answered))

        def over(done: asyncio.Future[None]) -> None:
            self._spawn_pending = False
            if done.cancelled():
                # the Hub stops no server for which something is pending; it does so in a second
                self._check_pending, self._cleared = False, asyncio.Event()
            if done.cancelled() or done.exception() is None:
                self._spawn_future = None
            answers.set()

        self._spawn_future, self._spawn_pending = start, True
        start.add_done_callback(over)
        await answers.wait()
        if self._cleared is not None:
            # an answer would make the Hub forget the server before it has stopped it
            await self._cleared.wait()
            self._cleared = None
            return CANCELLED
        return CANCELLED if start.done() else None
