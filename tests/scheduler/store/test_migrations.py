from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import pai_scheduler.store.store as store_module
from pai_scheduler.clock import ClockMark
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.fair_share import DecayedUsage
from pai_scheduler.cluster.node import Closing, Maintenance
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.instructions import Announcement
from pai_scheduler.core.state_machine import Core
from pai_scheduler.i18n import msg
from pai_scheduler.job.dependencies import On
from pai_scheduler.job.schedule import LastRun, Overlap, RunOutcome, Schedule
from pai_scheduler.job.task import TaskRef
from pai_scheduler.store.database import open_database
from pai_scheduler.store.migrate import FIRST
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


def test_the_first_migration_is_the_one_before_which_databases_are_refused() -> None:
    assert migrations().get_bases() == [FIRST]


@pytest.mark.parametrize("made", ["here", "by the first version"])
def test_a_database_that_is_up_to_date_is_opened_without_running_migrations(
    database_url: str, open_store: OpenStore, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    if made == "here":
        open_store()
    else:
        # (as long as there is no second migration)
        make_first_version(database_url)

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


@pytest.mark.parametrize("revision", ["0001", "0016"])
def test_a_database_from_before_the_first_release_is_refused_and_left_as_it_is(
    database_url: str, open_store: OpenStore, revision: str
) -> None:
    make_first_version(database_url, revision)
    with pytest.raises(StoreError, match=f"its tables are of version {revision}"):
        open_store()
    engine = open_database(database_url)
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == revision
        assert connection.execute(sa.text("SELECT count(*) FROM jobs")).scalar() == len(JOBS)
    engine.dispose()


def test_what_the_first_version_left_has_the_tables_of_a_new_database(
    database_url: str, open_store: OpenStore
) -> None:
    store = open_store()
    new = schema(store.engine)
    with store.engine.begin() as connection:
        metadata.drop_all(connection)
        connection.execute(sa.text("DROP TABLE alembic_version"))
    store.close()
    make_first_version(database_url)
    assert schema(open_store().engine) == new
    assert set(new) == {*metadata.tables, "alembic_version"}


def schema(engine: sa.Engine) -> dict[str, Any]:
    """Describe all tables, with the columns in their order."""
    found: dict[str, Any] = {}
    with engine.connect() as connection:
        inspector = sa.inspect(connection)
        for table in inspector.get_table_names():
            columns = [{**column, "type": str(column["type"])} for column in inspector.get_columns(table)]
            indexes = [
                {**index, "dialect_options": {name: str(value) for name, value in options.items()}}
                for index in inspector.get_indexes(table)
                for options in [index.get("dialect_options", {})]
            ]
            found[table] = [
                columns,
                sorted(indexes, key=lambda index: str(index["name"])),
                inspector.get_pk_constraint(table),
                inspector.get_foreign_keys(table),
                inspector.get_unique_constraints(table),
                inspector.get_check_constraints(table),
            ]
    return found


def test_the_jobs_that_the_first_version_wrote_are_read_whole(
    database_url: str, open_store: OpenStore
) -> None:
    make_first_version(database_url)
    store = open_store()
    assert [job.id for job in store.jobs("alice")] == [job_id for job_id, _, _ in reversed(JOBS)]
    for order, (job_id, state, sub_state) in enumerate(JOBS, 1):
        job = store.job("alice", job_id)
        assert job is not None
        assert (job.id, str(job.state), str(job.sub_state)) == (job_id, state, sub_state)
        assert (job.completed is not None) == job.state.ended
        assert (job.verdict is not None) == (sub_state in ("ENDING", "ENDED"))
        assert store.config(job_id) == {**JOB, "jobName": job_id}
        text = store.submitted_text(job_id)
        assert (text is not None and text.text.startswith("// 旧")) == (job_id == "queued")
        assert job.spec.task_roles[0].task_number == 2
        waits = sub_state == "DEPENDENCY_WAIT"
        assert (job.priority, job.retries.total) == (None, 1)
        assert job.eligible == (None if waits else 1000 + order)
        attempts = store.attempts(job_id)
        started = not waits and sub_state != "QUEUED"
        assert (job.overtaken, job.attained, job.uncounted) == ((3, 800, 80) if started else (0, 0, 0))
        assert [(attempt.number, len(attempt.tasks)) for attempt in attempts] == (
            [(0, 2), (1, 2)] if started else []
        )
        for attempt in attempts:
            ending = sub_state == "ENDING" and attempt.number == 1
            assert attempt.ending_until == (6000 if ending else None)
            task = attempt.tasks["main", 1]
            gpu = 2 * order + 1
            assert (task.assignment.node, task.assignment.gpus) == ("node-a", (gpu,))
            assert task.assignment.ports == {"http": (20000 + gpu,), "ssh": (30000 + gpu,)}
            assert task.held is None
        (told,) = store.job_events(job_id=job_id)
        assert str(told.entry.message) == "The job was submitted by alice."
    live = {job_id for job_id, _, sub_state in JOBS if sub_state != "ENDED"}
    assert {job.id for job in store.live_jobs()} == live
    assert store.waited_for() == {
        "waits-for-job": [
            Dependency("running", "running", On.SUCCEEDED),
            Dependency("failed", "failed", On.ENDED, True),
        ]
    }


def test_what_the_first_version_wrote_beside_jobs_is_read_whole(
    database_url: str, open_store: OpenStore
) -> None:
    make_first_version(database_url)
    store = open_store()
    assert len(store.name()) == 32
    assert store.fingerprints() == {"job-keys.key": "f00d"}
    assert store.forgotten() == [TaskRef("gone", 0, "main", 0)]
    vision = VirtualCluster("vision", 33.5, groups=("王",))
    assert store.virtual_clusters() == {"vision": vision, "speech": None}
    assert store.usages() == {("vision", "alice"): DecayedUsage(0.1 + 0.2, 1_764_000_000_001)}
    assert store.clock_mark()[0] == ClockMark("boot-1", 5000, 1_764_000_000_000)
    assert store.closed_nodes() == {"node-b": Closing("王", "a fan is loud", 7)}
    assert store.maintenance() == [Maintenance("disks", ("node-a", "b-*"), 20, 30, "disks", "王")]
    announced = Announcement("failed", "webhook", "alice", "https://hooks.lab/", 5000, {"name": "failed"})
    assert [waiting.announcement for waiting in store.due_announcements(5000, 9)] == [announced]
    ((key, added),) = store.public_keys("alice")
    assert (key.comment, added) == ("笔记本", 5)
    last = LastRun("nightly-20261125-0200", 11, RunOutcome.REFUSED, msg("There is no {name}.", name="vision"))
    nightly = Schedule("alice", "nightly", "0 2 * * *", "Asia/Shanghai", Overlap.SKIP, False, 1, 20, last)
    assert store.schedule("alice", "nightly") == (nightly, {"jobName": "报告"})


def test_a_core_takes_up_what_the_first_version_left(database_url: str, open_store: OpenStore) -> None:
    make_first_version(database_url)
    store = open_store()
    core = Core(Cluster([make_node("node-a", cpus=64, gpus={"P100": 32})]))
    outcome = core.restore(store.live_jobs(), dependencies=store.waited_for())
    assert set(core.jobs) == {job_id for job_id, _, sub_state in JOBS if sub_state != "ENDED"}
    store.commit(outcome, {})
    assert {job.id for job in store.live_jobs()} == set(core.jobs)


def test_many_that_start_at_once_on_one_postgresql_migrate_it_once(postgres_url: str) -> None:
    failures: list[Exception] = []
    names: list[str] = []
    ready = threading.Barrier(4)

    def start() -> None:
        ready.wait()
        try:
            store = Store(postgres_url)
            names.append(store.name())
            store.close()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    # the first migration gives the database a name
    assert len(names) == 4
    assert len(set(names)) == 1
