"""What is still to be told outside of jobs' ends: written with the end, gone when it is told or given up."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from pai_scheduler.core.instructions import Announcement
from pai_scheduler.core.model import JobEvent

from . import rows
from .tables import announcements, job_events, jobs
from .transactions import Database


@dataclass(frozen=True, slots=True)
class WaitingAnnouncement:
    """An announcement, how often it was tried in vain, and from when on it is to be tried (ms)."""

    announcement: Announcement
    tries: int
    due: int


def announcement_rows(new: Iterable[Announcement]) -> list[dict[str, Any]]:
    """Return the rows of new announcements: due at once."""
    return [
        {
            "job_id": one.job_id,
            "channel": one.channel,
            "user_name": one.user,
            "target": one.target,
            "document": json.dumps(one.document, ensure_ascii=False),
            "time": one.time,
            "tries": 0,
            "due": one.time,
        }
        for one in new
    ]


class Outbox(Database):
    """The announcements of a database."""

    def due_announcements(self, now: int, limit: int) -> list[WaitingAnnouncement]:
        """List those that are due: first what was never tried, and of these the oldest."""
        query = sa.select(announcements).where(announcements.c.due <= now)
        query = query.order_by(announcements.c.tries, announcements.c.due).limit(limit)
        with self._reading() as connection:
            return [_read(row._mapping) for row in connection.execute(query)]

    def next_announcement(self) -> int | None:
        """Return when the next one is due (ms since the epoch); None: there is none."""
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.min(announcements.c.due))).scalar()

    def announce_all(self, now: int) -> None:
        """Have all be due: what kept them from being told may be over."""
        with self._writing() as connection:
            connection.execute(announcements.update().where(announcements.c.due > now).values(due=now))

    def put_off(self, announcement: Announcement, tries: int, due: int) -> None:
        """Keep that one was tried so often in vain, and is to be tried again then."""
        with self._writing() as connection:
            connection.execute(_one(announcements.update(), announcement).values(tries=tries, due=due))

    def settle(self, announcement: Announcement, entry: JobEvent | None = None) -> None:
        """Forget one that is told, or given up; with what is told of that, where its job is still there."""
        with self._writing() as connection:
            connection.execute(_one(announcements.delete(), announcement))
            known = sa.select(jobs.c.id).where(jobs.c.id == announcement.job_id)
            if entry is not None and connection.execute(known).first() is not None:
                connection.execute(job_events.insert(), rows.job_event_row(entry))


def _one(statement: Any, announcement: Announcement) -> Any:
    which = (announcements.c.job_id == announcement.job_id, announcements.c.channel == announcement.channel)
    return statement.where(*which)


def _read(row: sa.RowMapping) -> WaitingAnnouncement:
    announcement = Announcement(
        row["job_id"],
        row["channel"],
        row["user_name"],
        row["target"],
        row["time"],
        json.loads(row["document"]),
    )
    return WaitingAnnouncement(announcement, row["tries"], row["due"])
