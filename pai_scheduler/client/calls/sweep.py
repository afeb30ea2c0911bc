"""A sweep: many calls of one function as the tasks of one job, whose values come one by one."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Coroutine, Generator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any, Generic, TypeVar

from pai_scheduler.client.blocking import start
from pai_scheduler.i18n import msg

from .job import CallOutcome, Change
from .output import JobProgress

R = TypeVar("R")
#: Seconds between two looks of the bar.
_PAUSE = 0.1


class Sweep(Generic[R]):
    """The values of a function for many arguments, in the order of these.

    Iterating gives each value as soon as it and those before it are there, and shows a progress bar while it
    waits; where a call failed, its exception is raised there, and the other tasks run on. `futures` has a
    `concurrent.futures.Future` for each call, `values()` what is there already.
    """

    def __init__(self, count: int, locale: str = "en") -> None:
        #: One for each call.
        self.futures: list[Future[R]] = [Future() for _ in range(count)]
        self._locale = locale
        self._news = threading.Condition()
        self._progress = JobProgress(count, locale)
        self._work: Future[None] | None = None

    @property
    def job(self) -> str:
        """Return the job's name; empty before it is submitted."""
        return self._progress.job

    def __len__(self) -> int:
        return len(self.futures)

    def __iter__(self) -> Iterator[R]:
        for index in range(len(self.futures)):
            self._wait(index)
            yield self.futures[index].result()

    def __await__(self) -> Generator[Any, None, list[R]]:
        return asyncio.gather(*map(asyncio.wrap_future, self.futures)).__await__()

    def __repr__(self) -> str:
        done = len(self.values())
        failed = sum(future.done() for future in self.futures) - done
        return f"Sweep({self.job!r}, {done} of {len(self)} done, {failed} failed)"

    def results(self, *, return_exceptions: bool = False) -> list[R | BaseException]:
        """Wait for all; return them. The first exception is raised, unless they shall be in the list.

        Of a call that was cancelled it is a CancelledError.
        """
        for index in range(len(self.futures)):
            self._wait(index)
        if not return_exceptions:
            return [future.result() for future in self.futures]
        return [
            CancelledError() if future.cancelled() else future.exception() or future.result()
            for future in self.futures
        ]

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
        self._progress.hear(change)
        if change.task is not None and change.outcome is not None:
            self.settle(change.task[1], change.outcome)
        self._tell_all()

    def settle(self, index: int, outcome: CallOutcome) -> None:
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
            while not future.done():
                self._progress.draw(_PAUSE)
                late = None if self._progress.shown else _PAUSE
                with self._news:
                    if not future.done() and (late or self._progress.shown):
                        self._news.wait(late)
        except KeyboardInterrupt:
            self._progress.close()
            text = msg("Job {name} runs on; pai stop {name} ends it.", name=self.job)
            if not self.job:
                text = msg("The job is not submitted yet; it will be, unless cancel() gives it up.")
            print(text.in_locale(self._locale), file=sys.stderr, flush=True)
            raise
        if all(future.done() for future in self.futures):
            self._progress.close()

    def _tell_all(self) -> None:
        with self._news:
            self._news.notify_all()
