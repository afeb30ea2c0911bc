"""Many nodes in one process: a Swarm's manager and the agents of its nodes, whose tasks are only said to run.

The agents' API, their sessions and TLS are the real ones; what stands in is the engine behind them, and the
few answers of Docker's API that a scheduler asks of a manager. A node is an address of loopback's own, so
that nothing in the scheduler has to know. `python -m tests.testbed.agents` runs them until it is ended.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import signal
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler

from pai_scheduler.cluster.node import DiskSpace, Node
from pai_scheduler.engine.agent.app import make_app
from pai_scheduler.engine.agent.folders import Folders
from pai_scheduler.engine.agent.host import EngineHost
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.protocol import (
    EndCause,
    Ended,
    EngineEvent,
    Gang,
    Launch,
    NoSshEndpointError,
    SshEndpoint,
    Started,
    Usage,
)
from pai_scheduler.engine.swarm.protocol import MOST_BYTES, Open
from pai_scheduler.engine.swarm.tunnel import agent_tls
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

#: the signal by which all tasks are told to end
END_ALL = signal.SIGUSR1
#: Docker's API as the manager speaks it
_VERSION = "1.47"


def node_name(number: int) -> str:
    """Return the name of a node; they sort by number."""
    return f"node-{number:03}"


def node_address(number: int) -> str:
    """Return the address of a node, on loopback."""
    return f"127.1.{number // 200}.{number % 200 + 1}"


class StandInEngine:
    """An engine whose tasks run once they are launched, end when they are told to, and do nothing.

    It has nodes of `cpus` cores by the names `names`; an agent's has one. `clock`: the node's (ms).
    """

    name = "docker"
    shares_host_ports = False
    own_ssh_server = False
    one_machine = False
    front_door_url: str | None = None
    storage_host: str | None = None
    bridge_address: str | None = None

    def __init__(
        self,
        names: Sequence[str],
        cpus: int,
        folder: Path,
        *,
        on_output: Callable[[TaskRef], None] = lambda _: None,
        clock: Callable[[], int] = lambda: time.time_ns() // 10**6,
    ) -> None:
        self.on_output, self._clock = on_output, clock
        self._nodes = [Node(name, cpus, 1024 * cpus, 10 * cpus) for name in names]
        self._folder = folder
        self._queue: asyncio.Queue[EngineEvent | None] = asyncio.Queue()
        self._running: set[TaskRef] = set()
        #: bytes on the disk, by task
        self.sizes: dict[TaskRef, int] = {}

    async def start(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        self._queue.put_nowait(None)

    async def nodes(self) -> Sequence[Node]:
        return tuple(self._nodes)

    def disk(self, node: str) -> DiskSpace | None:  # noqa: ARG002
        return None

    async def refuses_image(self, image: str) -> Message | None:  # noqa: ARG002
        return None

    async def adopt(self, expected: Mapping[TaskRef, str]) -> None:
        """Run what is expected to: a task here has no other state than that."""
        for task in expected:
            self._begin(task)

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        return {member.task: f"10.0.0.{number % 250 + 2}" for number, member in enumerate(gang.members)}

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:  # noqa: ARG002
        return ()

    async def launch(self, launch: Launch) -> None:
        self._begin(launch.task)

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:  # noqa: ARG002
        self._end(task, EndCause.KILLED)

    def end_all(self) -> None:
        """Let every task end well."""
        for task in list(self._running):
            self._end(task, EndCause.EXITED)

    async def disk_use(self) -> Mapping[TaskRef, int]:
        return {task: self.sizes.get(task, 0) for task in self._running}

    async def end_for_room(self, task: TaskRef) -> None:
        self._end(task, EndCause.DISK)

    async def release(self, gang: Gang) -> None:
        """Do nothing."""

    async def forget(self, task: TaskRef) -> None:
        """Do nothing."""

    async def events(self) -> AsyncIterator[EngineEvent]:
        while (event := await self._queue.get()) is not None:
            yield event

    def work_dir(self, task: TaskRef) -> str:  # noqa: ARG002
        return "/work"

    def private_dir(self, task: TaskRef) -> str:  # noqa: ARG002
        return "/private"

    def code_dir(self, code: Path) -> str:
        return str(code)

    def log(self, task: TaskRef) -> TaskLog:
        return TaskLog(self._folder / task.name)

    async def usage(self, task: TaskRef) -> Usage | None:
        return Usage(self._clock(), 1.0, 1.0) if task in self._running else None

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int] | None:  # noqa: ARG002
        return None

    async def ssh_endpoint(self, task: TaskRef) -> SshEndpoint:  # noqa: ARG002
        raise NoSshEndpointError(msg("The task does not run."))

    async def task_address(self, task: TaskRef) -> str:
        """Return this machine's own: what a test lets listen there stands in for the task's ports."""
        if task not in self._running:
            raise NoSshEndpointError(msg("The task does not run."))
        return "127.0.0.1"

    def _begin(self, task: TaskRef) -> None:
        if task not in self._running:
            self._running.add(task)
            self._queue.put_nowait(Started(task, self._clock(), "127.0.0.1", "stand-in"))

    def _end(self, task: TaskRef, cause: EndCause) -> None:
        self._running.discard(task)
        self._queue.put_nowait(Ended(task, self._clock(), cause, 0 if cause is EndCause.EXITED else None))


class _Manager(RequestHandler):
    """Answers what a scheduler asks of a Swarm's manager: who there is."""

    def initialize(self, nodes: int) -> None:
        self._nodes = nodes

    def get(self, path: str) -> None:
        answers: dict[str, Callable[[], object]] = {
            "version": lambda: {"ApiVersion": _VERSION},
            "info": lambda: {"Swarm": {"LocalNodeState": "active", "ControlAvailable": True}},
            "nodes": lambda: [_listed(number) for number in range(self._nodes)],
            "networks": list,
            "services": list,
        }
        self.set_header("Content-Type", "application/json")
        if path not in answers:
            self.set_status(404)
            self.finish({"message": f"there is no {path} here"})
            return
        found = answers[path]()
        self.finish(json.dumps(found))


def _listed(number: int) -> dict[str, Any]:
    return {
        "ID": f"{number:025}",
        "Description": {"Hostname": node_name(number)},
        "Status": {"State": "ready", "Addr": node_address(number)},
        "Spec": {"Availability": "active", "Labels": {}},
    }


def main() -> None:
    """Serve until ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--cpus", type=int, required=True, help="of each node")
    parser.add_argument("--port", type=int, required=True, help="of each agent, at its node's address")
    parser.add_argument("--manager-port", type=int, required=True, help="of the manager, at 127.0.0.1")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--credentials", type=Path, required=True)
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve(options))


async def _serve(options: argparse.Namespace) -> None:
    tls = agent_tls(options.credentials)
    engines: dict[int, StandInEngine] = {}
    hosts: list[EngineHost] = []
    servers: list[HTTPServer] = []
    for number in range(options.nodes):

        def make(
            asked: Open,  # noqa: ARG001
            on_output: Callable[[TaskRef], None],  # noqa: ARG001
            number: int = number,
        ) -> StandInEngine:
            engines[number] = StandInEngine([node_name(number)], options.cpus, options.folder / "logs")
            return engines[number]

        folder = options.folder / node_name(number)
        hosts.append(EngineHost(make, folder))
        servers.append(
            HTTPServer(
                make_app(hosts[-1], Folders(folder / "folders")), ssl_options=tls, max_body_size=MOST_BYTES
            )
        )
        servers[-1].listen(options.port, node_address(number))

    def end_all() -> None:
        for engine in engines.values():
            engine.end_all()

    manager = Application(
        [(r"/(?:v[0-9.]+/)?([a-z]+)", _Manager, {"nodes": options.nodes})],
        log_function=lambda _: None,
    )
    servers.append(manager.listen(options.manager_port, "127.0.0.1"))
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    asyncio.get_running_loop().add_signal_handler(END_ALL, end_all)
    print("ready", flush=True)
    await stopping.wait()
    for server in servers:
        server.stop()
        await server.close_all_connections()
    for host in hosts:
        await host.close()


if __name__ == "__main__":
    main()
