"""What `make run` decides (addresses, ports, secrets), for `jupyterhub_config.py` to read."""

from __future__ import annotations

import json
import os
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path

#: Characters that JupyterHub asks of a shared password.
LEAST_PASSWORD = 8
#: … and of that of administrators.
LEAST_ADMIN_PASSWORD = 32
_SECRET_BYTES = 32
#: None that is easily taken for another.
_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
#: The ports tried first: those of the Hub's inner parts, which nothing that outlives the Hub knows, and the
#: SSH gateway's, which users write down.
_USUAL_PORTS = {
    "PAI_HUB_PORT": 8081,
    "PAI_PROXY_API_PORT": 8001,
    "PAI_SCHEDULER_PORT": 9186,
    "PAI_SESSIONS_PORT": 9187,
    "PAI_CONSOLE_PORT": 9188,
    "PAI_SSH_PORT": 2222,
}


class CannotStart(Exception):
    """Why the Hub is not started, and what to do: one sentence or two."""


@dataclass(frozen=True, slots=True)
class Settings:
    """One installation: where it keeps everything, what it runs on, and its public address."""

    folder: Path
    engine: str
    cluster: Path | None
    port: int
    password: str
    #: where users' files are, as `pai-scheduler --storage` has it; empty: in a folder of the scheduler's
    storage: str = ""
    #: the account with which the scheduler works on an HDFS; empty: the one that runs it
    storage_user: str = ""
    #: more of the scheduler's options, as a shell has them
    scheduler_options: str = ""
    #: the image of notebook servers; empty: the one built on this machine
    notebook_image: str = ""
    #: what holds for running notebook servers; empty: the file that comes with this configuration
    sessions: Path | None = None
    #: the rest of the scheduler's settings; empty: the file that comes with this configuration
    scheduler_file: Path | None = None
    #: the Hub's configuration; empty: the one that comes with this
    config: Path | None = None
    #: administrators of the Hub, by their names
    administrators: tuple[str, ...] = ()
    #: with which they log in, and nobody else
    admin_password: str = ""

    @property
    def url(self) -> str:
        """Return the address to open in a browser."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def scheduler_folder(self) -> Path:
        """Return the scheduler's data folder."""
        return self.folder / "scheduler"

    def environment(self) -> dict[str, str]:
        """Write what `jupyterhub_config.py` reads; makes the secrets and chooses the inner ports."""
        return {
            **self.decided(),
            "PAI_SPAWNER_TOKEN": kept_secret(self.folder / "secrets" / "spawner-token"),
            "CONFIGPROXY_AUTH_TOKEN": kept_secret(self.folder / "secrets" / "proxy-token"),
            **{name: str(port) for name, port in inner_ports(self.folder / "ports.json", self.port).items()},
        }

    def decided(self) -> dict[str, str]:
        """Write what follows from these settings alone."""
        return {
            "PAI_RUN_FOLDER": str(self.folder),
            "PAI_ENGINE": self.engine,
            "PAI_CLUSTER": str(self.cluster or ""),
            "PAI_STORAGE": self.storage,
            "PAI_STORAGE_USER": self.storage_user,
            "PAI_SCHEDULER_OPTIONS": self.scheduler_options,
            **({"PAI_SESSIONS_FILE": str(self.sessions)} if self.sessions else {}),
            **({"PAI_SCHEDULER_FILE": str(self.scheduler_file)} if self.scheduler_file else {}),
            "PAI_ADMINISTRATORS": " ".join(self.administrators),
            "PAI_ADMIN_PASSWORD": self.admin_password if self.administrators else "",
            **({"PAI_NOTEBOOK_IMAGE": self.notebook_image} if self.notebook_image else {}),
            "PAI_PORT": str(self.port),
            "PAI_PASSWORD": self.password,
        }


def kept_secret(path: Path) -> str:
    """Read a secret, or make it: readable by its owner only, and the same after a restart.

    CannotStart: it is not what was made; an empty one would be a secret that everybody knows.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not path.exists():
        part = path.with_name(path.name + ".part")
        part.touch(mode=0o600)
        part.write_text(secrets.token_hex(_SECRET_BYTES))
        part.rename(path)
    secret = path.read_text()
    if len(secret) != 2 * _SECRET_BYTES:
        raise CannotStart(
            f"The secret in {path} is damaged: it has {len(secret)} characters instead of "
            f"{2 * _SECRET_BYTES}. Put it back from a backup, or remove the file: another is made then."
        )
    return secret


def inner_ports(path: Path, public_port: int) -> dict[str, int]:
    """Choose a free port for each name: the one of the last start, else the usual one, else any."""
    last: dict[str, int] = json.loads(path.read_text()) if path.exists() else {}
    ports: dict[str, int] = {}
    for name, usual_port in _USUAL_PORTS.items():
        taken = {public_port, *ports.values()}
        wanted = (last.get(name, usual_port), usual_port, 0, 0, 0)
        ports[name] = next(port for port in map(_free, wanted) if port and port not in taken)
    path.write_text(json.dumps(ports))
    return ports


def port_is_free(port: int) -> bool:
    """Return whether this machine's loopback address has the port free."""
    return bool(_free(port))


def _free(port: int) -> int:
    """Return the port (0: any) when it is free, else 0."""
    with socket.socket() as probe:
        # as servers do: a port whose last connections are only just closed is free
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return 0
        return int(probe.getsockname()[1])


def new_password() -> str:
    """Make the shared password of one run, unless `PASSWORD` sets it."""
    return os.environ.get("PASSWORD") or _words(3)


def new_admin_password() -> str:
    """Make the administrators' password of one run, unless `ADMIN_PASSWORD` sets it."""
    return os.environ.get("ADMIN_PASSWORD") or _words(7)


def _words(number: int) -> str:
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(number))
