"""The doctor looks at the scheduler's own machine."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_scheduler.server.components import open_store
from pai_scheduler.server.main import main
from pai_scheduler.store.store import DATABASE_FILE
from pai_scheduler.store.tables import HEAD
from tests.testbed.docker import client
from tests.testbed.hdfs import Hdfs
from tests.testbed.postgres import Postgres

Doctor = Callable[..., tuple[int, str]]


@pytest.fixture
def doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Return how to ask with some options; what comes back is the exit code, and what was said."""
    monkeypatch.delenv("PAI_DATABASE_URL", raising=False)
    monkeypatch.setattr("pai_scheduler.server.doctor.checks._LITTLE_GB", 0.0)
    monkeypatch.setattr("pai_scheduler.server.doctor.checks._LITTLE_SHARE", 0.0)

    def ask(*options: object) -> tuple[int, str]:
        code = main(["--data-dir", str(tmp_path / "data"), *map(str, options), "doctor"])
        return code, capsys.readouterr().out

    return ask


def test_a_machine_that_has_all_is_well(doctor: Doctor, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("virtualClusters: {default: {capacity: 100}}\n")
    code, said = doctor("--cluster", cluster, "--storage", tmp_path)
    assert code == 0, said
    assert f"ok    The cluster file {cluster} can be read." in said
    assert f"ok    The storage {tmp_path} answers." in said
    assert f"note  There is no data folder {tmp_path / 'data'} yet." in said
    # it only looks
    assert not (tmp_path / "data").exists()


def test_each_wrong_thing_is_said_with_what_to_do_and_all_the_others_too(
    doctor: Doctor, tmp_path: Path
) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("virtualClusters: 7\n")
    code, said = doctor(
        *("--cluster", cluster, "--storage", "http://127.0.0.1:9"),
        *("--database", "postgresql://pai@127.0.0.1:9/pai"),
    )
    assert code == 1
    assert "WRONG The database postgresql://pai@127.0.0.1:9/pai does not answer: " in said
    assert "WRONG The storage http://127.0.0.1:9 does not answer: " in said
    assert f"WRONG The cluster file {cluster} cannot be used: " in said
    assert said.count("→") >= 3


def test_shared_folders_that_the_engine_cannot_give_are_wrong(doctor: Doctor, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text("sharedFolders: [{name: sets, source: /data/sets, target: /data/sets}]\n")
    code, said = doctor("--cluster", cluster)
    assert (code, "WRONG The process engine has no shared folders" in said) == (1, True), said


def test_a_full_disk_is_wrong(doctor: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.server.doctor.checks._LITTLE_GB", 10**9)
    code, said = doctor()
    assert (code, "WRONG" in said, "Make room" in said) == (1, True, True)


@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        (HEAD, 0, "ok    The database is "),
        ("0001", 1, "WRONG The database was written before the first release (0001)"),
        ("9999", 1, "WRONG The database was written by a newer scheduler (9999)."),
    ],
)
def test_the_version_of_the_database_is_looked_at_and_left_as_it_is(
    doctor: Doctor, tmp_path: Path, version: str, code: int, said: str
) -> None:
    (tmp_path / "data").mkdir()
    open_store(tmp_path / "data", start_empty=False).close()
    file = tmp_path / "data" / DATABASE_FILE
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute("UPDATE alembic_version SET version_num = ?", [version])
    found = doctor()
    assert (found[0], said in found[1]) == (code, True), found[1]
    with contextlib.closing(sqlite3.connect(file)) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [(version,)]


def test_a_database_that_the_next_start_brings_up_to_date_is_worth_a_note(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    open_store(tmp_path / "data", start_empty=False).close()
    monkeypatch.setattr("pai_scheduler.server.doctor.command.HEAD", "9999")
    code, said = doctor()
    assert (code, "note  The database is of an older version" in said) == (0, True), said


def test_a_real_postgresql_and_a_real_hdfs_answer(
    doctor: Doctor, postgres: Postgres, hdfs: Hdfs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_DATABASE_URL", postgres.url("postgres"))
    code, said = doctor("--storage", hdfs.url)
    assert code == 0, said
    assert said.count(" answers.") == 2
    assert postgres.password not in said


def test_docker_is_looked_at_where_it_runs_the_tasks(
    doctor: Doctor, docker_host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    code, said = doctor("--engine", "docker")
    with client(docker_host) as engine:
        assert f"ok    Docker {engine.info()['ServerVersion']} answers." in said
    assert code == 0, said
    # a Swarm is made first
    code, said = doctor("--engine", "swarm")
    assert (code, "WRONG This machine manages no Swarm." in said, "docker swarm init" in said) == (
        1,
        True,
        True,
    )
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/nothing.sock")
    code, said = doctor("--engine", "docker")
    assert (code, "WRONG Docker cannot be used." in said) == (1, True)


def test_a_limit_of_homes_is_tried_and_leaves_no_volume(
    doctor: Doctor, docker_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    code, said = doctor("--engine", "docker", "--home-gb", "5")
    kept = "ok    Homes that are made from now on hold 5 GB at most." in said
    refused = "WRONG Homes cannot have a limit of 5 GB." in said
    # (by the file system that Docker's folder is on)
    assert kept != refused
    assert not refused or (code == 1 and "has to be on an XFS" in said)
    with client(docker_host) as engine:
        assert not [volume.name for volume in engine.volumes.list() if "probe" in str(volume.name)]
