"""What stands around a gateway in the tests: a task's SSH server (Debian's, real) and a small service."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from pai_scheduler.ssh.gateway.protocol import TaskTarget
from pai_scheduler.ssh.keys import JobKeys, KeyPair
from pai_scheduler.testing.ports import free_port
from tests.testbed.machine import apt_install, as_root

CLIENTS = {
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "plink": "putty-tools",
    "psftp": "putty-tools",
    "lftp": "lftp",
    "rsync": "rsync",
}
KEYS = JobKeys(b"the secret of the gateway's tests")


class TaskServer:
    """OpenSSH's server as it is in a task: it knows `root` with the job's key."""

    def __init__(self, folder: Path, job: str = "job") -> None:
        apt_install(CLIENTS)
        self.identity, self.host_key = KEYS.identity(job), KEYS.host(job)
        self.port = free_port()
        self._folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        key = folder / "host_key"
        key.write_bytes(self.host_key.private)
        key.chmod(0o600)
        (folder / "authorized_keys").write_text(f"{self.identity.public}\n")
        (folder / "config").write_text(
            f"""
            ListenAddress 127.0.0.1
            Port {self.port}
            HostKey {key}
            AuthorizedKeysFile {folder}/authorized_keys
            StrictModes no
            UsePAM no
            PidFile none
            PrintMotd no
            PrintLastLog no
            PermitRootLogin yes
            GatewayPorts no
            MaxSessions 200
            MaxStartups 200
            AcceptEnv LANG LC_* PAI_SSH_SESSION
            # not the account's own startup files, which may do anything
            SetEnv HOME={folder}
            Subsystem sftp internal-sftp
            """
        )
        Path("/run/sshd").mkdir(exist_ok=True)
        sshd = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin") or "sshd"
        self._command = as_root(sshd, "-D", "-e", "-f", str(folder / "config"))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Listen."""
        with open(self._folder / "log", "ab") as log:
            self._process = subprocess.Popen(self._command, stderr=log, start_new_session=True)
        for _ in range(500):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            subprocess.run(["sleep", "0.02"])
        raise AssertionError((self._folder / "log").read_text())

    def end(self) -> None:
        """End it with all that it started, as the end of a task does."""
        process, self._process = self._process, None
        if process is None:
            return
        for pid in [*_descendants(process.pid), process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()

    def sessions(self) -> list[int]:
        """The processes that it has now."""
        return _descendants(self._process.pid) if self._process else []

    def target(self) -> TaskTarget:
        """What the service says of it."""
        return {
            "user": "alice",
            "job": "train",
            "task": "worker-0",
            "host": "127.0.0.1",
            "port": self.port,
            "privateKey": self.identity.private.decode(),
            "hostKey": self.host_key.public,
            "forward": ["localhost", "127.0.0.1", "::1", "worker-0"],
            "isolated": True,
        }


def _descendants(pid: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, new = [], [pid]
    while new:
        new = [child for parent in new for child in children.get(parent, ())]
        found += new
    return found


class StandIn:
    """A service that knows some users' keys and tokens, and remembers what it was asked."""

    def __init__(self, target: TaskTarget) -> None:
        self.token = KEYS.gateway_token()
        #: whom a credential proves, for which login names
        self.users: dict[str, str] = {"token-of-alice": "alice", "token-of-bob": "bob"}
        self.target = target
        #: what to answer to `open` instead
        self.refusal: tuple[int, str] | None = None
        self.away = False
        #: how many questions were not answered
        self.refused = 0
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self._news = asyncio.Condition()
        sockets = bind_sockets(0, "127.0.0.1")
        self.port = sockets[0].getsockname()[1]
        self._server = HTTPServer(Application([(r"/base/access/(\w+)", _Handler, {"service": self})]))
        self._server.add_sockets(sockets)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/base"

    def questions(self, what: str) -> list[dict[str, Any]]:
        return [body for asked, body in self.asked if asked == what]

    @property
    def notes(self) -> list[dict[str, Any]]:
        return self.questions("note")

    async def until(self, true: Callable[[], Any]) -> Any:
        """Wait until something is so."""
        async with self._news, asyncio.timeout(60):
            await self._news.wait_for(true)
        return true()

    async def heard(self, what: str, body: dict[str, Any]) -> None:
        async with self._news:
            self.asked.append((what, body))
            self._news.notify_all()

    async def refuse(self) -> None:
        async with self._news:
            self.refused += 1
            self._news.notify_all()

    async def close(self) -> None:
        self._server.stop()
        await self._server.close_all_connections()


class _Handler(RequestHandler):
    def initialize(self, service: StandIn) -> None:
        self._service = service

    async def post(self, what: str) -> None:
        service = self._service
        if self.request.headers["Authorization"] != f"Bearer {service.token}":
            self.set_status(401)
            self.set_header("WWW-Authenticate", "Bearer")
            return
        body = json.loads(self.request.body)
        if service.away:
            await service.refuse()
            self.set_status(503)
            return
        await service.heard(what, body)
        if what == "login":
            user = service.users.get(body["credential"])
            if user is None or not body["login"].startswith(user):
                self.set_status(401)
                self.finish({"code": "UnauthorizedUserError", "message": "no"})
            else:
                self.finish(
                    {"user": user, "by": "token", "session_token": f"session token of {body['login']}"}
                )
        elif what == "open":
            if service.refusal is not None:
                self.set_status(service.refusal[0])
                self.finish({"code": "x", "message": service.refusal[1]})
            else:
                self.finish(json.dumps(service.target))
        elif what == "still":
            users = [service.users.get(held["credential"]) for held in body["held"]]
            self.finish({"gone": [place for place, user in enumerate(users) if user is None]})
        else:
            self.set_status(204)


def write_key(path: Path, pair: KeyPair) -> Path:
    path.write_bytes(pair.private)
    path.chmod(0o600)
    path.with_suffix(".pub").write_text(f"{pair.public}\n")
    return path
