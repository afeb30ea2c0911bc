"""A data folder has one scheduler and belongs to one database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.server.data_folder import (
    POSTGRESQL,
    SQLITE,
    DatabaseOwner,
    claim_folder,
    disown_folder,
    earlier_life,
    lock_folder,
    owner_of,
    refuse_other_kind,
)
from pai_scheduler.store.store import Store


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_folder_is_one_schedulers_or_that_of_several_on_one_postgresql(
    tmp_path: Path, held: ExitStack
) -> None:
    for _ in range(2):
        held.enter_context(lock_folder(tmp_path, shared=True))
    with pytest.raises(StartError, match="Another scheduler"):
        lock_folder(tmp_path)
    held.close()
    held.enter_context(lock_folder(tmp_path))
    for shared in (True, False):
        with pytest.raises(StartError, match="Another scheduler"):
            lock_folder(tmp_path, shared=shared)


def test_a_folder_stays_locked_when_the_lock_file_is_removed(tmp_path: Path, held: ExitStack) -> None:
    held.enter_context(lock_folder(tmp_path))
    (tmp_path / "lock").unlink()
    with pytest.raises(StartError, match="Another scheduler"):
        lock_folder(tmp_path)


@pytest.mark.parametrize("kind", [SQLITE, POSTGRESQL])
def test_a_folder_belongs_to_one_database(tmp_path: Path, kind: str) -> None:
    assert owner_of(tmp_path) is None
    for _ in range(2):
        claim_folder(tmp_path, DatabaseOwner(kind, "one"))
    with pytest.raises(StartError, match="would be ended"):
        claim_folder(tmp_path, DatabaseOwner(kind, "other"))
    other = SQLITE if kind == POSTGRESQL else POSTGRESQL
    for step in (
        lambda: claim_folder(tmp_path, DatabaseOwner(other, "one")),
        lambda: refuse_other_kind(tmp_path, other),
    ):
        with pytest.raises(StartError, match="--data-dir"):
            step()
    disown_folder(tmp_path)
    claim_folder(tmp_path, DatabaseOwner(other, "other"))


def test_a_folder_with_jobs_of_its_own_is_not_taken_by_a_postgresql(tmp_path: Path) -> None:
    Store.in_folder(tmp_path).close()
    with pytest.raises(StartError, match=r"scheduler\.sqlite"):
        claim_folder(tmp_path, DatabaseOwner(POSTGRESQL, "one"))


def test_a_folder_knows_the_postgresql_that_an_earlier_scheduler_noted(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("f00d")
    claim_folder(tmp_path, DatabaseOwner(POSTGRESQL, "f00d"))
    with pytest.raises(StartError, match="another PostgreSQL database"):
        claim_folder(tmp_path, DatabaseOwner(POSTGRESQL, "beef"))


def test_a_note_that_a_power_loss_left_empty_is_made_again(tmp_path: Path) -> None:
    (tmp_path / "database").write_text("")
    claim_folder(tmp_path, DatabaseOwner(SQLITE, "one"))
    assert owner_of(tmp_path) == DatabaseOwner(SQLITE, "one")


def test_what_a_scheduler_leaves_is_told_from_what_was_prepared_for_it(tmp_path: Path) -> None:
    (tmp_path / "storage" / "alice").mkdir(parents=True)
    (tmp_path / "tasks").mkdir()
    assert earlier_life(tmp_path) == []
    (tmp_path / "tasks" / "pai-j-0-main-0").mkdir()
    (tmp_path / "job-keys.key").write_bytes(b"x")
    assert earlier_life(tmp_path) == ["tasks", "job-keys.key"]
