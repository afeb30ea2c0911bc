"""A sweep: many calls of one function as the tasks of one job, whose values come one by one."""

from __future__ import annotations

import asyncio
import builtins
import sys
import threading
from collections.abc import Coroutine, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from pai_scheduler.client.blocking import start
from pai_scheduler.job.messages import msg

from .job import Change
from .outcome import Outcome

R = TypeVar("R")
_COLUMNS = 24


class Sweep(Generic[R]):
    """The values of a function for many arguments, in the order of these.

    Iterating gives each value as soon as it and those before it are there, and shows a progress bar while it
    waits; where a call failed, its exception is raised there, and the other tasks run on. `futures` has a
    `concurrent.futures.Future` for each call, `values()` what is there already.
    """

    def __init__(self, count: int, locale: str = "en") -> None:
        #: One for each call.
        self.futures: list[Future[R]] = [Future() for _ in range(count)]
        #: The job's name; empty before it is submitted.
        self.job = ""
        self._locale = locale
        self._news = threading.Condition()
        self._running: set[int] = set()
        self._waiting = ""
        self._work: Future[None] | None = None
        self._drawn = False

    def __len__(self) -> int:
        return len(self.futures)

    def __iter__(self) -> Iterator[R]:
        for index in range(len(self.futures)):
            self._wait(index)
            yield self.futures[index].result()

    def __await__(self) -> Generator[Any, None, list[R]]:
        return asyncio.gather(*map(asyncio.wrap_future, self.futures)).__await__()

    def __repr__(self) -> str:
        done = [future for future in self.futures if future.done()]
        failed = sum(future.cancelled() or future.exception() is not None for future in done)
        return f"Sweep({self.job!r}, {len(done)} of {len(self)} done, {failed} failed)"

    def results(self, *, return_exceptions: bool = False) -> list[R | BaseException]:
        """Wait for all; return them. The first exception is raised, unless they shall be in the list."""
        for index in range(len(self.futures)):
            self._wait(index)
        if not return_exceptions:
            return [future.result() for future in self.futures]
        return [future.exception() or future.result() for future in self.futures]

    def values(self) -> dict[int, R]:
        """Return the values that are there already, by the place of their arguments; it waits for nothing."""
        return {
            index: future.result()
            for index, future in enumerate(self.futures)
            if future.done() and not future.cancelled() and future.exception() is None
        }

    def cancel(self) -> None:
        """Stop the job; what has come stays."""
        if self._work is not None:
            self._work.cancel()
        for future in self.futures:
            future.cancel()
        self._tell_all()

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin: `work` settles the futures."""
        self._work = start(work)
        self._work.add_done_callback(self._over)

    def hear(self, change: Change) -> None:
        """Note what happens to the job."""
        if change.kind == "name":
            self.job = change.message
        elif change.kind == "waiting":
            self._waiting = change.message
        if change.task is not None:
            index = change.task[1]
            if change.kind == "task-started":
                self._running.add(index)
                self._waiting = ""
            elif change.kind == "task-ended":
                self._running.discard(index)
            if change.outcome is not None:
                self.settle(index, change.outcome)
        self._tell_all()

    def settle(self, index: int, outcome: Outcome) -> None:
        """Give a call its value or error; only the first counts."""
        future = self.futures[index]
        if future.done():
            return
        with suppress(Exception):  # cancelled meanwhile
            if outcome.error is None:
                future.set_result(outcome.value)
            else:
                future.set_exception(outcome.error)
        self._tell_all()

    def progress(self) -> str:
        """Return in a line how far it is."""
        done = sum(future.done() for future in self.futures)
        filled = _COLUMNS * done // max(1, len(self))
        bar = f"[{'#' * filled}{'.' * (_COLUMNS - filled)}]"
        words = msg(
            "{done} of {total} done, {running} running",
            done=done,
            total=len(self),
            running=len(self._running),
        )
        return "  ".join(filter(None, (bar, words.in_locale(self._locale), self._waiting)))

    def _over(self, work: Future[None]) -> None:
        error = None if work.cancelled() else work.exception()
        for future in self.futures:
            if not future.done():
                if error is None:
                    future.cancel()
                else:
                    future.set_exception(error)
        self._tell_all()

    def _wait(self, index: int) -> None:
        future = self.futures[index]
        try:
            shown = ""
            while not future.done():
                line = self.progress()
                if line != shown:
                    self._draw(line)
                    shown = line
                with self._news:
                    if not future.done() and self.progress() == line:
                        self._news.wait()
        except KeyboardInterrupt:
            text = msg("Job {name} runs on; pai stop {name} ends it.", name=self.job).in_locale(self._locale)
            print(f"\n{text}" if self._drawn else text, file=sys.stderr, flush=True)
            raise
        if self._drawn and all(future.done() for future in self.futures):
            self._draw(self.progress(), end="\n")
            self._drawn = False

    def _draw(self, line: str, end: str = "") -> None:
        """Write the line over the last one; a pipe or a file gets none."""
        if sys.stderr.isatty() or hasattr(builtins, "get_ipython"):
            # blanks instead of a control sequence: a notebook's output knows no other way to erase
            sys.stderr.write(f"\r{line:<100}{end}")
            sys.stderr.flush()
            self._drawn = True

    def _tell_all(self) -> None:
        with self._news:
            self._news.notify_all()
