"""An agent in this process, spoken to by mutual TLS, whose tasks are processes: no Docker is needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from pai_scheduler.engine.agent.app import make_app
from pai_scheduler.engine.agent.folders import Folders
from pai_scheduler.engine.agent.host import EngineHost
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.swarm.certificates import Authority
from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.engine.swarm.tunnel import agent_tls, scheduler_tls
from pai_scheduler.job.task import TaskRef

SECRET = b"of this lab"
LAB = Authority(SECRET)


class ReachableProcesses(ProcessEngine):
    """Processes, which are reached at this machine's own address."""

    async def task_address(self, task: TaskRef) -> str:  # noqa: ARG002
        """Return loopback, whichever task it is."""
        return "127.0.0.1"


class SmallAgent:
    """An agent that can be stopped, and started anew at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._tls = agent_tls(LAB.agent().write(folder / "credentials"))
        #: where containers would reach it, in the sessions that begin from now on
        self.bridge_address: str | None = None
        #: what a scheduler shows it
        self.credentials = LAB.scheduler().write(folder.parent / "scheduler")
        self._socket, self.port = bind_unused_port()

    def start(self) -> None:
        """Begin to answer."""
        self.host = EngineHost(self._make, self.folder)
        self.folders = Folders(self.folder / "folders")
        self._server = HTTPServer(make_app(self.host, self.folders), ssl_options=self._tls)
        self._server.add_sockets([self._socket.dup()])

    async def stop(self) -> None:
        """Answer no more, as when its process has ended."""
        self._server.stop()
        await self._server.close_all_connections()
        await self.host.close()

    async def close(self) -> None:
        """End."""
        await self.stop()
        self._socket.close()

    def connection(self, port: int | None = None) -> AgentConnection:
        """Make a scheduler's connection to it, or to what stands at another port before it."""
        return AgentConnection("127.0.0.1", port or self.port, scheduler_tls(self.credentials))

    def _make(self, asked: Open, on_output: Callable[[TaskRef], None]) -> ReachableProcesses:
        engine = ReachableProcesses(self.folder / "engine", logs=asked.logs, rescan_seconds=0.2)
        engine.bridge_address = self.bridge_address
        self._note = on_output
        return engine

    def note_output(self, task: TaskRef) -> None:
        """Say that a task's log has grown, which an engine of processes does not tell."""
        self._note(task)
