"""The lease of leadership among several services on one PostgreSQL: a row with an epoch, and a beat.

Nobody's clock is compared with another's: who waits measures, on its own clock, how long the beat has stood
still. A service that takes the lease raises the epoch; every transaction of a leader changes the row under
the epoch that it was given, so one that was overtaken cannot commit any more, however long it was frozen
(a fencing token, as in Kleppmann, "How to do distributed locking", 2016).
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from pai_scheduler.i18n import msg

from .database import StoreError, open_database, store_error

_log = logging.getLogger(__name__)

#: Seconds between two beats, and between two looks of one who waits.
BEAT_SECONDS, LOOK_SECONDS = 1.0, 0.5
#: Seconds of standstill after which a leader is taken for dead.
PATIENCE_SECONDS = 5.0
#: Seconds for which a beat assures the leader that it leads: less than anybody's patience.
ASSURED_SECONDS = 3.0
#: Seconds in which it must turn out whether a commit was kept whose answer was lost.
_DOUBT_SECONDS = 60.0
#: ms for one statement: a leader that waits longer for its beat is as good as dead
_STATEMENT_MS = 3000
#: of PostgreSQL's advisory locks: who makes the tables
_LOCK = 0x50414902

# not part of the migrations: who migrates must lead
_metadata = sa.MetaData()
_leader = sa.Table(
    "leader",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("epoch", sa.BigInteger, nullable=False),
    # the leader's sessions have this name; empty: nobody leads
    sa.Column("client", sa.String(63), nullable=False),
    sa.Column("address", sa.Text, nullable=False),
    # of the last transaction that a leader committed
    sa.Column("mark", sa.String(32), nullable=False),
)
# apart, so that a beat does not wait for a long transaction
_beat = sa.Table(
    "leader_beat",
    _metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("beat", sa.BigInteger, nullable=False),
)


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """The lease as seen by a standby: the leader and its epoch, its address, and its heartbeat count."""

    epoch: int
    client: str
    address: str
    beat: int

    @property
    def vacant(self) -> bool:
        """Return whether nobody leads: the last leader stepped down, or there was none."""
        return not self.client


class Lease:
    """One service's claim to lead, on the PostgreSQL at `url`. Blocking; StoreError where it cannot be asked.

    `address` is what others are told to ask instead; `on_lost` is called once, from whichever thread finds
    that another service leads now: nothing may be done after it.
    """

    def __init__(self, url: str, address: str, on_lost: Callable[[], None]) -> None:
        self.client = f"pai-scheduler-{secrets.token_hex(8)}"
        #: where we answer
        self.address = address
        self._on_lost = on_lost
        self._engine = open_database(url, client=self.client, pool_size=2)
        sa.event.listen(self._engine, "connect", _be_quick)
        self._epoch = -1
        self._assured_until = 0.0
        self._over = False

    def close(self) -> None:
        """Close the connections; nothing is given up by this."""
        self._engine.dispose()

    def prepare(self) -> None:
        """Make the tables where they are missing."""
        with self._connected() as connection:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
            _metadata.create_all(connection)
            if connection.execute(sa.select(_leader.c.id)).first() is None:
                row = {"id": 1, "epoch": 0, "client": "", "address": "", "mark": ""}
                connection.execute(_leader.insert(), row)
                connection.execute(_beat.insert(), {"id": 1, "beat": 0})

    def look(self) -> LeaseObservation:
        """See who leads."""
        columns = (_leader.c.epoch, _leader.c.client, _leader.c.address, _beat.c.beat)
        query = sa.select(*columns).join(_beat, _beat.c.id == _leader.c.id)
        with self._connected() as connection:
            return LeaseObservation(*connection.execute(query).one())

    def take(self, seen: LeaseObservation) -> bool:
        """Lead from now on, unless something has happened since `seen` was. True: we lead."""
        begin = now()
        # nodes refuse an older epoch: it has to grow also where an older database was put back
        epoch = max(seen.epoch + 1, int(time.time()))
        with self._connected() as connection:
            if not seen.vacant:
                # frozen in the middle of a transaction, it would keep the row locked
                connection.execute(_END_SESSIONS, {"client": seen.client})
        with self._connected() as connection:
            still = sa.select(_beat.c.id).where(_beat.c.beat == seen.beat).exists()
            taken = connection.execute(
                _leader.update()
                .where(_leader.c.epoch == seen.epoch, _leader.c.client == seen.client, still)
                .values(epoch=epoch, client=self.client, address=self.address)
            )
            if taken.rowcount == 0:
                return False
        self._epoch = epoch
        self._assured_until = begin + ASSURED_SECONDS
        return True

    def beat(self) -> None:
        """Show that we live, and learn that we still lead."""
        begin = now()
        ours = sa.select(_leader.c.id).where(_leader.c.epoch == self._epoch).exists()
        with self._connected() as connection:
            beaten = connection.execute(_beat.update().where(ours).values(beat=_beat.c.beat + 1))
        if beaten.rowcount == 0:
            raise self._lost()
        self._assured_until = begin + ASSURED_SECONDS

    def release(self) -> None:
        """Step down, so that another service may lead at once."""
        self._over = True
        with self._connected() as connection:
            ours = _leader.update().where(_leader.c.epoch == self._epoch)
            connection.execute(ours.values(client="", address=""))

    @property
    def assured(self) -> bool:
        """Return whether nobody else can lead at this moment."""
        return not self._over and now() < self._assured_until

    @property
    def epoch(self) -> int:
        """Return the number of the term in which we lead; it grows with every term. -1: we never led."""
        return self._epoch

    # -- the leader's transactions --------------------------------------------------------------------------

    def sign(self, connection: sa.Connection) -> str:
        """Begin a transaction with this: it cannot be committed once another leads. Gives its mark."""
        mark = secrets.token_hex(16)
        ours = _leader.update().where(_leader.c.epoch == self._epoch)
        if connection.execute(ours.values(mark=mark)).rowcount == 0:
            raise self._lost()
        return mark

    def has_kept(self, mark: str) -> bool:
        """Find out whether a transaction was committed when the answer to its COMMIT was lost."""
        deadline = time.monotonic() + _DOUBT_SECONDS
        while True:
            try:
                with self._connected() as connection:
                    # waits for the end of that transaction, should the server still be at it
                    row = connection.execute(sa.select(_leader).with_for_update()).one()
            except StoreError as error:
                if time.monotonic() > deadline:
                    _log.critical("whether the last changes were kept cannot be found out: %s", error)
                    # the next leader reads what is true
                    raise self._lost() from error
                time.sleep(BEAT_SECONDS)
            else:
                if row.epoch != self._epoch:
                    raise self._lost()
                return bool(row.mark == mark)

    def _lost(self) -> StoreError:
        if not self._over:
            self._over = True
            self._on_lost()
        return StoreError(msg("another scheduler leads now"))

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.begin() as connection:
                yield connection
        except DBAPIError as error:
            raise store_error(error) from error


_END_SESSIONS = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = :client AND usename = current_user"
)


def now() -> float:
    """Return seconds that go on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _be_quick(connection: Any, _record: object) -> None:
    connection.execute(f"SET statement_timeout = {_STATEMENT_MS}")
    connection.commit()
