"""A database as the first version left it: its tables, with jobs of every kind in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

import pai_scheduler.store.migrate as migrate_module
from pai_scheduler.store.database import open_database

JOB: dict[str, Any] = {
    "jobName": "old",
    "image": "local/any",
    "taskRoles": [{"name": "main", "taskNumber": 2, "command": "sleep 1", "gpuNumber": 1}],
    "extras": {"说明": "旧"},
}
_VERDICT = [
    "FAILED",
    7,
    255,
    ["main", 1],
    ["pai_scheduler", "Task {task} failed: exit code {code}.", {"task": "main-1", "code": 7}],
]
#: id, state, sub_state: one job in each state that the first version knew
JOBS = [
    ("queued", "WAITING", "QUEUED"),
    ("starting", "WAITING", "STARTING"),
    ("waits-for-retry", "WAITING", "RETRY_WAIT"),
    ("running", "RUNNING", "RUNNING"),
    ("ending", "FAILED", "ENDING"),
    ("succeeded", "SUCCEEDED", "ENDED"),
    ("failed", "FAILED", "ENDED"),
    ("stopped", "STOPPED", "ENDED"),
]


def make_first_version(url: str) -> None:
    """Fill an empty database as the first version would have: its own migration, then rows past the code."""
    engine = open_database(url)
    config = Config()
    config.set_main_option("script_location", str(Path(migrate_module.__file__).with_name("migrations")))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for order, (job_id, state, sub_state) in enumerate(JOBS, 1):
            _add_job(connection, order, job_id, state, sub_state)
    engine.dispose()


def _add_job(connection: sa.Connection, order: int, job_id: str, state: str, sub_state: str) -> None:
    decided = sub_state in ("ENDED", "ENDING", "RETRY_WAIT")
    verdict = json.dumps(_VERDICT)
    _insert(
        connection, "jobs",
        id=job_id, user_name="alice", name=job_id, virtual_cluster="default", created=1000 + order,
        config=json.dumps({**JOB, "jobName": job_id}, ensure_ascii=False), ord=order, state=state,
        sub_state=sub_state, completed=5000 if sub_state in ("ENDED", "ENDING") else None,
        attempt=None if sub_state == "QUEUED" else 1, retries="[1,0,0,1]",
        not_before=9000 if sub_state == "RETRY_WAIT" else None,
        verdict=verdict if sub_state in ("ENDED", "ENDING") else None, doomed=False,
    )  # fmt: skip
    _insert(
        connection, "story",
        job_id=job_id, time=1000, type="submitted", attempt=None, role=None, idx=None, data='{"a":1}',
        message=json.dumps(["pai_scheduler", "The job was submitted by {user}.", {"user": "alice"}]),
    )  # fmt: skip
    if sub_state == "ENDING":
        _insert(
            connection, "story",
            job_id=job_id, time=5000, type="ended", attempt=None, role=None, idx=None, data="{}",
            message=json.dumps(_VERDICT[-1]),
        )  # fmt: skip
    if sub_state == "QUEUED":
        return
    for number in (0, 1):
        _insert(
            connection, "attempts",
            job_id=job_id, number=number, created=1500, launched=1600,
            completed=1700 if number == 0 or sub_state == "ENDED" else None,
            verdict=verdict if number == 0 or decided else None,
        )  # fmt: skip
        for index in (0, 1):
            over = number == 0 or sub_state in ("ENDED", "RETRY_WAIT") or (sub_state, index) == ("ENDING", 1)
            gpu = 2 * order + index
            _insert(
                connection, "tasks",
                job_id=job_id, attempt=number, role="main", idx=index,
                assignment=json.dumps(["node-a", [gpu], {"http": [20000 + gpu], "ssh": [30000 + gpu]}]),
                state="FAILED" if over else "RUNNING", started=1600, ended=1700 if over else None,
                exit_code=7 if over else None, address="127.0.0.1", container_id="4711",
                killing=sub_state == "ENDING" and not over, reason=None,
            )  # fmt: skip


def _insert(connection: sa.Connection, table: str, **values: object) -> None:
    names = ", ".join(values)
    places = ", ".join(f":{name}" for name in values)
    connection.execute(sa.text(f"INSERT INTO {table} ({names}) VALUES ({places})"), values)  # noqa: S608
