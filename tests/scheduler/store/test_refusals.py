"""A request that the database fails is told what is wrong with it: no room, no answer, or damage."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.events import Submitted
from pai_scheduler.core.state_machine import Core
from pai_scheduler.job.validation import parse_job
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.writer import Writer
from pai_scheduler.store.database import StoreError, Trouble, not_read, not_written
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config, make_node
from tests.testbed.postgres import Postgres


@pytest.fixture
def on_postgresql(postgres_url: str) -> Iterator[Store]:
    store = Store(postgres_url)
    yield store
    store.close()


async def refusal(store: Store) -> RequestError:
    """Submit a job that cannot be written down."""
    writer = Writer(store, lambda: Core(Cluster([make_node()])), lambda _: None)
    await writer.start()
    spec = parse_job(make_config(name="j"))
    try:
        with pytest.raises(RequestError) as caught:
            await writer.request(Submitted(1, "j", "alice", spec, 1), make_config(name="j"))
    finally:
        await writer.close()
    return caught.value


@pytest.mark.parametrize(
    ("sqlstate", "status", "code"),
    [
        ("53100", 507, "InsufficientStorageError"),
        ("08006", 503, "StorageUnavailableError"),
        ("25006", 503, "StorageUnavailableError"),
        ("XX001", 503, "StorageDamagedError"),
    ],
)
async def test_what_a_postgresql_says_decides(
    on_postgresql: Store, sqlstate: str, status: int, code: str
) -> None:
    with on_postgresql.engine.begin() as connection:
        for statement in (
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE 'no more' USING ERRCODE = '{sqlstate}'; END $$",
            "CREATE TRIGGER refuse BEFORE INSERT ON jobs EXECUTE FUNCTION refuse()",
        ):
            connection.execute(sa.text(statement))
    found = await refusal(on_postgresql)
    assert (found.status, found.code) == (status, code)
    assert "no more" in str(found)


async def test_a_postgresql_that_is_gone_is_not_called_a_full_disk(
    postgres: Postgres, on_postgresql: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.service.writer._RETRY_SECONDS", 0.02)
    writer = Writer(on_postgresql, lambda: Core(Cluster([make_node()])), lambda _: None)
    await writer.start()
    await asyncio.to_thread(postgres.stop)
    try:
        spec = parse_job(make_config(name="j"))
        with pytest.raises(RequestError, match="cannot reach its database") as caught:
            await writer.request(Submitted(1, "j", "alice", spec, 1), make_config(name="j"))
        assert (caught.value.status, caught.value.code) == (503, "StorageUnavailableError")
        with pytest.raises(RequestError) as kept:
            await writer.keep(on_postgresql.remember_fingerprints, {"a": "b"})
        assert (kept.value.status, kept.value.code) == (503, "StorageUnavailableError")
    finally:
        await asyncio.to_thread(postgres.start)
        await writer.close()


def fail(store: Store, *statements: str) -> StoreError:
    """Write what cannot be written."""
    with pytest.raises(StoreError) as caught:
        _write(store, statements)
    return caught.value


def _write(store: Store, statements: tuple[str, ...]) -> None:
    with store._writing() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_a_sqlite_without_room_is_a_full_disk(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    error = fail(
        store, "PRAGMA max_page_count = 1", "CREATE TABLE big AS SELECT zeroblob(100000000) AS content"
    )
    assert error.trouble is Trouble.FULL
    assert (not_written(error).status, not_read(error).status) == (507, 503)
    store.close()


def test_a_sqlite_that_may_not_be_written_is_not_called_a_full_disk(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    error = fail(store, "PRAGMA query_only = 1", "UPDATE alembic_version SET version_num = version_num")
    assert "readonly" in str(error)
    assert (not_written(error).status, not_written(error).code) == (503, "StorageUnavailableError")
    store.close()


def test_a_damaged_sqlite_is_said_to_be_damaged(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    store.close()
    database = tmp_path / "scheduler.sqlite"
    # its first page is as it was
    os.pwrite(descriptor := os.open(database, os.O_WRONLY), b"\xff" * (database.stat().st_size - 4096), 4096)
    os.close(descriptor)
    with pytest.raises(StoreError) as caught:
        store.jobs()
    for found in (not_read(caught.value), not_written(caught.value)):
        assert (found.status, found.code) == (503, "StorageDamagedError")
        assert "restore a backup" in str(found)
    store.close()
