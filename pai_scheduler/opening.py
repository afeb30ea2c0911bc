"""Opens what a scheduler needs before it can start: its data folder, its port, its database."""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError
from tornado.netutil import bind_sockets

from .job.messages import Message, msg
from .store.store import Store, StoreError

#: in the data folder: the name of the PostgreSQL database whose tasks are in it
_OWNER = "database"


class StartError(Exception):
    """The scheduler cannot start; `message` says why and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


def database_url(given: str | None, environ: Mapping[str, str]) -> str | None:
    """Give the address of the PostgreSQL to use; None: the file in the data folder."""
    if given:
        try:
            password = sa.make_url(given).password
        except ArgumentError:
            password = None
        if password is not None:
            raise StartError(
                msg(
                    "The password of the database stands in the command line, where everybody on this "
                    "machine can read it. Put the address into the environment variable PAI_DATABASE_URL, "
                    "or the password into a file: --database 'postgresql://USER@HOST/DATABASE?passfile=FILE'."
                )
            )
    return given or environ.get("PAI_DATABASE_URL") or None


def lock_folder(folder: Path, *, shared: bool = False) -> IO[str]:
    """Take the data folder for ourselves, until the file that this gives is closed.

    `shared`: only against those who want it for themselves. Of several services on one PostgreSQL the lease
    says whose it is; one that is frozen would never give a lock back.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = open(folder / "lock", "a+", encoding="utf-8")  # noqa: SIM115 - the caller closes it
    except OSError as error:
        message = msg(
            "The data folder {folder} cannot be used: {reason}.", folder=folder, reason=error.strerror
        )
        raise StartError(message) from None
    try:
        fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        owner = lock.read().strip() or "?"
        lock.close()
        message = msg(
            "Another scheduler (process {pid}) uses the data folder {folder}. "
            "End it, or choose another --data-dir.",
            pid=owner,
            folder=folder,
        )
        raise StartError(message) from None
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def claim_folder(folder: Path, database: str) -> None:
    """Make the data folder that of a PostgreSQL database; StartError where it is another's.

    Whoever leads ends all tasks in its folder that its database does not know.
    """
    if (folder / "scheduler.sqlite").exists():
        message = msg(
            "The data folder {folder} has a database of its own (scheduler.sqlite), whose tasks would be "
            "ended. Choose another --data-dir.",
            folder=folder,
        )
        raise StartError(message)
    owner = folder / _OWNER
    if not owner.exists():
        owner.write_text(database)
    elif owner.read_text() != database:
        message = msg(
            "The data folder {folder} belongs to another PostgreSQL database, whose tasks would be ended. "
            "Choose another --data-dir.",
            folder=folder,
        )
        raise StartError(message)


def refuse_other_database(folder: Path) -> None:
    """StartError where the data folder is that of a PostgreSQL database."""
    if (folder / _OWNER).exists():
        message = msg(
            "The data folder {folder} belongs to a PostgreSQL database. Give its address with --database, "
            "or choose another --data-dir.",
            folder=folder,
        )
        raise StartError(message)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine reaches what listens at an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def listen(host: str, port: int) -> list[socket.socket]:
    """Open the port; StartError with one sentence where that is impossible."""
    try:
        return bind_sockets(port, host)
    except (OSError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            message = msg(
                "Port {port} of {host} is taken. Choose another one with --port.", port=port, host=host
            )
        else:
            message = msg(
                "Listening at {host}, port {port}, is impossible: {reason}.",
                host=host,
                port=port,
                reason=error,
            )
        raise StartError(message) from None


def open_embedded(data_dir: Path) -> Store:
    """Open the SQLite database in the data folder."""
    try:
        return Store.in_folder(data_dir)
    except (OSError, StoreError) as error:
        raise no_database(data_dir, error) from error


def no_database(where: str | Path, error: OSError | StoreError) -> StartError:
    """Say that a database cannot be used: the one in a data folder, or the one at an address."""
    reason: str | Message = error.reason if isinstance(error, StoreError) else str(error)
    if isinstance(where, Path):
        return StartError(
            msg("The database in {folder} cannot be used: {reason}.", folder=where, reason=reason)
        )
    try:
        shown = sa.make_url(where).render_as_string(hide_password=True)
    except ArgumentError:
        shown = where
    return StartError(msg("The database {url} cannot be used: {reason}.", url=shown, reason=reason))
