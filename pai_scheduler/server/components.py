"""Parts of a scheduler that are made of its options: configuration, port, users, storage, database."""

from __future__ import annotations

import argparse
import asyncio
import errno
import getpass
import ipaddress
import logging
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import sqlalchemy as sa
import yaml
from sqlalchemy.exc import ArgumentError
from tornado.netutil import bind_sockets

from pai_scheduler.api.auth import Authenticator, MonitoringToken, TokensFile
from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import Definition, parse_definition
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.storage.factory import choose_storage
from pai_scheduler.storage.paths import StorageError
from pai_scheduler.storage.protocol import Storage
from pai_scheduler.store.database import Trouble
from pai_scheduler.store.lease import Lease
from pai_scheduler.store.store import DATABASE_FILE, EmptyDatabaseError, Store, StoreError

from .data_folder import (
    POSTGRESQL,
    SQLITE,
    DatabaseOwner,
    claim_folder,
    disown_folder,
    earlier_life,
    refuse_other_kind,
)

# Says in a sentence why a YAML file of an administrator cannot be read.

#: What reading such a file raises; ValueError: text that is not UTF-8, a date that there is not (2026-13-01).
UNREADABLE = (OSError, ValueError, yaml.YAMLError)


def explain(error: OSError | ValueError | yaml.YAMLError) -> Message | str:
    """Return what is wrong, with the place where it is known."""
    match error:
        case OSError():
            return error.strerror or str(error)
        case UnicodeDecodeError():
            return msg("it is not UTF-8 text")
        case yaml.MarkedYAMLError():
            mark = error.problem_mark
            line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
            return msg(
                "line {line}, column {column}: {problem}", line=line, column=column, problem=error.problem
            )
    return str(error)


# Reads what an administrator has written: the cluster file, and where the storage is.

#: The folder of users' files in the data folder, where no storage is named.
STORAGE_FOLDER = "storage"


def read_cluster(path: Path) -> Definition:
    """Read a cluster file; StartError with file and place where it is wrong."""
    try:
        return parse_definition(yaml.safe_load(path.read_text(encoding="utf-8")))
    except UNREADABLE as error:
        reason: object = explain(error)
    except DefinitionError as error:
        reason = msg("{path}: {reason}", path=error.path, reason=error.message)
    raise StartError(msg("The cluster file {file} cannot be used: {reason}", file=path, reason=reason))


def make_storage(options: argparse.Namespace, data_dir: Path) -> Storage:
    """Return the storage that the options name, which is not started; StartError."""
    try:
        return choose_storage(
            options.storage,
            data_dir / STORAGE_FOLDER,
            account=storage_account(options),
            kerberos=options.storage_kerberos,
        )
    except StorageError as error:
        raise StartError(msg("The storage cannot be used: {reason}", reason=error.message)) from error


def storage_account(options: argparse.Namespace) -> str:
    """Return as whom an HDFS knows the scheduler."""
    return options.storage_user or getpass.getuser()


# Who uses it, and where the Hub reaches it.


@dataclass(frozen=True, slots=True)
class HubPlace:
    """Path prefix and address at which the Hub reaches this service."""

    prefix: str
    host: str | None
    port: int | None


def hub_place(environ: Mapping[str, str]) -> HubPlace:
    """Read where the Hub put us; a place at `/` where we are no service of a Hub.

    A notebook server has some of the same variables, but no service name.
    """
    if not environ.get("JUPYTERHUB_SERVICE_NAME"):
        return HubPlace("/", None, None)
    prefix = environ.get("JUPYTERHUB_SERVICE_PREFIX", "/").strip("/")
    url = urlsplit(environ.get("JUPYTERHUB_SERVICE_URL", ""))
    return HubPlace(f"/{prefix}/" if prefix else "/", url.hostname, url.port)


def make_authenticator(options: argparse.Namespace) -> Authenticator:
    """Return who knows the users: a file of tokens, or the Hub; StartError."""
    if options.tokens is not None:
        return TokensFile(options.tokens)
    if os.environ.get("JUPYTERHUB_API_TOKEN") and os.environ.get("JUPYTERHUB_SERVICE_NAME"):
        try:
            from pai_scheduler.api.hub_auth import HubTokens  # brings half of JupyterHub
        except ModuleNotFoundError as error:
            raise StartError(
                msg(
                    "As a service of JupyterHub the scheduler needs the library {library}: "
                    "pip install '{package}'",
                    library=error.name,
                    package="pai-for-jupyter[hub]",
                )
            ) from error
        return HubTokens.from_environment(options.admin_service)
    raise StartError(
        msg(
            "Who may use the scheduler? Give --tokens FILE, or start it as a service of JupyterHub. "
            "A file with one administrator is made by: {command}",
            command="""python3 -c 'import json, secrets, getpass as g; print(json.dumps("""
            """{secrets.token_hex(16): {"name": g.getuser(), "admin": True}}))' > tokens.json""",
        )
    )


def read_monitoring_token(path: Path | None) -> MonitoringToken | None:
    """Return the token of a monitoring system, where there is a file of it; TokensError."""
    if path is None:
        return None
    token = MonitoringToken(path)
    token.read()
    return token


# Opens what a scheduler needs before it can start: its port and its database.

#: Seconds that the look for damage may take from a start.
CHECK_SECONDS = 10.0

_log = logging.getLogger(__name__)
#: Processes of a kind at most.
MOST_PROCESSES = 1024


def database_url(given: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the address of the PostgreSQL to use; None: the file in the data folder."""
    if given:
        try:
            password = sa.make_url(given).password
        except ArgumentError:
            password = None
        if password is not None:
            raise StartError(
                msg(
                    "The password of the database stands in the command line, or in the settings file, where "
                    "others can read it. Put the address into the environment variable PAI_DATABASE_URL, "
                    "or the password into a file: --database 'postgresql://USER@HOST/DATABASE?passfile=FILE'."
                )
            )
    return given or environ.get("PAI_DATABASE_URL") or None


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens at an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def near(host: str) -> str:
    """Return where this machine itself reaches what listens at an address, which may stand for all."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound


def check_range(option: str, value: int | None, least: int, most: int) -> None:
    """Refuse the value of an option that lies outside; StartError. None: none was given."""
    if value is not None and not least <= value <= most:
        raise StartError(
            msg("{option} must be from {least} to {most}.", option=option, least=least, most=most)
        )


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


def open_store(
    folder: Path, url: str | None = None, lease: Lease | None = None, *, start_empty: bool = False
) -> Store:
    """Open the database to which a data folder belongs: the PostgreSQL at `url`, or the file in the folder.

    StartError where that is not possible, or the folder was in use and its database is another one or empty;
    `start_empty`: it is empty on purpose.
    """
    kind = SQLITE if url is None else POSTGRESQL
    refuse_other_kind(folder, kind)
    try:
        try:
            store = _open(folder, url, lease, may_be_empty=False)
        except EmptyDatabaseError:
            if (traces := earlier_life(folder)) and not start_empty:
                raise _lost_database(folder, url, traces) from None
            disown_folder(folder)
            store = _open(folder, url, lease, may_be_empty=True)
        else:
            if start_empty:
                _log.warning("the database is not empty: leave --start-empty out, it is for one start only")
        try:
            claim_folder(folder, DatabaseOwner(kind, store.name()))
        except BaseException:
            store.close()
            raise
    except (OSError, StoreError) as error:
        raise no_database(url or folder, error) from error
    return store


@asynccontextmanager
async def looked_through(store: Store) -> AsyncIterator[asyncio.Future[None]]:
    """Look for damage of a store beside what else is done; it is waited for, whatever happens meanwhile.

    Gives what is done when the look is; StoreError in it: the database cannot be read.
    """
    looked = asyncio.ensure_future(asyncio.to_thread(store.look_for_damage, CHECK_SECONDS))
    try:
        yield looked
    finally:
        await asyncio.gather(looked, return_exceptions=True)


def _open(folder: Path, url: str | None, lease: Lease | None, *, may_be_empty: bool) -> Store:
    if url is None:
        return Store.in_folder(folder, may_be_empty=may_be_empty)
    return Store(url, lease, may_be_empty=may_be_empty)


def _lost_database(folder: Path, url: str | None, traces: Sequence[str]) -> StartError:
    database = folder / DATABASE_FILE if url is None else without_password(url)
    return StartError(
        msg(
            "The data folder {folder} was in use (it has: {traces}), but its database {database} is missing "
            "or empty: every job would be forgotten, and all tasks that run would be ended. Put the database "
            "back, or restore a backup of it. To give all of that up, start once with --start-empty.",
            folder=folder,
            traces=", ".join(traces),
            database=database,
        )
    )


def no_database(where: str | Path, error: OSError | StoreError) -> StartError:
    """Return the error that a database cannot be used: one in a data folder, or at an address."""
    reason: str | Message = error.reason if isinstance(error, StoreError) else str(error)
    if isinstance(where, Path) and isinstance(error, StoreError) and error.trouble is Trouble.DAMAGED:
        return StartError(
            msg(
                "The database in {folder} is damaged: {reason}. Restore a backup (pai-scheduler restore "
                "FILE). To give up every job, and end all tasks that run, move scheduler.sqlite away and "
                "start once with --start-empty.",
                folder=where,
                reason=reason,
            )
        )
    if isinstance(where, Path):
        return StartError(
            msg("The database in {folder} cannot be used: {reason}.", folder=where, reason=reason)
        )
    return StartError(
        msg("The database {url} cannot be used: {reason}.", url=without_password(where), reason=reason)
    )


def without_password(url: str) -> str:
    """Return an address without its password."""
    try:
        return sa.make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return url
