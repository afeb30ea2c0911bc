"""What keeps a scheduler from starting is one sentence, and no password is in it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import threading
import time
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest

from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg
from pai_scheduler.server.components import database_url, looked_through, no_database, open_store
from pai_scheduler.store.lease import Lease
from pai_scheduler.store.store import Store, StoreError
from pai_scheduler.testing.ports import free_port
from tests.scheduler.store.damage import overwrite
from tests.scheduler.store.first_version import make_first_version
from tests.scheduler.store.stored_jobs import add
from tests.testbed.scheduler import PROGRAM, clean_environ


def in_use(folder: Path) -> Path:
    """Make a data folder in which a scheduler has worked; return its database."""
    open_store(folder).close()
    (folder / "tasks" / "pai-j-0-main-0").mkdir(parents=True)
    return folder / "scheduler.sqlite"


def test_a_new_folder_gets_a_database_and_keeps_it(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        store = open_store(tmp_path)
        names.add(store.name())
        store.close()
    assert len(names) == 1


@pytest.mark.parametrize("lost", ["removed", "empty", "without tables"])
def test_a_folder_that_was_in_use_is_not_given_to_an_empty_database(tmp_path: Path, lost: str) -> None:
    database = in_use(tmp_path)
    database.unlink()
    if lost == "empty":
        database.touch()
    if lost == "without tables":
        connection = sqlite3.connect(database)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    was = database.stat().st_size if database.exists() else None
    with pytest.raises(StartError, match="--start-empty") as caught:
        open_store(tmp_path)
    assert str(database) in str(caught.value)
    assert "tasks" in str(caught.value)
    assert (database.stat().st_size if database.exists() else None) == was
    for _ in range(2):
        open_store(tmp_path, start_empty=True).close()
    open_store(tmp_path).close()


async def test_a_store_is_looked_through_beside_what_else_is_done(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    add(store, *(f"j{number}" for number in range(1000)))
    store.close()
    overwrite(tmp_path / "scheduler.sqlite")
    store = open_store(tmp_path)
    assert store.damage is None
    async with looked_through(store) as looked:
        await looked
        assert store.damage is not None
    store.close()


async def test_a_look_is_waited_for_though_the_start_fails() -> None:
    ended = threading.Event()

    class Slow:
        def look_for_damage(self, _seconds: float) -> None:
            time.sleep(0.05)
            ended.set()

    with pytest.raises(StartError):
        async with looked_through(cast("Store", Slow())):
            raise StartError(msg("It cannot start."))
    assert ended.is_set()


def test_what_is_in_the_log_of_a_lost_database_is_not_thrown_away(tmp_path: Path) -> None:
    database = in_use(tmp_path)
    log = database.with_name("scheduler.sqlite-wal")
    log.write_bytes(b"what was committed last")
    os.truncate(database, 0)
    with pytest.raises(StartError):
        open_store(tmp_path)
    assert log.read_bytes() == b"what was committed last"


def test_a_folder_is_not_given_to_another_database(tmp_path: Path) -> None:
    database = in_use(tmp_path / "one")
    in_use(tmp_path / "other").replace(database)
    for start_empty in (False, True):
        with pytest.raises(StartError, match="not the one to which the data folder"):
            open_store(tmp_path / "one", start_empty=start_empty)


def test_a_database_without_a_word_about_it_in_the_folder_is_taken(tmp_path: Path) -> None:
    make_first_version(f"sqlite:///{tmp_path}/scheduler.sqlite")
    (tmp_path / "tasks" / "pai-live-0-main-0").mkdir(parents=True)
    for _ in range(2):
        store = open_store(tmp_path)
        assert store.jobs()
        store.close()


def test_a_folder_that_was_in_use_is_not_given_to_an_empty_postgresql(
    tmp_path: Path, postgres_url: str
) -> None:
    (tmp_path / "database").write_text("the name of another")
    with pytest.raises(StartError, match="--start-empty") as caught:
        open_store(tmp_path, postgres_url)
    assert "secret" not in str(caught.value)
    open_store(tmp_path, postgres_url, start_empty=True).close()
    open_store(tmp_path, postgres_url).close()


def test_a_database_from_before_the_first_release_is_refused_in_a_sentence(tmp_path: Path) -> None:
    make_first_version(f"sqlite:///{tmp_path}/scheduler.sqlite", "0016")
    with pytest.raises(StartError) as caught:
        open_store(tmp_path)
    assert str(caught.value) == (
        f"The database in {tmp_path} cannot be used: it was written before the first release, and its tables "
        "are of version 0016, which this scheduler cannot bring up to date; start it once with an earlier "
        "scheduler that brings it to version 0017, or give up its jobs and begin with an empty data folder."
    )


def test_so_is_a_postgresql_without_its_password(tmp_path: Path, postgres_url: str) -> None:
    make_first_version(postgres_url, "0016")
    with pytest.raises(StartError) as caught:
        open_store(tmp_path, postgres_url)
    said = str(caught.value)
    assert said.startswith("The database postgresql://pai:***@127.0.0.1:")
    assert said.endswith("begin with an empty database and an empty data folder.")


def test_the_database_is_the_one_given_or_that_of_the_environment_or_the_folders() -> None:
    there, here = "postgresql://pai@there/pai", "postgresql://pai:secret@here/pai"
    assert database_url(there, {"PAI_DATABASE_URL": here}) == there
    assert database_url(None, {"PAI_DATABASE_URL": here}) == here
    assert database_url(None, {"PAI_DATABASE_URL": ""}) is None
    assert database_url(None, {}) is None


def test_a_password_in_the_command_line_is_refused() -> None:
    with pytest.raises(StartError, match="PAI_DATABASE_URL") as caught:
        database_url("postgresql://pai:secret@127.0.0.1/pai", {})
    assert "secret" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    error = no_database("postgresql://pai:secret@127.0.0.1/pai", StoreError("gone"))
    assert str(error) == "The database postgresql://pai:***@127.0.0.1/pai cannot be used: gone."
    assert "nonsense" in str(no_database("nonsense", StoreError("gone")))


def start(tmp_path: Path, *options: str, **environ: str) -> str:
    """Start the program where it cannot; return its one sentence."""
    tokens = tmp_path / "tokens.json"
    tokens.write_text("{}")
    tokens.chmod(0o600)
    done = subprocess.run(
        [PROGRAM, "--data-dir", tmp_path / "data", "--tokens", tokens, "--port", "0", *options],
        env=clean_environ(environ),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    (sentence,) = [line for line in done.stderr.splitlines() if " INFO " not in line]
    assert sentence.startswith("pai-scheduler: ")
    return sentence


def test_a_database_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    port = free_port()
    sentence = start(tmp_path, PAI_DATABASE_URL=f"postgresql://pai:secret@127.0.0.1:{port}/pai")
    assert str(port) in sentence
    assert "refused" in sentence
    assert "secret" not in sentence


def test_a_wrong_password_is_one_sentence(tmp_path: Path, postgres_url: str) -> None:
    place = urlsplit(postgres_url)
    address = f"postgresql://pai:wrong-one@127.0.0.1:{place.port}{place.path}"
    sentence = start(tmp_path, PAI_DATABASE_URL=address)
    assert "password authentication failed" in sentence
    assert "wrong-one" not in sentence


def test_a_leader_that_cannot_start_frees_the_lease(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "database").write_text("another")
    assert "--start-empty" in start(tmp_path, PAI_DATABASE_URL=postgres_url)
    lease = Lease(postgres_url, "here", lambda: None)
    assert lease.look().vacant
    lease.close()
