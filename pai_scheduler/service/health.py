"""Whether the scheduler can do its work: the database takes writes, the engine answers, all is taken up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.i18n import Message, msg
from pai_scheduler.store.database import StoreError, Trouble

#: Seconds that an answer of the database counts, and that it may take.
KEEP_SECONDS, PATIENCE_SECONDS = 5.0, 5.0


class Status(StrEnum):
    """What the scheduler is doing, as far as somebody who wants to send it requests is concerned."""

    READY = "ready"
    STANDBY = "standby"  # another scheduler works on the same database; this one takes over when that is gone
    STARTING = "starting"
    FAILING = "failing"


@dataclass(frozen=True, slots=True)
class Readiness:
    """The status and the reasons; where it is ready, what should be known all the same."""

    status: Status
    reasons: tuple[Message, ...] = ()


class Database(Protocol):
    """What is known of the database: what is damaged in it, and whether all of it was looked at."""

    @property
    def damage(self) -> str | None: ...  # noqa: D102

    @property
    def checked(self) -> bool: ...  # noqa: D102


class Events(Protocol):
    """Whether the engine still tells what happens; None before it is asked to."""

    @property
    def arrive(self) -> bool | None: ...  # noqa: D102


class HasNodes(Protocol):
    """The nodes as they are now."""

    @property
    def nodes(self) -> Sequence[Node]: ...  # noqa: D102


class Room(Protocol):
    """What is wrong with the disk; None: nothing."""

    def shortage(self) -> Message | None: ...  # noqa: D102


class Health:
    """Looks when asked; `check_database` raises StoreError where the database does not take a write."""

    def __init__(
        self,
        check_database: Callable[[], Awaitable[None]],
        database: Database,
        events: Events,
        cluster: HasNodes,
        room: Room | None,
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
