"""The files without which what runs is lost are those that the database remembers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.server.data_folder import check_kept_files, remember_kept_files
from pai_scheduler.service.credentials import JobTokens
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store.in_folder(tmp_path)
    yield store
    store.close()


def start(folder: Path, store: Store, *, new_keys: bool = False) -> None:
    check_kept_files(folder, store, new_keys=new_keys)
    JobKeys.in_folder(folder)
    JobTokens.in_folder(folder)
    remember_kept_files(folder, store)


def test_files_that_stay_are_taken_at_every_start(tmp_path: Path, store: Store) -> None:
    for _ in range(3):
        start(tmp_path, store)


def test_a_database_of_an_earlier_scheduler_takes_the_files_that_are_there(
    tmp_path: Path, store: Store
) -> None:
    keys = JobKeys.in_folder(tmp_path)
    start(tmp_path, store)
    assert JobKeys.in_folder(tmp_path).gateway_token() == keys.gateway_token()


@pytest.mark.parametrize("name", ["job-keys.key", "job-tokens.key"])
def test_a_file_that_is_missing_or_another_is_refused_unless_that_is_said(
    tmp_path: Path, store: Store, name: str
) -> None:
    start(tmp_path, store)
    (tmp_path / name).unlink()
    with pytest.raises(StartError, match="is missing") as missing:
        start(tmp_path, store)
    assert name in str(missing.value)
    assert not (tmp_path / name).exists()
    (tmp_path / name).write_bytes(b"x" * 32)
    with pytest.raises(StartError, match="is not the one"):
        start(tmp_path, store)
    start(tmp_path, store, new_keys=True)
    start(tmp_path, store)
