"""A PostgreSQL of the tests' own on loopback: Debian's, with a data folder, port and password of its own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from pai_scheduler.testing.ports import free_port
from tests.testbed.machine import CannotError, apt_install, say

_START_SECONDS = 60
#: a machine that dies takes the tests with it: nobody waits for the disk
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "32MB",
}


class Postgres:
    """One server. `password` is its superuser's, whose name is `pai`."""

    def __init__(self) -> None:
        self._programs = _programs()
        # root cannot run it, and pytest's own folders let nobody else in
        self._as: dict[str, Any] = {}
        self._folder = Path(tempfile.mkdtemp(prefix="pai-postgres-"))
        if os.geteuid() == 0:
            account = pwd.getpwnam("postgres")
            self._as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(self._folder, account.pw_uid, account.pw_gid)
        self.password = secrets.token_hex(8)
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._made = 0
        self._initialize()
        self.start()

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            if self._process is None or self._process.poll() is not None:
                # after a kill -9 its children may have the shared memory for a moment longer
                if time.monotonic() > deadline:
                    raise CannotError(f"PostgreSQL does not start: {self._last_line()}")
                with open(self._folder / "log", "ab") as log:
                    self._process = subprocess.Popen(
                        [self._programs / "postgres", "-D", self._data, "-p", str(self.port), *settings],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=log,
                        cwd="/",
                        **self._as,
                    )
            time.sleep(0.05)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """End it and wait: SIGINT cuts all sessions, SIGKILL is a crash."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        """End it and remove all that it had."""
        self.stop(signal.SIGQUIT)
        # its children write for a moment longer than itself
        for _ in range(50):
            shutil.rmtree(self._folder, ignore_errors=True)
            if not self._folder.exists():
                return
            time.sleep(0.1)
        say(f"{self._folder} could not be removed")

    def url(self, database: str) -> str:
        """Return a database's address, with the password."""
        return f"postgresql://pai:{self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """Make an empty database and return its address."""
        self._made += 1
        name = f"test_{self._made}"
        with self.connect() as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, even one in use."""
        name = url.rpartition("/")[2]
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))

    def connect(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        """Talk to it past the scheduler."""
        return psycopg.connect(self.url(database), autocommit=True, connect_timeout=10)

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _initialize(self) -> None:
        password = self._folder / "password"
        password.write_text(self.password)
        options = {
            "pgdata": self._data,
            "username": "pai",
            "auth": "scram-sha-256",
            "pwfile": password,
            "encoding": "UTF8",
            "locale": "C.UTF-8",
        }
        done = subprocess.run(
            [
                self._programs / "initdb",
                "--no-sync",
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            capture_output=True,
            cwd="/",
            **self._as,
        )
        if done.returncode != 0:
            raise CannotError(f"PostgreSQL cannot be set up: {done.stderr.decode(errors='replace')}")

    def _answers(self) -> bool:
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _last_line(self) -> str:
        return " ".join((self._folder / "log").read_text(errors="replace").strip().splitlines()[-1:])


def with_passfile(url: str, folder: Path) -> str:
    """Return a database's address with the password in a file of `folder`, as a command line wants it."""
    place = urlsplit(url)
    passfile = folder / "pgpass"
    passfile.write_text(f"*:*:*:*:{place.password}")
    passfile.chmod(0o600)
    return f"postgresql://{place.username}@{place.hostname}:{place.port}{place.path}?passfile={passfile}"


def _programs() -> Path:
    """Return the folder of Debian's server programs, which are not on the PATH; the newest version's."""
    if not (found := _installed()):
        apt_install({"/usr/lib/postgresql/*/bin/initdb": "postgresql"})
        found = _installed()
    if not found:
        raise CannotError("Debian's package postgresql brought no /usr/lib/postgresql/*/bin/initdb")
    return max(found, key=lambda path: int(path.parent.name))


def _installed() -> list[Path]:
    return [path.parent for path in Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb")]
