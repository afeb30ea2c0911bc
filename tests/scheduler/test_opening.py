"""What keeps a scheduler from starting is one sentence, and no password is in it."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pai_scheduler.opening import (
    StartError,
    claim_folder,
    database_url,
    lock_folder,
    no_database,
    refuse_other_database,
)
from pai_scheduler.store.lease import Lease
from pai_scheduler.store.store import Store, StoreError
from tests.testbed.scheduler import PROGRAM, clean_environ


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


def test_a_folder_belongs_to_one_database(tmp_path: Path) -> None:
    refuse_other_database(tmp_path)
    for _ in range(2):
        claim_folder(tmp_path, "one")
    with pytest.raises(StartError, match="another PostgreSQL database"):
        claim_folder(tmp_path, "other")
    with pytest.raises(StartError, match="--database"):
        refuse_other_database(tmp_path)


def test_a_folder_with_jobs_of_its_own_is_not_taken_by_a_postgresql(tmp_path: Path) -> None:
    Store.in_folder(tmp_path).close()
    with pytest.raises(StartError, match=r"scheduler\.sqlite"):
        claim_folder(tmp_path, "one")


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
    """Start the program where it cannot; give its one sentence."""
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
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
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


def test_who_cannot_start_leaves_the_lead_to_others(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "data").mkdir()
    Store.in_folder(tmp_path / "data").close()
    assert "scheduler.sqlite" in start(tmp_path, PAI_DATABASE_URL=postgres_url)
    lease = Lease(postgres_url, "here", lambda: None)
    assert lease.look().vacant
    lease.close()
