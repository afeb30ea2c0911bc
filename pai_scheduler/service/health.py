"""Health of the scheduler: database, engine, room on the data folder's disk."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.data_folder.room import least_free
from pai_scheduler.engine.disk_usage import DiskWatch
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.store.database import StoreError, Trouble
from pai_scheduler.store.store import Store

from .writer import Writer

# Room on the disk of the data folder: takes no new work where it runs out, and ends first what fills it.

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
#: How often the database's reserve is looked after, as long as there is room.
_LOOKS_BETWEEN = 10
_MB = 2**20


class DiskRoom:
    """Watches the disk that holds `folder`; `least_free_mb` of it are to stay free (0: it is not watched).

    Below that no job is taken; below half of it the task that has grown most since there was room is ended.
    The `writer` keeps room in the database for what must be written all the same.
    """

    def __init__(
        self,
        folder: Path,
        least_free_mb: int,
        engine: Engine,
        store: Store,
        writer: Writer,
    ) -> None:
        self._folder, self._store, self._writer = folder, store, writer
        self.least_free = least_free(folder, least_free_mb)
        self._disk = DiskWatch(engine, lambda: self._free() / self.least_free, self.least_free)
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Keep the reserve, and begin to watch."""
        if self.least_free:
            await self._reserve()
            self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def shortage(self) -> Message | None:
        """Return a sentence that the disk is too full for new work; None where it is not. Looks now."""
        free = self._free()
        if free >= self.least_free:
            return None
        return msg(
            "The disk of the scheduler's data folder {folder} is almost full: {free} MB are free, and below "
            "{least} MB it takes no new jobs. Delete jobs whose logs or files are not needed any more, or "
            "ask the administrator for room. Jobs can be stopped and deleted as always.",
            folder=str(self._folder),
            free=free // _MB,
            least=-(-self.least_free // _MB),
        )

    def _free(self) -> int:
        return shutil.disk_usage(self._folder).free

    async def _watch(self) -> None:
        looks = 0
        while True:
            try:
                has_room = await self._disk.look() >= 1
                if has_room and looks % _LOOKS_BETWEEN == 0:
                    await self._reserve()
            except Exception:
                _log.exception("the disk cannot be watched; trying again")
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _reserve(self) -> None:
        try:
            await self._writer.keep(self._store.keep_reserve, self.least_free)
        except RequestError as error:
            _log.warning("the database keeps no room for a full disk: %s", error)


# Whether the scheduler can do its work: the database takes writes, the engine answers, all is taken up.

#: Seconds that an answer of the database counts, and that it may take.
KEEP_SECONDS, PATIENCE_SECONDS = 5.0, 5.0


class Status(StrEnum):
    """Status of the scheduler for clients that want to send it requests."""

    READY = "ready"
    STANDBY = "standby"  # another scheduler works on the same database; this one takes over when that is gone
    STARTING = "starting"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Readiness:
    """The status and the reasons; where it is ready, what should be known all the same."""

    status: Status
    reasons: tuple[Message, ...] = ()


class DatabaseState(Protocol):
    """Known state of the database: its damage, and whether all of it was checked."""

    @property
    def damage(self) -> str | None: ...  # noqa: D102

    @property
    def checked(self) -> bool: ...  # noqa: D102


class Events(Protocol):
    """State of the engine's event stream: True while events arrive; None before it is asked for them."""

    @property
    def arrive(self) -> bool | None: ...  # noqa: D102


class HasNodes(Protocol):
    """The nodes as they are now."""

    @property
    def nodes(self) -> Sequence[Node]: ...  # noqa: D102


class DiskState(Protocol):
    """Problem with the disk; None: nothing is wrong."""

    def shortage(self) -> Message | None: ...  # noqa: D102


class Health:
    """Looks when asked; `check_database` raises StoreError where the database does not take a write."""

    def __init__(
        self,
        check_database: Callable[[], Awaitable[None]],
        database: DatabaseState,
        events: Events,
        cluster: HasNodes,
        room: DiskState | None,
    ) -> None:
        self._check_database, self._store = check_database, database
        self._events, self._cluster, self._room = events, cluster, room
        self._probe: asyncio.Task[None] | None = None
        self._asked = 0.0

    async def look(self) -> Readiness:
        """Return whether requests can be served now."""
        tells = self._events.arrive
        if tells is None:
            return Readiness(Status.STARTING, (msg("The scheduler is starting."),))
        shortage = self._room.shortage() if self._room is not None else None
        reasons = [await self._database(), self._damaged(), shortage]
        if not tells:
            reasons.append(msg("The engine tells no more what happens. Start the scheduler again."))
        lost = [node.name for node in self._cluster.nodes if node.state is NodeState.LOST]
        if len(lost) == len(self._cluster.nodes):
            reasons.append(
                msg("The engine does not answer: all nodes are lost ({nodes}).", nodes=", ".join(lost))
            )
        found = tuple(reason for reason in reasons if reason is not None)
        if found:
            return Readiness(Status.FAILING, found)
        note = msg(
            "The start had no time to look at the whole database for damage: pai-scheduler check does."
        )
        return Readiness(Status.READY, () if self._store.checked else (note,))

    def _damaged(self) -> Message | None:
        damage = self._store.damage
        if damage is None:
            return None
        return msg(
            "The database is damaged: {damage}. Stop the scheduler and restore a backup "
            "(pai-scheduler restore FILE).",
            damage=damage,
        )

    async def _database(self) -> Message | None:
        """Return what is wrong with the database. One question at a time, and not at every request."""
        now = asyncio.get_running_loop().time()
        if self._probe is None or (self._probe.done() and now - self._asked > KEEP_SECONDS):
            self._probe = asyncio.create_task(self._ask())
            self._asked = now
        done, _ = await asyncio.wait([self._probe], timeout=PATIENCE_SECONDS)
        if not done:
            return msg("The database does not answer within {seconds:g} s.", seconds=PATIENCE_SECONDS)
        error = self._probe.exception()
        if error is None:
            return None
        if isinstance(error, StoreError) and error.trouble is Trouble.UNAVAILABLE:
            return msg("The database cannot be reached, or not be written to: {reason}.", reason=error.reason)
        reason = error.reason if isinstance(error, StoreError) else error
        return msg("The database takes no writes: {reason}.", reason=reason)

    async def _ask(self) -> None:
        await self._check_database()
