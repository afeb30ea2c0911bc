"""`pai-scheduler backup`, `check` and `restore`: an administrator's hand on the database."""

from __future__ import annotations

import argparse
import os
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pai_scheduler.data_folder.durable_file import sync_folder
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.store import sqlite_file
from pai_scheduler.store.migrate import FIRST, is_outdated
from pai_scheduler.store.store import DATABASE_FILE

from .components import database_url, without_password
from .data_folder import SQLITE, lock_folder, owner_of, refuse_other_kind

#: what SQLite has beside a database
_SUFFIXES = ("", "-wal", "-shm")


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Do what the command line asks for; return the exit code. StartError: why it is not done."""
    folder: Path = options.data_dir.expanduser().absolute()
    if (url := database_url(options.database, environ)) is not None:
        raise StartError(_FOR_POSTGRESQL[options.command](without_password(url)))
    refuse_other_kind(folder, SQLITE)
    match options.command:
        case "backup":
            backup(folder, options.file.expanduser().absolute())
        case "restore":
            restore(folder, options.file.expanduser().absolute())
        case _:
            return check(folder)
    return 0


def backup(folder: Path, target: Path) -> None:
    """Copy the database of a data folder to a file, also while its scheduler runs. StartError: not done."""
    source = database_in(folder)
    if target.is_dir() or (target.exists() and target.samefile(source)):
        raise StartError(msg("{file} cannot be the backup: give the name of a file of its own.", file=target))
    part = target.with_name(f"{target.name}.part")
    with _failing(source, target):
        sqlite_file.copy(source, part)
        if problems := sqlite_file.check(part, seconds=None).problems:
            part.unlink()
            raise StartError(
                msg(
                    "The database {file} is damaged ({problem}): it was not backed up, and what was at "
                    "{target} is as it was.",
                    file=source,
                    problem=problems[0],
                    target=target,
                )
            )
        _into_place(part, target)
    print(f"{source} is backed up to {target}.")
    print(f"Keep beside it, from {folder}: job-keys.key, job-tokens.key, docker-instance, and the storage.")


def check(folder: Path) -> int:
    """Read the whole database of a data folder and say what is damaged; 1 where something is."""
    source = database_in(folder)
    with _failing(source, source):
        problems = sqlite_file.check(source).problems
    for problem in problems:
        print(problem)
    if problems:
        print(f"{source} is damaged. Stop the scheduler, then: pai-scheduler restore FILE")
        return 1
    print(f"{source}: no damage was found.")
    return 0


def restore(folder: Path, source: Path) -> None:
    """Make a backup the database of a data folder, in which no scheduler may run. StartError: not done."""
    with lock_folder(folder), _failing(source, folder):
        if not source.exists():
            raise StartError(msg("There is no file {file}.", file=source))
        database = folder / DATABASE_FILE
        found = sqlite_file.identify(source)
        if found is None or (database.exists() and source.samefile(database)):
            raise StartError(msg("{file} is no backup of a scheduler's database.", file=source))
        if is_outdated(found.revision):
            raise StartError(
                msg(
                    "{file} is of a scheduler from before the first release, and its tables are of version "
                    "{found}, which this one cannot bring up to date. Restore it with an earlier scheduler "
                    "that brings it to version {first}, and start that one once.",
                    file=source,
                    found=found.revision,
                    first=FIRST,
                )
            )
        owner = owner_of(folder)
        if owner is not None and owner.name != found.name:
            raise StartError(
                msg(
                    "{file} is a backup of another database than the one to which {folder} belongs: all "
                    "tasks in that folder would be ended.",
                    file=source,
                    folder=folder,
                )
            )
        part = folder / f"{DATABASE_FILE}.part"
        sqlite_file.copy(source, part)
        if problems := sqlite_file.check(part).problems:
            part.unlink()
            raise StartError(
                msg("The backup {file} is damaged ({problem}).", file=source, problem=problems[0])
            )
        kept = _put_aside(database)
        _into_place(part, database)
    print(f"{database} is what {source} was.")
    if kept:
        print(f"What was there before is {kept}.")
    print(
        "Start the scheduler: it ends the tasks of jobs that came after the backup, and takes up the others."
    )


def database_in(folder: Path) -> Path:
    """Return the database of a data folder; StartError where there is none."""
    source = folder / DATABASE_FILE
    if not source.exists() or not source.stat().st_size:
        raise StartError(
            msg(
                "There is no database in {folder}. Choose the scheduler's folder with --data-dir.",
                folder=folder,
            )
        )
    return source


def _put_aside(database: Path) -> Path | None:
    """Move a database away, with what belongs to it; give where it is."""
    aside = database.with_name(f"{database.name}.before-{time.strftime('%Y%m%dT%H%M%S')}")
    moved = False
    for suffix in _SUFFIXES:
        part = database.with_name(database.name + suffix)
        if part.exists():
            part.rename(aside.with_name(aside.name + suffix))
            moved = True
    return aside if moved else None


def _into_place(part: Path, target: Path) -> None:
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    part.rename(target)
    sync_folder(target.parent)


@contextmanager
def _failing(source: Path, target: Path) -> Iterator[None]:
    """Return a sentence about what kept files from being read or written."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StartError(
            msg(
                "{source} cannot be read, or {target} not be written: {reason}.",
                source=source,
                target=target,
                reason=reason,
            )
        ) from error


def _backup_of_postgresql(url: str) -> Message:
    return msg(
        "The database is a PostgreSQL, whose own tool backs it up: "
        "pg_dump --format=custom --file=FILE '{url}'",
        url=url,
    )


def _check_of_postgresql(url: str) -> Message:
    return msg("The database is a PostgreSQL, whose own tool checks it: pg_amcheck '{url}'", url=url)


def _restore_of_postgresql(url: str) -> Message:
    return msg(
        "The database is a PostgreSQL, whose own tool restores it. Stop every scheduler that uses it, then: "
        "pg_restore --clean --if-exists --dbname='{url}' FILE",
        url=url,
    )


_FOR_POSTGRESQL = {
    "backup": _backup_of_postgresql,
    "check": _check_of_postgresql,
    "restore": _restore_of_postgresql,
}
