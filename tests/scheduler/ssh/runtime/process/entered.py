"""A running task of the process engine, and OpenSSH's programs that log into it."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import asyncssh

from pai_scheduler.engine.process import procfs
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.process.task_folder import TaskFolder
from pai_scheduler.engine.protocol import SshEndpoint
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.task_files import HOST_KEY_ALIAS
from pai_scheduler.testing.engine import FOREVER
from pai_scheduler.testing.lab import Lab, processes_with
from pai_scheduler.testing.ssh_tasks import KEYS, log_in, server_files, with_ssh

T = TypeVar("T")


#: Seconds that no program here takes.
PATIENCE = 60


@dataclass
class Entered:
    """A task that can be entered: its folder, where its server is, and the options of OpenSSH's clients."""

    lab: Lab
    task: TaskRef
    folder: Path
    way: SshEndpoint
    keys: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def end_clients(self) -> None:
        """End what was begun and runs on."""
        for process in self.running:
            process.kill()
            process.communicate()
        self.running.clear()

    @property
    def work(self) -> Path:
        return self.folder / "work"

    def server(self) -> int:
        """Find its SSH server, not what that is about to start."""
        _, record = TaskFolder(self.folder).read()
        (found,) = (
            pid
            for pid in processes_with(str(self.folder))
            if (process := procfs.process(pid)) and process.parent == record["supervisor"]
        )
        return found

    @property
    def options(self) -> list[str]:
        return [
            *("-F", "none", "-i", str(self.keys / "identity")),
            *("-o", f"UserKnownHostsFile={self.keys / 'known'}", "-o", f"HostKeyAlias={HOST_KEY_ALIAS}"),
            *("-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"),
            *("-o", "BatchMode=yes"),
        ]

    def line(self, *arguments: str, options: Sequence[str] = (), user: str = "root") -> list[str]:
        """Return the command line of `ssh` with a command to run."""
        port = ("-p", str(self.way.port))
        return ["ssh", *self.options, *port, *options, f"{user}@{self.way.host}", *arguments]

    async def ssh(
        self, *arguments: str, options: Sequence[str] = (), user: str = "root", **run: Any
    ) -> subprocess.CompletedProcess[bytes]:
        """Run `ssh` to its end."""
        return await self.run(*self.line(*arguments, options=options, user=user), **run)

    async def run(self, *argv: str, **run: Any) -> subprocess.CompletedProcess[bytes]:
        """Run a client to its end."""
        given: dict[str, Any] = {"capture_output": True, "timeout": PATIENCE, **run}
        if "input" not in given and "stdin" not in given:
            given["stdin"] = subprocess.DEVNULL
        return await asyncio.to_thread(lambda: subprocess.run(argv, **given))

    async def connect(self, **options: Any) -> asyncssh.SSHClientConnection:
        """Log in with asyncssh, which tells apart what `ssh` does not."""
        return await log_in(self.way, self.task.job_id, **options)

    def begin(self, *argv: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a client; the test's end ends it."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.running.append(subprocess.Popen(argv, **{**pipes, **options}))
        return self.running[-1]


#: Launches a task and asks for its way in.
Enter = Callable[..., Awaitable[Entered]]


@asynccontextmanager
async def entering(folder: Path) -> AsyncIterator[Enter]:
    """Run an engine whose tasks are entered."""
    engine = ProcessEngine(folder / "data", ssh_files=server_files, rescan_seconds=0.2)
    await engine.start()
    lab = await Lab.over(engine, "any-image")
    all_entered: list[Entered] = []

    async def enter(command: str = FOREVER, **fields: Any) -> Entered:
        ports = fields.pop("ports", {})
        launch = lab.make(command, **fields)
        prepared = await lab.prepare(launch, ports={launch.task: ports})
        (launch,) = with_ssh(*prepared, own_server=True)
        await engine.launch(launch)
        await lab.started(launch.task)
        keys = folder / launch.task.name
        keys.mkdir()
        (keys / "identity").touch(0o600)
        (keys / "identity").write_bytes(KEYS.identity(launch.task.job_id).private)
        (keys / "known").write_text(f"{HOST_KEY_ALIAS} {KEYS.host(launch.task.job_id).public}\n")
        task_folder = folder / "data" / "tasks" / launch.task.name
        way = await engine.ssh_endpoint(launch.task)
        all_entered.append(Entered(lab, launch.task, task_folder, way, keys))
        return all_entered[-1]

    yield enter
    for entered in all_entered:
        entered.end_clients()
    await lab.clean()
    await engine.close()
