"""The one writer: takes events in order, lets the core decide, commits in groups, and only then acts.

What was not committed never happened: when the database refuses (disk full), the core is made again from what
the database holds, requests are refused, and the engine's events are kept until they can be written.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ParamSpec, Protocol, TypeVar

from pai_scheduler.core.events import Event, Submitted
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.state_machine import Core
from pai_scheduler.job.task import TaskRef
from pai_scheduler.store.database import not_written
from pai_scheduler.store.records import SubmittedText
from pai_scheduler.store.store import Store, StoreError

from .garbage import without_collections

Asked = ParamSpec("Asked")
Result = TypeVar("Result")

_log = logging.getLogger(__name__)

#: events written in one transaction at most
_GROUP = 1000
_RETRY_SECONDS = 1.0


@dataclass(slots=True)
class _Entry:
    event: Event
    config: Mapping[str, Any] | None = None
    text: SubmittedText | None = None
    #: set when the event is durable; requests wait for it, engine events do not
    durable: asyncio.Future[None] | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """Newly durable commit: the changes, the tasks of deleted jobs, the events it came from, and the core.

    `handled_seconds` is what the core took for them, `commit_seconds` the database.
    """

    outcome: Outcome
    deleted: list[TaskRef]
    events: list[Event]
    core: Core
    handled_seconds: float
    commit_seconds: float


class CommitObserver(Protocol):
    """Hears of each commit as soon as it is durable, and returns at once."""

    def committed(self, committed: Committed) -> None:
        """Take note of it."""


class Writer:
    """Owns the core. `make_core` builds an empty one; `on_commit` is told what became durable, in order."""

    def __init__(
        self,
        store: Store,
        make_core: Callable[[], Core],
        on_commit: Callable[[Committed], None],
    ) -> None:
        self._store = store
        self._make_core = make_core
        self._on_commit = on_commit
        #: None wakes the loop, so that it sees that it is to end
        self._inbox: asyncio.Queue[_Entry | None] = asyncio.Queue()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, "store-writer")
        self._task: asyncio.Task[None] | None = None
        self.core = make_core()
        #: how many groups of events the database did not take
        self.failures = 0

    async def start(self) -> Outcome:
        """Make the core from the store; gives what is to be done again about what was under way."""
        self.core, outcome = await self._run(self._restored)
        await self._run(self._store.commit, outcome, {})
        self._task = asyncio.create_task(self._loop())
        return outcome

    async def close(self) -> None:
        """Stop after the commit that is under way; requests that came later are cancelled."""
        self._closing = True
        if self._task is not None:
            self._inbox.put_nowait(None)
            await self._task
        for entry in self._take():
            if entry.durable is not None:
                entry.durable.cancel()
        self._thread.shutdown()

    def report(self, event: Event) -> None:
        """Take an event that nobody waits for."""
        self._inbox.put_nowait(_Entry(event))

    async def request(self, event: Event, config: Mapping[str, Any] | None = None) -> None:
        """Take a user's event; returns when it is durable, RequestError where it cannot be."""
        await self.begin(event, config)

    def begin(
        self, event: Event, config: Mapping[str, Any] | None = None, text: SubmittedText | None = None
    ) -> asyncio.Future[None]:
        """Take a user's event; give what is done when it is durable; RequestError: it cannot be.

        `config`, `text`: a new job's JSON, and the text it was read from where that is kept too.
        """
        durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._inbox.put_nowait(_Entry(event, config, text, durable))
        return durable

    async def check(self) -> None:
        """Make sure that the database takes writes: StoreError where it does not."""
        await self._run(self._store.check_writable)

    async def forgot(self, tasks: Collection[TaskRef]) -> None:
        """Write down that nothing of these tasks of deleted jobs is left; StoreError: at the next start."""
        await self._run(self._store.forgot, tasks)

    async def keep(
        self, function: Callable[Asked, Result], *args: Asked.args, **options: Asked.kwargs
    ) -> Result:
        """Call a writing method of the store for what the core need not know; RequestError: not kept."""
        try:
            return await self._run(partial(function, *args, **options))
        except StoreError as error:
            raise not_written(error) from error

    async def _run(self, function: Callable[..., Result], *args: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    def _restored(self) -> tuple[Core, Outcome]:
        core = self._make_core()
        with without_collections():
            jobs, usages = self._store.live_jobs(), self._store.usages()
            return core, core.restore(jobs, usages, self._store.waited_for())

    async def _loop(self) -> None:
        entries: list[_Entry] = []
        while not self._closing:
            if not entries and (first := await self._inbox.get()) is not None:
                entries.append(first)
            entries.extend(self._take(_GROUP - len(entries)))
            try:
                await self._write(entries)
                entries = []
            except StoreError as error:
                entries = await self._start_over(entries, error)
            except Exception:
                _log.exception("a group of events could not be handled; each is tried alone")
                entries = await self._write_each(entries)

    def _take(self, most: int | None = None) -> list[_Entry]:
        """Take what has come, at most so many."""
        taken: list[_Entry] = []
        while (most is None or len(taken) < most) and not self._inbox.empty():
            entry = self._inbox.get_nowait()
            if entry is not None:
                taken.append(entry)
        return taken

    async def _write(self, entries: list[_Entry]) -> None:
        if not entries:
            return
        await self._find_ended(entries)
        outcome = Outcome()
        configs, texts = {}, {}
        begin = time.perf_counter()
        for left, entry in enumerate(entries, 1 - len(entries)):
            entry.event = self.core.in_order(entry.event)
            self.core.handle(entry.event, outcome, more=left < 0)
            if entry.config is not None:
                configs[entry.event.job_id] = entry.config  # type: ignore[union-attr]
            if entry.text is not None:
                texts[entry.event.job_id] = entry.text  # type: ignore[union-attr]
        handled = time.perf_counter()
        deleted = await self._run(self._store.commit, outcome, configs, texts)
        committed = time.perf_counter()
        for entry in entries:
            if entry.durable is not None and not entry.durable.done():
                entry.durable.set_result(None)
        try:
            events = [entry.event for entry in entries]
            self._on_commit(
                Committed(outcome, deleted, events, self.core, handled - begin, committed - handled)
            )
        except Exception:
            # it is durable: handling the events again would make them happen twice
            _log.exception("not everything could be done that was written down")

    async def _find_ended(self, entries: list[_Entry]) -> None:
        """Tell new jobs how those ended that they wait for and that the core has forgotten."""
        waiting = [(entry, entry.event) for entry in entries if isinstance(entry.event, Submitted)]
        known = self.core.jobs  # (a set less its keys would go through all of them)
        wanted = {one.job_id for _, event in waiting for one in event.after if one.job_id not in known}
        if wanted:
            ended = await self._run(self._store.ended_states, wanted)
            for entry, event in waiting:
                entry.event = replace(event, ended=ended)

    async def _write_each(self, entries: list[_Entry]) -> list[_Entry]:
        """A fault of ours in one event must not stop the scheduler, nor lose the events beside it."""
        await self._restore()
        for number, entry in enumerate(entries):
            try:
                await self._write([entry])
            except StoreError as error:
                return await self._start_over(entries[number:], error)
            except Exception as error:
                _log.exception("dropped an event that cannot be handled: %s", entry.event)
                _refuse([entry], error)
                await self._restore()
        return []

    async def _start_over(self, entries: list[_Entry], error: StoreError) -> list[_Entry]:
        """Nothing of the group was kept: go back to what the database holds; return what to try again."""
        self.failures += 1
        _log.error("the database did not take %d events, trying again: %s", len(entries), error)
        _refuse(entries, not_written(error))
        await self._restore()
        await asyncio.sleep(_RETRY_SECONDS)
        return [entry for entry in entries if entry.durable is None]

    async def _restore(self) -> None:
        """Go back to what the database holds. What was under way still is: nothing is said again."""
        while not self._closing:
            try:
                self.core, _ = await self._run(self._restored)
            except StoreError as error:
                _log.error("the database cannot be read, trying again: %s", error)
                await asyncio.sleep(_RETRY_SECONDS)
            except Exception:
                _log.exception("what the database holds cannot be taken up, trying again")
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return


def _refuse(entries: list[_Entry], error: Exception) -> None:
    for entry in entries:
        if entry.durable is not None and not entry.durable.done():
            entry.durable.set_exception(error)
