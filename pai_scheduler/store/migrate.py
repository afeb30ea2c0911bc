"""Brings a database up to the present schema."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sqlalchemy as sa

from pai_scheduler.i18n import msg

from .database import StoreError
from .tables import HEAD

#: the first migration, that of the first release; what came before it is in it
FIRST = "0017"

#: of PostgreSQL's advisory locks: who migrates; any number that nobody else uses
_LOCK = 0x50414901


class EmptyDatabaseError(StoreError):
    """The database has nothing in it, not even tables."""

    def __init__(self) -> None:
        super().__init__(msg("it is empty"))


def is_outdated(found: str) -> bool:
    """Return whether a database is older than the first migration: nothing leads from it to this version."""
    # (they are numbers of four digits)
    return found < FIRST


def refuse_outdated(found: str, backend: str) -> None:
    """StoreError where a database, of SQLAlchemy's `backend`, is older than the first migration."""
    if not is_outdated(found):
        return
    if backend == "postgresql":
        raise StoreError(
            msg(
                "it was written before the first release, and its tables are of version {found}, which this "
                "scheduler cannot bring up to date; start it once with an earlier scheduler that brings it "
                "to version {first}, or give up its jobs and begin with an empty database and an empty data "
                "folder",
                found=found,
                first=FIRST,
            )
        )
    raise StoreError(
        msg(
            "it was written before the first release, and its tables are of version {found}, which this "
            "scheduler cannot bring up to date; start it once with an earlier scheduler that brings it to "
            "version {first}, or give up its jobs and begin with an empty data folder",
            found=found,
            first=FIRST,
        )
    )


def migrate(
    engine: sa.Engine, guard: Callable[[sa.Connection], object], *, may_be_empty: bool = True
) -> None:
    """Run the migrations that a database lacks, all or none; two at once wait for each other.

    `guard` is called within the transaction. StoreError: a newer scheduler wrote the database, or one from
    before the first release, or it is empty and may not be.
    """
    found = revision(engine)
    if found == HEAD:
        return
    if found is None and not may_be_empty:
        raise EmptyDatabaseError
    if found is not None:
        refuse_outdated(found, engine.dialect.name)
    # a good part of a start: most find the schema as it should be
    from alembic import command
    from alembic.config import Config
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))
        guard(connection)
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, "head")
        except CommandError as error:
            raise StoreError(msg("it was written by a newer scheduler; install that one")) from error


def is_known(found: str) -> bool:
    """Return whether this version has a migration; one that it lacks is of a newer scheduler."""
    # (there is one file for each, which begins with its name)
    return any(Path(__file__).with_name("migrations").glob(f"versions/{found}_*.py")) or found == HEAD


def revision(engine: sa.Engine) -> str | None:
    """Return the newest migration that a database has; None for an empty one."""
    with engine.connect() as connection:
        if not sa.inspect(connection).has_table("alembic_version"):
            return None
        return connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
