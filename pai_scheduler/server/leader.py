"""Leading where several services share one PostgreSQL: wait for the lease, keep it alive, step down."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pai_scheduler.store.database import StoreError
from pai_scheduler.store.lease import (
    ASSURED_SECONDS,
    BEAT_SECONDS,
    LOOK_SECONDS,
    PATIENCE_SECONDS,
    Lease,
    LeaseObservation,
    now,
)

_log = logging.getLogger(__name__)


class Watch:
    """Finds out whether the leader is dead, by how long its beat stands still. `now`: monotonic seconds."""

    def __init__(self) -> None:
        self._seen: LeaseObservation | None = None
        self._since = 0.0

    def may_take(self, sight: LeaseObservation, now: float) -> bool:
        """Take a look into account; True: the lease is there to be taken."""
        if sight != self._seen:
            self._seen, self._since = sight, now
        return sight.vacant or now - self._since >= PATIENCE_SECONDS

    def look_failed(self) -> None:
        """Begin anew: while the database could not be asked, the leader could not show that it lives."""
        self._seen = None


class Candidate:
    """One service that wants to lead."""

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        #: where the leader answers, for those who ask us; empty: nobody leads as far as we know
        self.leader = ""

    async def win(self, stopping: asyncio.Event) -> bool:
        """Wait for the lease. True: we lead; False: we are to stop. StoreError only at the first look."""
        await asyncio.to_thread(self._lease.prepare)
        watch, told = Watch(), ""
        while not stopping.is_set():
            try:
                sight = await asyncio.to_thread(self._lease.look)
                if watch.may_take(sight, time.monotonic()) and await asyncio.to_thread(
                    self._lease.take, sight
                ):
                    return True
            except StoreError as error:
                watch.look_failed()
                _log.warning("the database cannot be asked who leads, trying again: %s", error)
            else:
                self.leader = sight.address
                if told != sight.client:
                    told = sight.client
                    _log.info("standby at %s; %s leads", self._lease.address, sight.address or "nobody")
            await _first_of(stopping, LOOK_SECONDS)
        return False


@asynccontextmanager
async def kept_alive(lease: Lease) -> AsyncIterator[None]:
    """Show from a thread of its own that we live, then step down. What is within is over by then.

    Waking after a frost (SIGCONT, or a machine that was suspended), the main thread takes no further step
    before it knows whether we still lead; where we do not, there is no further step. Needs the main thread.
    """
    stop = threading.Event()
    heart = threading.Thread(
        target=_beat, args=(lease, stop, threading.get_ident()), name="lease", daemon=True
    )
    before = signal.signal(signal.SIGCONT, lambda *_: _make_certain(lease))
    heart.start()
    try:
        yield
    finally:
        stop.set()
        await asyncio.to_thread(heart.join)
        signal.signal(signal.SIGCONT, before)
        try:
            await asyncio.to_thread(lease.release)
        except StoreError as error:
            _log.warning("the database was not told that this scheduler stops: %s", error)


def _beat(lease: Lease, stop: threading.Event, main: int) -> None:
    failed = False
    while True:
        begin = now()
        if stop.wait(BEAT_SECONDS):
            return
        if now() - begin > ASSURED_SECONDS:
            # frozen, and perhaps without a signal
            signal.pthread_kill(main, signal.SIGCONT)
        try:
            lease.beat()
        except StoreError as error:
            if not failed:
                _log.warning("the database does not hear that this scheduler lives: %s", error)
            failed = True
        else:
            if failed:
                _log.info("the database hears again that this scheduler lives")
            failed = False


def _make_certain(lease: Lease) -> None:
    """Ask whether we lead unless that is certain. Where nobody answers, only what needs certainty waits."""
    if not lease.assured:
        with suppress(StoreError):
            lease.beat()


async def _first_of(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, at most so long."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
