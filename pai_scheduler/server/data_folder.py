"""The scheduler's data folder: one scheduler works in it, and it belongs to one database."""

from __future__ import annotations

import fcntl
import hashlib
import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pai_scheduler.data_folder.durable_file import write_durably
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.store.store import DATABASE_FILE, Store

# Files of the data folder without which what runs is lost: they stay as they are as long as the database.
#
# The database remembers them by their fingerprints. One that is missing would be made anew in silence, and
# all that follows from it would be another: the keys and tokens of the tasks that run, the gateway's host
# key.

#: each, and what depends on it
_LOSSES: dict[str, Message] = {
    "job-keys.key": msg("nobody can log into the tasks that run, and SSH clients are warned of the gateway"),
    "job-tokens.key": msg("the tasks that run lose the storage"),
    "docker-instance": msg("the containers that run are not found any more"),
}


def check_kept_files(folder: Path, store: Store, *, new_keys: bool) -> None:
    """StartError where a file is not the one that the database remembers. `new_keys`: another is right too.

    StoreError: the database cannot be asked.
    """
    if new_keys:
        return
    known = store.fingerprints()
    for name, loss in _LOSSES.items():
        if name not in known:
            continue
        found = _fingerprint(folder / name)
        if found == known[name]:
            continue
        values = {"file": folder / name, "loss": loss}
        if found is None:
            message = msg(
                "The file {file} is missing; it was there when this database was last in use. Put it back "
                "from a backup. To go on with a new one, start once with --new-keys: then {loss}.",
                **values,
            )
        else:
            message = msg(
                "The file {file} is not the one that was there when this database was last in use. Put that "
                "back from a backup. To go on with this one, start once with --new-keys: then {loss}.",
                **values,
            )
        raise StartError(message)


def remember_kept_files(folder: Path, store: Store) -> None:
    """Record the files as they are in the database. StoreError: it cannot be written."""
    found = {name: _fingerprint(folder / name) for name in _LOSSES}
    there = {name: fingerprint for name, fingerprint in found.items() if fingerprint is not None}
    if there.items() - store.fingerprints().items():
        store.remember_fingerprints(there)


def _fingerprint(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


# The scheduler's data folder: one scheduler works in it, and it belongs to one database.
#
# The leader ends all tasks of its folder that its database does not know. A folder that was in use
# therefore remembers its database by name, and is not given to an empty one, nor to another.

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"

#: in the data folder: the kind and the name of the database whose tasks are in it
_OWNER = "database"
#: what only a scheduler that worked here leaves: files, and folders that have something in them
_TRACES = ("tasks", "ended", "logs", "holds", "job-keys.key", "job-tokens.key", "docker-instance", _OWNER)


@dataclass(frozen=True, slots=True)
class DatabaseOwner:
    """A database: SQLITE or POSTGRESQL, and the name that tells it from all others."""

    kind: str
    name: str


def lock_folder(folder: Path, *, shared: bool = False) -> ExitStack:
    """Take the data folder for ourselves, until what this gives is closed.

    `shared`: only against those who want it for themselves. Of several services on one PostgreSQL the lease
    says whose it is; one that is frozen would never give a lock back.
    """
    with ExitStack() as held:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # a file within could be removed, and the next scheduler would lock another
            itself = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            held.callback(os.close, itself)
            # says who has it; locked too, as earlier schedulers lock nothing else
            note = held.enter_context(open(folder / "lock", "a+", encoding="utf-8"))
        except OSError as error:
            message = msg(
                "The data folder {folder} cannot be used: {reason}.", folder=folder, reason=error.strerror
            )
            raise StartError(message) from None
        try:
            for descriptor in (itself, note.fileno()):
                fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            note.seek(0)
            message = msg(
                "Another scheduler (process {pid}) uses the data folder {folder}. "
                "End it, or choose another --data-dir.",
                pid=note.read().strip() or "?",
                folder=folder,
            )
            raise StartError(message) from None
        note.truncate(0)
        note.write(str(os.getpid()))
        note.flush()
        return held.pop_all()


def earlier_life(folder: Path) -> list[str]:
    """Name what a scheduler that worked in a folder has left there; empty: none did."""
    return [name for name in _TRACES if _has_something(folder / name)]


def owner_of(folder: Path) -> DatabaseOwner | None:
    """Return the database to which a folder belongs; None where it belongs to none yet."""
    try:
        words = (folder / _OWNER).read_text(encoding="utf-8").split()
    except FileNotFoundError:
        return None
    if not words:
        return None
    # earlier schedulers wrote the name alone, and only that of a PostgreSQL
    return DatabaseOwner(*words) if len(words) == 2 else DatabaseOwner(POSTGRESQL, words[0])


def refuse_other_kind(folder: Path, kind: str) -> None:
    """StartError where the data folder belongs to a database of the other kind."""
    owner = owner_of(folder)
    owners = owner.kind if owner is not None else None
    if kind == SQLITE and owners == POSTGRESQL:
        message = msg(
            "The data folder {folder} belongs to a PostgreSQL database. Give its address with --database, "
            "or choose another --data-dir.",
            folder=folder,
        )
        raise StartError(message)
    if kind == POSTGRESQL and (owners == SQLITE or (folder / DATABASE_FILE).exists()):
        message = msg(
            "The data folder {folder} has a database of its own (scheduler.sqlite), whose tasks would be "
            "ended. Choose another --data-dir.",
            folder=folder,
        )
        raise StartError(message)


def claim_folder(folder: Path, database: DatabaseOwner) -> None:
    """Make the data folder that of a database; StartError where it is another's."""
    refuse_other_kind(folder, database.kind)
    owner = owner_of(folder)
    if owner is None:
        write_durably(folder / _OWNER, f"{database.kind} {database.name}\n".encode())
    elif owner == database:
        return
    elif database.kind == POSTGRESQL:
        message = msg(
            "The data folder {folder} belongs to another PostgreSQL database, whose tasks would be ended. "
            "Choose another --data-dir.",
            folder=folder,
        )
        raise StartError(message)
    else:
        message = msg(
            "The database scheduler.sqlite is not the one to which the data folder {folder} belongs, whose "
            "tasks would be ended. Put the right one back, or a backup of it (pai-scheduler restore FILE), "
            "or choose another --data-dir.",
            folder=folder,
        )
        raise StartError(message)


def disown_folder(folder: Path) -> None:
    """Remove the note that ties the folder to its database, so that the next one gets it."""
    (folder / _OWNER).unlink(missing_ok=True)


def _has_something(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()
