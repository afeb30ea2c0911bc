"""Reads and writes the schedules: what is to run again and again, and what came of it last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from pai_scheduler.job.schedule import LastRun, Outcome, Overlap, Schedule

from . import rows
from .changes import upsert
from .tables import schedules
from .transactions import Database

_WITHOUT_CONFIG = [column for column in schedules.c if column.name != "config"]


class StoredSchedules(Database):
    """The part of the store that has the schedules."""

    def put_schedule(self, schedule: Schedule, config: Mapping[str, Any], most: int) -> bool:
        """Keep a schedule with its job JSON, instead of one that its user has by this name.

        False: there is none, and the user has `most` others already.
        """
        of_user = schedules.c.user_name == schedule.user
        with self._writing() as connection:
            names = connection.execute(sa.select(schedules.c.name).where(of_user)).scalars().all()
            if schedule.name not in names and len(names) >= most:
                return False
            text = json.dumps(config, ensure_ascii=False, separators=(",", ":"))
            upsert(connection, schedules, [{**_row(schedule), "config": text}])
        return True

    def change_schedule(self, schedule: Schedule) -> None:
        """Keep what has changed of a schedule but its job; nothing where it is gone."""
        with self._writing() as connection:
            update = schedules.update().where(*_which(schedule.user, schedule.name))
            connection.execute(update, _row(schedule))

    def remove_schedule(self, user: str, name: str) -> bool:
        """Forget a schedule; False where there is none."""
        with self._writing() as connection:
            return connection.execute(schedules.delete().where(*_which(user, name))).rowcount > 0

    def schedules(self, user: str) -> list[Schedule]:
        """List the schedules of a user by name."""
        if "\0" in user:
            return []
        query = sa.select(*_WITHOUT_CONFIG).where(schedules.c.user_name == user).order_by(schedules.c.name)
        with self._reading() as connection:
            return [_read(row._mapping) for row in connection.execute(query)]

    def schedule(self, user: str, name: str) -> tuple[Schedule, dict[str, Any]] | None:
        """Find a schedule, with its job JSON."""
        if "\0" in user + name:
            return None
        with self._reading() as connection:
            row = connection.execute(sa.select(schedules).where(*_which(user, name))).first()
        return None if row is None else (_read(row._mapping), json.loads(row.config))

    def due_schedules(self, now: int) -> list[tuple[str, str]]:
        """List the users and names of the schedules that are due, the longest due first."""
        query = sa.select(schedules.c.user_name, schedules.c.name).where(schedules.c.next_time <= now)
        with self._reading() as connection:
            found = connection.execute(query.order_by(schedules.c.next_time, schedules.c.user_name))
            return [(row.user_name, row.name) for row in found]

    def next_due(self) -> int | None:
        """Return when the next of all schedules is due (ms since the epoch); None: none ever is."""
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.min(schedules.c.next_time))).scalar()


def _which(user: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return schedules.c.user_name == user, schedules.c.name == name


def _row(schedule: Schedule) -> dict[str, Any]:
    last = schedule.last
    return {
        "user_name": schedule.user,
        "name": schedule.name,
        "cron": schedule.cron,
        "zone": schedule.zone,
        "overlap": schedule.overlap.value,
        "paused": schedule.paused,
        "created": schedule.created,
        "next_time": schedule.next,
        "last_job": last and last.job,
        "last_time": last and last.time,
        "last_outcome": last and last.outcome.value,
        "last_message": last and rows.dump_message(last.message),
    }


def _read(row: sa.RowMapping) -> Schedule:
    last = None
    if row["last_job"] is not None:
        message = rows.read_stored_message(row["last_message"])
        last = LastRun(row["last_job"], row["last_time"], Outcome(row["last_outcome"]), message)
    return Schedule(
        row["user_name"],
        row["name"],
        row["cron"],
        row["zone"],
        Overlap(row["overlap"]),
        row["paused"],
        row["created"],
        row["next_time"],
        last,
    )
