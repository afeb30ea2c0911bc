"""Judges what the Hub keeps: the secret of its cookies, and its database."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import jupyterhub
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from sqlalchemy.exc import SQLAlchemyError

from pai_scheduler.server.doctor.finding import Finding, good, note, wrong

from ..messages import msg
from .hub_configuration import HubConfiguration

_CONNECT_SECONDS = 10


def of_kept_files(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge the files and the database; nothing is made or changed."""
    yield _cookie_secret(hub)
    yield from _database(hub)


def _cookie_secret(hub: HubConfiguration) -> Finding:
    if hub.environ.get("JPY_COOKIE_SECRET") or hub.config.JupyterHub.get("cookie_secret"):
        return good(msg("The secret of cookies is in the configuration."))
    file = hub.file(str(hub.app.cookie_secret_file))
    try:
        secret, mode = file.read_text(errors="replace").strip(), file.stat().st_mode
    except FileNotFoundError:
        return note(msg("There is no {file} yet: the Hub makes it at its first start.", file=file))
    except OSError as error:
        return wrong(
            msg("The secret of cookies in {file} cannot be read: {error}", file=file, error=error.strerror),
            msg("Give the file to the account that runs the Hub."),
        )
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        return wrong(
            msg("Others may read the secret of cookies in {file}: the Hub does not start.", file=file),
            msg("{command}; then log everybody out by removing the file.", command=f"chmod 600 {file}"),
        )
    if not secret:
        return wrong(
            msg("The secret of cookies in {file} is empty.", file=file),
            msg("Remove the file: the Hub makes another, and everybody logs in anew."),
        )
    return good(msg("The secret of cookies in {file} is its owner's.", file=file))


def _database(hub: HubConfiguration) -> Iterator[Finding]:
    place = sa.make_url(str(hub.app.db_url))
    shown = place.render_as_string(hide_password=True)
    if place.get_backend_name() == "sqlite" and place.database and place.database != ":memory:":
        file = hub.file(place.database)
        if not file.exists():
            yield note(msg("There is no {file} yet: the Hub makes it at its first start.", file=file))
            return
        if _open_to_others(file):
            yield wrong(
                msg("Others may read the Hub's database {file}, with what logins are checked by.", file=file),
                msg("{command}", command=f"chmod 700 {file.parent}"),
            )
        # opened as it is: SQLite would make a missing one
        place = sa.make_url(f"sqlite:///file:{file}?mode=ro&uri=true")
        timeout = {}
    else:
        timeout = {"connect_timeout": _CONNECT_SECONDS}
    try:
        engine = sa.create_engine(place, connect_args=timeout)
        try:
            with engine.connect() as connection:
                there = sa.inspect(connection).has_table("alembic_version")
                version = (
                    connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
                    if there
                    else None
                )
        finally:
            engine.dispose()
    except (SQLAlchemyError, ImportError) as error:
        yield wrong(
            msg("The Hub's database {url} does not answer: {error}", url=shown, error=_first_line(error)),
            msg("See that it runs, that this machine reaches it, and that the account may log in."),
        )
        return
    needed = ScriptDirectory(str(Path(jupyterhub.__file__).parent / "alembic")).get_current_head()
    if version is None:
        yield note(msg("The Hub's database {url} is empty: the Hub fills it at its first start.", url=shown))
    elif version != needed:
        yield wrong(
            msg(
                "The Hub's database {url} is of another version of JupyterHub ({found} instead of {needed}).",
                url=shown,
                found=version,
                needed=needed,
            ),
            msg("Back it up, stop the Hub, then: {command}", command="jupyterhub upgrade-db --config FILE"),
        )
    else:
        yield good(msg("The Hub's database {url} answers, and is of this version.", url=shown))


def _open_to_others(file: Path) -> bool:
    """Whether other accounts read a file, as its own mode and those of the folders above it say."""
    return bool(file.stat().st_mode & stat.S_IROTH) and all(
        folder.stat().st_mode & stat.S_IXOTH for folder in file.resolve().parents
    )


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
