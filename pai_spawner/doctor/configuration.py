"""Checks of the Hub's configuration: logins, the secret of its cookies, its database."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import jupyterhub
import sqlalchemy as sa
import yaml
from alembic.script import ScriptDirectory
from jupyterhub.app import JupyterHub
from jupyterhub.auth import DummyAuthenticator
from jupyterhub.authenticators.shared import SharedPasswordAuthenticator
from sqlalchemy.exc import SQLAlchemyError
from traitlets import TraitError
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from pai_scheduler.i18n import Message
from pai_scheduler.server.doctor.finding import Finding, good, note, wrong

from ..messages import msg

# The Hub's configuration as the Hub itself would read it, without starting anything.

_PROXY_API = "http://127.0.0.1:8001"


class ConfigurationError(Exception):
    """The Hub does not start with this configuration; `message` says why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class Proxy:
    """The proxy's API endpoint, its token, and whether the Hub starts the proxy."""

    api_url: str
    token: str
    started_by_hub: bool


@dataclass(frozen=True, slots=True)
class HubConfiguration:
    """The Hub's configuration. `folder`: the Hub's working directory, to which file names are relative."""

    config: Config
    app: Any
    folder: Path
    environ: Mapping[str, str]

    @property
    def public_url(self) -> str:
        """Return the proxy's URL, as reachable from this machine; no slash at the end."""
        return _reachable(str(self.app.bind_url))

    @property
    def api_url(self) -> str:
        """Return the URL of the Hub's own API, bypassing the proxy; no slash at the end."""
        place = urlsplit(_reachable(str(self.app.hub_bind_url)))
        return f"{place.scheme}://{place.netloc}{self.app.base_url}hub/api"

    @property
    def engine(self) -> str:
        """The scheduler's engine: process, docker or swarm."""
        return self._of_scheduler("--engine") or self.environ.get("PAI_ENGINE") or "process"

    @property
    def starts_scheduler(self) -> bool:
        """Return whether the Hub starts the scheduler, so that its command shows its options."""
        return bool(self.service("pai").get("command"))

    @property
    def cluster_file(self) -> Path | None:
        """The scheduler's cluster file; None: there is none, or the Hub does not know it."""
        name = self._of_scheduler("--cluster") or self.environ.get("PAI_CLUSTER")
        return self.file(name) if name else None

    @property
    def cluster(self) -> Mapping[str, Any]:
        """Return the content of the cluster file; empty if it cannot be read (reported elsewhere)."""
        try:
            text = self.cluster_file.read_text(encoding="utf-8") if self.cluster_file else ""
            document = yaml.safe_load(text)
        except (OSError, UnicodeDecodeError, yaml.YAMLError):
            return {}
        return document if isinstance(document, Mapping) else {}

    @property
    def proxy(self) -> Proxy | None:
        """JupyterHub's usual proxy; None: it is another one."""
        if self.app.proxy_class.__name__ != "ConfigurableHTTPProxy":
            return None
        said = self.config.ConfigurableHTTPProxy
        token = said.get("auth_token") or self.environ.get("CONFIGPROXY_AUTH_TOKEN", "")
        url = str(said.get("api_url") or _PROXY_API).rstrip("/")
        return Proxy(url, str(token), bool(said.get("should_start", True)))

    def service(self, name: str) -> Mapping[str, Any]:
        """Return the configuration of a Hub service; empty where there is none of that name."""
        return next((service for service in self.app.services if service.get("name") == name), {})

    def file(self, name: str) -> Path:
        """A file that the configuration names."""
        return self.folder / name

    def _of_scheduler(self, option: str) -> str:
        """Return what an option of the scheduler's command is; empty: it has none."""
        command = [str(word) for word in self.service("pai").get("command", [])]
        return command[command.index(option) + 1] if option in command[:-1] else ""


def read_configuration(file: Path, folder: Path, environ: Mapping[str, str]) -> HubConfiguration:
    """Run a configuration file, as the Hub does at its start; ConfigurationError."""
    loader = PyFileConfigLoader(file.name, path=str(file.parent))
    try:
        config = loader.load_config()
        app = JupyterHub(config=config)
        # (traits say what is wrong when they are asked for)
        for name in ("bind_url", "hub_bind_url", "authenticator_class", "proxy_class", "services", "db_url"):
            getattr(app, name)
    except KeyError as error:
        raise ConfigurationError(msg("It needs {name}, which is not set.", name=error)) from error
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, TraitError | SystemExit) else f"{type(error).__name__}: "
        raise ConfigurationError(msg("{error}", error=f"{kind}{error}")) from error
    return HubConfiguration(config, app, folder, environ)


def is_loopback(url: str) -> bool:
    """Return whether an address is reachable from this machine only."""
    host = urlsplit(url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


def _reachable(url: str) -> str:
    """Return an address without what stands for all of this machine's."""
    place = urlsplit(url)
    host = place.hostname or ""
    if host in ("", "0.0.0.0", "::", "*"):  # noqa: S104 - asked, not listened at
        host = "127.0.0.1"
    port = f":{place.port}" if place.port else ""
    return f"{place.scheme}://{f'[{host}]' if ':' in host else host}{port}{place.path}".rstrip("/")


# Judges what the Hub keeps: the secret of its cookies, and its database.

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
    """Return whether other accounts may read a file, by its own mode and those of the folders above it."""
    return bool(file.stat().st_mode & stat.S_IROTH) and all(
        folder.stat().st_mode & stat.S_IXOTH for folder in file.resolve().parents
    )


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


# Judges who may log in, and with what.


def of_logins(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge the authenticator. What it is told is read, nobody logs in."""
    kind = hub.app.authenticator_class
    everybody = issubclass(kind, DummyAuthenticator | SharedPasswordAuthenticator)
    public = str(hub.app.public_url or hub.app.subdomain_host)
    shared = not is_loopback(hub.app.bind_url) or bool(public and not is_loopback(public))
    if everybody and shared:
        yield wrong(
            msg(
                "Others reach the Hub at {url}, and everybody logs in with one password, or none ({name}).",
                url=public or hub.app.bind_url,
                name=kind.__name__,
            ),
            msg("Take an authenticator that knows who people are: hub_config/variants has some."),
        )
    elif everybody:
        yield note(
            msg(
                "Everybody logs in with one password, or none ({name}), on this machine only.",
                name=kind.__name__,
            )
        )
    else:
        yield good(msg("People log in by {name}.", name=kind.__name__))
    try:
        authenticator: Any = kind(config=hub.config)
        nobody = not (authenticator.any_allow_config or authenticator.admin_users)
    except Exception as error:
        yield wrong(
            msg("The login cannot be set up: {error}", error=error),
            msg("Correct what c.{name} says.", name=kind.__name__),
        )
        return
    if nobody:
        yield wrong(
            msg("Nobody may log in."),
            msg("Set c.Authenticator.allowed_users, allowed_groups, or allow_all = True."),
        )
    # (who alone knows the password of this machine's own Hub has nobody to fear)
    if (shared or not everybody) and _admits_several(authenticator) and not hub.app.subdomain_host:
        yield note(
            msg(
                "Several people may log in, and their servers share one host name with the console and the "
                "Hub's administration: a page in one server can act for whoever opens it, administrators too."
            ),
            msg("Give each server a host name of its own: hub_config/variants/subdomains.py."),
        )


#: Traits of authenticators that begin with "allow" and say nothing of further people.
_NO_MORE_PEOPLE = frozenset({"allowed_users", "allow_existing_users"})


def _admits_several(authenticator: Any) -> bool:
    """Return whether more than one person may log in."""
    allowed = [name for name in authenticator.trait_names() if name.startswith("allow")]
    return len(authenticator.allowed_users | authenticator.admin_users) > 1 or any(
        getattr(authenticator, name) for name in allowed if name not in _NO_MORE_PEOPLE
    )
