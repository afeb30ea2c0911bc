"""Lets code that is not asynchronous use the asynchronous clients, also where a loop runs (in a notebook)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

Value = TypeVar("Value")
Told = TypeVar("Told")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def background_loop() -> asyncio.AbstractEventLoop:
    """Return the loop, in a thread of its own, on which everything runs that others wait for."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="pai-background", daemon=True).start()
        return _loop


def start(work: Coroutine[Any, Any, Value]) -> Future[Value]:
    """Start some work; cancelling the future cancels it."""
    return asyncio.run_coroutine_threadsafe(work, background_loop())


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
