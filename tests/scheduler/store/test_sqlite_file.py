"""Damage of a SQLite file is noticed, and a copy is whole while others write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pai_scheduler.store.sqlite_file import check, copy, identify
from pai_scheduler.store.store import Store
from tests.scheduler.store.damage import cut, overwrite
from tests.scheduler.store.stored_jobs import add


@pytest.fixture
def database(tmp_path: Path) -> Path:
    store = Store.in_folder(tmp_path)
    for group in range(10):
        add(store, *(f"j{group}-{number}" for number in range(100)))
    store.close()
    return tmp_path / "scheduler.sqlite"


def test_a_whole_file_has_no_problems(database: Path) -> None:
    for seconds in (None, 60.0):
        found = check(database, seconds=seconds)
        assert (found.problems, found.whole) == ((), True)


@pytest.mark.parametrize("spoil", [overwrite, cut])
def test_damage_is_found(database: Path, spoil: object) -> None:
    assert callable(spoil)
    spoil(database)
    for seconds in (None, 60.0):
        assert check(database, seconds=seconds).problems


def test_a_check_ends_with_its_time_and_says_so(database: Path) -> None:
    found = check(database, seconds=-1.0)
    assert (found.problems, found.whole) == ((), False)


def test_a_copy_is_one_file_with_everything_in_it_though_others_write(database: Path, tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    add(store, "committed")
    with store._writing() as connection:
        connection.exec_driver_sql("DELETE FROM jobs")
        copy(database, tmp_path / "backup")
    store.close()
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    assert not list(tmp_path.glob("backup-*"))
    with sqlite3.connect(tmp_path / "backup") as copied:
        assert copied.execute("SELECT count(*) FROM jobs").fetchone() == (1001,)
    copied.close()


def test_a_database_of_ours_is_told_from_others(database: Path, tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    found = identify(database)
    assert found is not None
    assert found.name == store.name()
    store.close()
    for other in ("empty", "text"):
        (tmp_path / other).write_text("" if other == "empty" else "no database at all" * 1000)
        assert identify(tmp_path / other) is None
