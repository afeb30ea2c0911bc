"""Whether the scheduler can do its work: the database takes writes, the engine answers, all is taken up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pai_scheduler.cluster.node import Node
from pai_scheduler.job.messages import Message, msg
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


class Health:
    """Looks when asked; `check_database` raises StoreError where the database does not take a write.

    `shortage` says what is wrong with the disk, `tells` whether the engine still tells what happens, None
    before it is asked to. `damage` names what is damaged in the database, `checked` says whether all of
    it was looked at.
    """

    def __init__(
        self,
        check_database: Callable[[], Awaitable[None]],
        tells: Callable[[], bool | None],
        nodes: Callable[[], Sequence[Node]],
        shortage: Callable[[], Message | None] = lambda: None,
        damage: Callable[[], str | None] = lambda: None,
        checked: Callable[[], bool] = lambda: True,
    ) -> None:
        self._check_database = check_database
        self._tells = tells
        self._nodes = nodes
        self._shortage = shortage
        self._damage, self._checked = damage, checked
        self._probe: asyncio.Task[None] | None = None
        self._asked = 0.0

    async def look(self) -> Readiness:
        """Return whether requests can be served now."""
        tells = self._tells()
        if tells is None:
            return Readiness(Status.STARTING, (msg("The scheduler is starting."),))
        reasons = [await self._database(), self._damaged(), self._shortage()]
        if not tells:
            reasons.append(msg("The engine tells no more what happens. Start the scheduler again."))
        unhealthy = [node.name for node in self._nodes() if not node.healthy]
        if len(unhealthy) == len(self._nodes()):
            reasons.append(
                msg("The engine does not answer: no node is healthy ({nodes}).", nodes=", ".join(unhealthy))
            )
        found = tuple(reason for reason in reasons if reason is not None)
        if found:
            return Readiness(Status.FAILING, found)
        note = msg(
            "The start had no time to look at the whole database for damage: pai-scheduler check does."
        )
        return Readiness(Status.READY, () if self._checked() else (note,))

    def _damaged(self) -> Message | None:
        damage = self._damage()
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
