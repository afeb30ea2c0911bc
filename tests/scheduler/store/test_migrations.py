from __future__ import annotations

import threading
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import pai_scheduler.store.store as store_module
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.state_machine import Core
from pai_scheduler.store.records import JobLinks
from pai_scheduler.store.store import Store, StoreError
from pai_scheduler.store.tables import HEAD, metadata
from tests.scheduler.making import make_node
from tests.scheduler.store.conftest import OpenStore
from tests.scheduler.store.first_version import JOB, JOBS, make_first_version


def migrations() -> ScriptDirectory:
    config = Config()
    config.set_main_option("script_location", str(Path(store_module.__file__).with_name("migrations")))
    return ScriptDirectory.from_config(config)


def test_the_migrations_make_exactly_the_tables_that_the_code_knows(store: Store) -> None:
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []
        inspector = sa.inspect(connection)
        for table in metadata.tables.values():
            made = {
                index["name"]: index.get("dialect_options") for index in inspector.get_indexes(table.name)
            }
            assert set(made) == {index.name for index in table.indexes}
        (unique,) = (i for i in inspector.get_indexes("jobs") if i["name"] == "uq_jobs_user_name")
        assert unique["unique"]
        where = unique["dialect_options"][f"{store.engine.dialect.name}_where"]
        assert str(where).strip("()") == "NOT doomed"


def test_the_newest_migration_is_the_one_that_the_code_expects() -> None:
    assert migrations().get_heads() == [HEAD]


def test_a_database_that_is_up_to_date_is_opened_without_running_migrations(
    open_store: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store()

    def refuse(*_: object) -> None:
        raise AssertionError("migrations were run")

    monkeypatch.setattr("alembic.command.upgrade", refuse)
    open_store()


def test_a_database_of_a_newer_scheduler_is_refused_with_a_sentence(open_store: OpenStore) -> None:
    store = open_store()
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(StoreError, match="newer scheduler"):
        open_store()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scheduler.sqlite").write_bytes(b"this is not a database, whatever it is" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store.in_folder(tmp_path)


def test_what_the_first_version_wrote_is_read_whole(database_url: str, open_store: OpenStore) -> None:
    make_first_version(database_url)
    store = open_store()
    assert [job.id for job in store.jobs("alice")] == [job_id for job_id, _, _ in reversed(JOBS)]
    for order, (job_id, state, sub_state) in enumerate(JOBS, 1):
        job = store.job("alice", job_id)
        assert job is not None
        if sub_state == "ENDING":
            # it said FAILED before its last task had ended
            assert job.verdict is not None
            state, told_early = "RUNNING", str(job.verdict.state)
            assert told_early == "FAILED"
        assert (job.id, str(job.state), str(job.sub_state)) == (job_id, state, sub_state)
        assert (job.completed is not None) == job.state.ended
        assert store.config(job_id) == {**JOB, "jobName": job_id}
        assert store.submitted_text(job_id) is None
        assert job.spec.task_roles[0].task_number == 2
        assert (job.priority, job.overtaken, job.retries.total, job.eligible) == (None, 0, 1, None)
        assert store.links(job_id, 10) == JobLinks([], [], 0)
        attempts = store.attempts(job_id)
        assert [(attempt.number, len(attempt.tasks)) for attempt in attempts] == (
            [] if sub_state == "QUEUED" else [(0, 2), (1, 2)]
        )
        for attempt in attempts:
            assert attempt.ending_until is None
            task = attempt.tasks["main", 1]
            gpu = 2 * order + 1
            assert (task.assignment.node, task.assignment.gpus) == ("node-a", (gpu,))
            assert task.assignment.ports == {"http": (20000 + gpu,), "ssh": (30000 + gpu,)}
            assert task.held is None
        (told,) = store.job_events(job_id=job_id)
        assert str(told.entry.message) == "The job was submitted by alice."
    live = {job_id for job_id, _, sub_state in JOBS if sub_state != "ENDED"}
    assert {job.id for job in store.live_jobs()} == live


def test_a_core_takes_up_what_the_first_version_left(database_url: str, open_store: OpenStore) -> None:
    make_first_version(database_url)
    store = open_store()
    core = Core(Cluster([make_node("node-a", cpus=64, gpus={"P100": 32})]))
    outcome = core.restore(store.live_jobs())
    assert set(core.jobs) == {job_id for job_id, _, sub_state in JOBS if sub_state != "ENDED"}
    store.commit(outcome, {})
    assert {job.id for job in store.live_jobs()} == set(core.jobs)


def test_the_upgraded_tables_are_those_of_a_new_database(database_url: str, open_store: OpenStore) -> None:
    make_first_version(database_url)
    with open_store().engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_many_that_start_at_once_on_one_postgresql_migrate_it_once(postgres_url: str) -> None:
    make_first_version(postgres_url)
    failures: list[Exception] = []
    ready = threading.Barrier(4)

    def start() -> None:
        ready.wait()
        try:
            Store(postgres_url).close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = Store(postgres_url)
    assert len(store.jobs()) == len(JOBS)
    store.close()
