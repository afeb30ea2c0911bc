"""Transactions: what was committed is on disk, what was not never happened, a full disk is said."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import State
from pai_scheduler.store.database import StoreError, Trouble
from pai_scheduler.store.store import Store
from tests.scheduler.store.conftest import OpenStore
from tests.scheduler.store.stored_jobs import add, tell


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Store]:
    """Let the database grow no further, as on a full disk."""

    def limit(connection: sqlite3.Connection, _: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")

    store = Store.in_folder(tmp_path)
    add(store, "before")
    store.engine.dispose()
    sa.event.listen(store.engine, "connect", limit)
    yield store
    store.close()


def test_on_a_full_disk_a_commit_fails_as_a_whole_and_says_why(full: Store) -> None:
    with pytest.raises(StoreError, match="full") as caught:
        add(full, *(f"j{number}" for number in range(1000)))
    assert [job.id for job in full.jobs()] == ["before"]
    assert caught.value.trouble is Trouble.FULL


def test_after_a_full_disk_small_changes_and_reading_still_work(full: Store) -> None:
    with pytest.raises(StoreError):
        add(full, *(f"j{number}" for number in range(1000)))
    (job,) = full.live_jobs()
    job.state = State.STOPPED
    full.commit(Outcome(jobs={job.id: job}), {})
    assert [found.state for found in full.jobs()] == [State.STOPPED]


def test_everything_is_there_when_the_database_is_opened_again(open_store: OpenStore) -> None:
    store = open_store()
    (job,) = add(store, "j")
    store.commit(Outcome(job_events=tell("j", "a")), {})
    store.close()
    again = open_store()
    assert again.job("alice", "j") == job
    assert [told.entry.type for told in again.job_events()] == ["a"]


def test_a_commit_is_on_disk_before_it_returns_even_if_nobody_closes(open_store: OpenStore) -> None:
    store = open_store()
    add(store, "j")
    assert [job.id for job in open_store().jobs()] == ["j"]


def test_sqlite_writes_ahead_and_waits_for_the_disk(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    for _ in range(2):
        with store.engine.connect() as connection:
            settings = {
                name: connection.execute(sa.text(f"PRAGMA {name}")).scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            }
            assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        store.close()


def test_readers_read_while_one_writes(store: Store) -> None:
    add(store, "j")
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE jobs SET created = 5"))
        assert [job.created for job in store.jobs()] == [1001]


def test_whether_writes_are_taken_is_found_out_without_changing_anything(store: Store) -> None:
    add(store, "j")
    store.check_writable()
    assert len(list(store.jobs())) == 1
    read_only = {
        "sqlite": "PRAGMA query_only = ON",
        "postgresql": "SET TRANSACTION READ ONLY",
    }[store.engine.dialect.name]

    sa.event.listen(store.engine, "begin", lambda connection: connection.exec_driver_sql(read_only))
    with pytest.raises(StoreError, match=r"read-?only"):
        store.check_writable()
    assert len(list(store.jobs())) == 1
