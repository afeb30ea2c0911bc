"""The Hub's configuration as the Hub itself would read it, without starting anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from jupyterhub.app import JupyterHub
from traitlets import TraitError
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from pai_scheduler.i18n import Message

from ..messages import msg

_PROXY_API = "http://127.0.0.1:8001"


class ConfigurationError(Exception):
    """The Hub does not start with this configuration; `message` says why."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where the proxy is told its routes, with which token, and whether the Hub starts it."""

    api_url: str
    token: str
    started_by_hub: bool


@dataclass(frozen=True, slots=True)
class HubConfiguration:
    """What a configuration says. `folder`: the Hub's working folder, from which files are named."""

    config: Config
    app: Any
    folder: Path
    environ: Mapping[str, str]

    @property
    def public_url(self) -> str:
        """Where the proxy listens, as this machine reaches it; no slash at the end."""
        return _reachable(str(self.app.bind_url))

    @property
    def api_url(self) -> str:
        """Where the Hub itself answers, past the proxy; no slash at the end."""
        place = urlsplit(_reachable(str(self.app.hub_bind_url)))
        return f"{place.scheme}://{place.netloc}{self.app.base_url}hub/api"

    @property
    def engine(self) -> str:
        """The scheduler's engine: process, docker or swarm."""
        return self._of_scheduler("--engine") or self.environ.get("PAI_ENGINE") or "process"

    @property
    def starts_scheduler(self) -> bool:
        """Whether the scheduler is started by the Hub, so that its command says what it is given."""
        return bool(self.service("pai").get("command"))

    @property
    def cluster_file(self) -> Path | None:
        """The scheduler's cluster file; None: there is none, or the Hub does not know it."""
        name = self._of_scheduler("--cluster") or self.environ.get("PAI_CLUSTER")
        return self.file(name) if name else None

    @property
    def cluster(self) -> Mapping[str, Any]:
        """What stands in the cluster file; nothing where it cannot be read, which is said elsewhere."""
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
        """What is said of a service of the Hub; empty where there is none of that name."""
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
    """Whether only this machine reaches what listens at an address."""
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
