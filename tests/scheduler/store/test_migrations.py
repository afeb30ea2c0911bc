from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import pai_scheduler.store.store as store_module
from pai_scheduler.store.store import Store, StoreError
from pai_scheduler.store.tables import HEAD, metadata


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store.in_folder(tmp_path).close()

    def refuse(*_: object) -> None:
        raise AssertionError("migrations were run")

    monkeypatch.setattr("alembic.command.upgrade", refuse)
    Store.in_folder(tmp_path).close()


def test_a_database_of_a_newer_scheduler_is_refused_with_a_sentence(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    store.close()
    with pytest.raises(StoreError, match="newer scheduler"):
        Store.in_folder(tmp_path)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "scheduler.sqlite").write_bytes(b"this is not a database, whatever it is" * 100)
    with pytest.raises(StoreError, match="not a database"):
        Store.in_folder(tmp_path)
