"""A gateway that runs, and how clients are run that nobody here wrote."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncssh

from pai_scheduler.ssh.gateway.protocol import GatewaySettings
from pai_scheduler.ssh.gateway.supervisor import GatewaySupervisor
from pai_scheduler.ssh.keys import KeyPair
from tests.scheduler.ssh.gateway.stand_in import KEYS, StandIn, write_key


@dataclass(frozen=True)
class Ran:
    """What a command gave."""

    code: int
    out: bytes
    error: str


class Gate:
    """A gateway that runs, and how clients reach it as alice with her key."""

    def __init__(self, service: StandIn, folder: Path) -> None:
        self.service = service
        self.folder = folder
        pair = KeyPair.from_seed(b"a" * 32)
        self.key = write_key(folder / "key", pair)
        service.users[pair.public] = "alice"
        settings = GatewaySettings(
            service.url, service.token, KEYS.gateway_host().private.decode(), log_level="debug", recheck=0.1
        )
        self.supervisor = GatewaySupervisor(settings, "127.0.0.1", 0, processes=1)
        self.known_hosts = folder / "known_hosts"

    async def start(self) -> None:
        # its processes log where this one does
        kept = os.dup(2)
        log = os.open(self.folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 2)
        os.close(log)
        try:
            await self.supervisor.start()
            await asyncio.sleep(0)
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {KEYS.gateway_host().public}\n")

    def log(self) -> str:
        """Return what its processes have logged."""
        return (self.folder / "log").read_text()

    async def close(self) -> None:
        """End it, and wait until its processes have told the service what is left to tell."""
        processes = self.supervisor.process_ids
        await self.supervisor.close()
        async with asyncio.timeout(60):
            while any(Path(f"/proc/{pid}").exists() for pid in processes):  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    @property
    def port(self) -> int:
        return self.supervisor.port

    @property
    def options(self) -> list[str]:
        """What OpenSSH's programs are told."""
        settings = {
            "UserKnownHostsFile": self.known_hosts,
            "GlobalKnownHostsFile": "none",
            "StrictHostKeyChecking": "yes",
            "IdentityFile": self.key,
            "IdentitiesOnly": "yes",
            "BatchMode": "yes",
            "LogLevel": "ERROR",
        }
        return ["-F", "none", *(f"-o{name}={value}" for name, value in settings.items())]

    @asynccontextmanager
    async def connect(
        self, login: str = "alice+train+worker-0"
    ) -> AsyncIterator[asyncssh.SSHClientConnection]:
        """Log in with asyncssh, which takes every answer literally."""
        async with asyncssh.connect(
            "127.0.0.1",
            self.port,
            username=login,
            client_keys=[str(self.key)],
            known_hosts=str(self.known_hosts),
            config=None,
            agent_path=None,
        ) as connection:
            yield connection

    def ssh(self, *arguments: str, login: str = "alice+train+worker-0") -> list[str]:
        """Return a command line of `ssh`; what follows the host comes last."""
        return ["ssh", *self.options, "-p", str(self.port), "-l", login, "127.0.0.1", *arguments]


async def run(*command: str, send: bytes = b"", env: dict[str, str] | None = None) -> Ran:
    """Run a client to its end."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **(env or {})},
    )
    try:
        async with asyncio.timeout(120):
            out, error = await process.communicate(send)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return Ran(process.returncode, out, error.decode(errors="replace"))
