"""A database as the first release left it: its tables, with jobs of every kind and rows in every table.

The dumps were made by the migrations and the store of the time before 0001 to 0017 became one migration.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import sqlalchemy as sa

from pai_scheduler.store.database import open_database

_DUMPS = Path(__file__).parents[2] / "fixtures" / "databases"

JOB: dict[str, Any] = {
    "jobName": "old",
    "image": "local/any",
    "taskRoles": [{"name": "main", "taskNumber": 2, "command": "sleep 1", "gpuNumber": 1}],
    "extras": {"说明": "旧"},
}
#: id, state, sub_state: one job in each state that the first version knew
JOBS = [
    ("queued", "WAITING", "QUEUED"),
    ("starting", "WAITING", "STARTING"),
    ("waits-for-job", "WAITING", "DEPENDENCY_WAIT"),
    ("waits-for-retry", "WAITING", "RETRY_WAIT"),
    ("running", "RUNNING", "RUNNING"),
    ("ending", "RUNNING", "ENDING"),
    ("succeeded", "SUCCEEDED", "ENDED"),
    ("failed", "FAILED", "ENDED"),
    ("stopped", "STOPPED", "ENDED"),
]


def make_first_version(url: str, revision: str | None = None) -> None:
    """Fill an empty database from the dump; `revision`: it says that its tables are of that one."""
    place = sa.make_url(url)
    kind = place.get_backend_name()
    dump = (_DUMPS / f"0017.{kind}.sql").read_text(encoding="utf-8")
    if kind == "sqlite":
        with closing(sqlite3.connect(str(place.database))) as connection:
            connection.executescript(dump)
    else:
        with psycopg.connect(url) as session:
            session.execute(dump.encode())
    if revision is not None:
        engine = open_database(url)
        with engine.begin() as changing:
            changing.execute(sa.text("UPDATE alembic_version SET version_num = :found"), {"found": revision})
        engine.dispose()
