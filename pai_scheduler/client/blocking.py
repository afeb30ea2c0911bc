"""Lets code that is not asynchronous use the asynchronous clients, also where a loop runs (in a notebook)."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")
Told = TypeVar("Told")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_thread: threading.Thread | None = None
_log = logging.getLogger(__name__)


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the loop, in a thread of its own, on which everything runs that others wait for.

    A process that was forked has no thread, and gets a loop of its own.
    """
    global _loop, _thread
    with _lock:
        if _loop is None or _thread is None or not _thread.is_alive():
            _loop = asyncio.new_event_loop()
            _thread = threading.Thread(target=_run, args=(_loop,), name="pai-background", daemon=True)
            _thread.start()
        return _loop


def start(work: Coroutine[Any, Any, Value]) -> Future[Value]:
    """Start some work; cancelling the future cancels it. Whatever it raises is the future's."""
    future: Future[Value] = Future()
    loop = background_loop()

    def begin() -> None:
        if future.cancelled():
            work.close()
            return
        task = loop.create_task(_settle(future, work))

        def cancel(done: Future[Value]) -> None:
            if done.cancelled():
                loop.call_soon_threadsafe(task.cancel)

        future.add_done_callback(cancel)

    loop.call_soon_threadsafe(begin)
    return future


async def _settle(future: Future[Value], work: Coroutine[Any, Any, Value]) -> None:
    """Give a future what comes of some work.

    A SystemExit or KeyboardInterrupt may not leave a task: asyncio ends the loop, and all other work, for it.
    """
    try:
        value = await work
    except asyncio.CancelledError:
        future.cancel()
    except BaseException as error:
        if future.set_running_or_notify_cancel():
            future.set_exception(error)
    else:
        if future.set_running_or_notify_cancel():
            future.set_result(value)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run a loop for ever: what ends it (a task of a library that calls `sys.exit`) is one task's fault."""
    while True:
        try:
            loop.run_forever()
        except BaseException:
            _log.exception("the background loop of PAI's clients was ended, and runs on")


def run_blocking(work: Coroutine[Any, Any, Value]) -> Value:
    """Do some work and wait for it; an interrupt (Ctrl-C) cancels it."""
    future = start(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


class Conversation(Generic[Told, Value]):
    """Work that tells what happens, which is heard in the thread that waits for it.

    `make` gets what the work calls to tell something. Output that is written by the thread that runs a cell
    appears below that cell, whichever thread it came from.
    """

    def __init__(self, make: Callable[[Callable[[Told], None]], Coroutine[Any, Any, Value]]) -> None:
        self._told: SimpleQueue[Told | None] = SimpleQueue()
        tell = cast(Callable[[Told], None], self._told.put)
        self._over = threading.Event()

        async def work() -> Value:
            try:
                return await make(tell)
            finally:
                self._over.set()

        self._future = start(work())
        self._future.add_done_callback(lambda _done: self._told.put(None))

    def listen(self, hear: Callable[[Told], None]) -> Value:
        """Hear everything until the work is done, and return its value; may go on after an interrupt."""
        while (said := self._told.get()) is not None:
            hear(said)
        return self._future.result()

    def cancel(self, wait: float = 10.0) -> None:
        """Break the work off, and give it so many seconds to put things in order."""
        if self._future.cancel():
            self._over.wait(wait)
