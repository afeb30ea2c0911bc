"""Room in SQLite's own files, for what must be written on a full disk."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import sqlalchemy as sa

from pai_scheduler.store.sqlite_file import RESERVE
from pai_scheduler.store.store import Store


def reserved(folder: Path) -> tuple[int, int]:
    """Return the bytes that are free in the database, and those of its log."""
    with sqlite3.connect(folder / "scheduler.sqlite") as connection:
        (free,) = connection.execute("PRAGMA freelist_count").fetchone()
        (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    return free * page, (folder / "scheduler.sqlite-wal").stat().st_size


def test_there_is_room_in_the_database_and_in_its_log(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.keep_reserve(0)
    assert min(reserved(tmp_path)) >= RESERVE
    store.close()


def test_what_was_used_is_made_again_and_never_more(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.keep_reserve(0)
    size = (tmp_path / "scheduler.sqlite").stat().st_size
    with store.engine.begin() as connection:
        connection.execute(
            sa.text("CREATE TABLE used AS SELECT zeroblob(:size) AS content"), {"size": RESERVE}
        )
    assert reserved(tmp_path)[0] < RESERVE // 2
    store.keep_reserve(0)
    store.keep_reserve(0)
    assert min(reserved(tmp_path)) >= RESERVE
    assert (tmp_path / "scheduler.sqlite").stat().st_size <= size + RESERVE + 65536
    store.close()


def test_a_reserve_that_a_crash_left_half_made_is_made_again(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    with store.engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE reserve (content BLOB)"))
    store.keep_reserve(0)
    with store.engine.connect() as connection:
        assert "reserve" not in sa.inspect(connection).get_table_names()
    store.close()


def test_none_is_made_where_that_would_leave_too_little(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.keep_reserve(2**60)
    assert reserved(tmp_path)[0] < RESERVE // 2
    store.close()
