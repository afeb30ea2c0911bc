"""Background tasks of a widget, on the kernel's loop; their errors are shown."""

from __future__ import annotations

import asyncio
import threading
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

from .language import msg


class NoEventLoopError(RuntimeError):
    """A widget was made where no asyncio loop runs, so that it could neither ask nor listen."""


class Background:
    """The tasks of one widget. `on_error` is given the traceback of a task that failed.

    Raises `NoEventLoopError` where no loop runs: a notebook's kernel has one, a plain script starts one with
    `asyncio.run`.
    """

    def __init__(self, on_error: Callable[[str], None]) -> None:
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            raise NoEventLoopError(
                str(msg("This widget needs a running asyncio loop: use it in a notebook or asyncio.run()."))
            ) from None
        self._on_error = on_error
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any] | None:
        """Start some work; None where the widget has been closed."""
        if self._closed:
            work.close()
            return None
        return self._start(work, name)

    def close(self, *last_work: Coroutine[Any, Any, Any]) -> None:
        """Cancel everything; nothing starts any more, but for the `last_work`. Closing twice does nothing."""
        if self._closed or self._loop.is_closed():
            for work in last_work:
                work.close()
            return
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        for work in last_work:
            self._start(work, "pai-close")

    def _start(self, work: Coroutine[Any, Any, Any], name: str) -> asyncio.Task[Any]:
        # a widget's messages arrive outside of any task, but always on the loop's thread (`at_home`)
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            self._on_error("".join(traceback.format_exception(error)))


def at_home(action: Callable[..., None]) -> Callable[..., None]:
    """Have `action` always run on the loop that runs now, whichever thread calls it.

    JupyterLab may deliver a widget's messages through a subshell of the kernel, which is another thread. That
    thread waits for the action, and gets its exception.
    """
    loop, home = asyncio.get_running_loop(), threading.get_ident()

    def run(*arguments: Any) -> None:
        if threading.get_ident() == home:
            action(*arguments)
            return

        async def act() -> None:
            action(*arguments)

        asyncio.run_coroutine_threadsafe(act(), loop).result()

    return run
