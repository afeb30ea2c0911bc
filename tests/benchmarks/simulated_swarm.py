"""A Swarm of many nodes that run nothing: a manager's API, and real agents over an engine that only counts.

`python -m tests.benchmarks.simulated_swarm FOLDER NODES SECONDS` serves both until it is ended, and prints
how many tasks have begun and ended whenever that has changed. The agents' HTTP API, sessions and TLS are the
product's own; each has a loopback address of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from tornado.httpserver import HTTPServer
from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler

from pai_scheduler.agent.app import make_app
from pai_scheduler.agent.folders import Folders
from pai_scheduler.agent.host import EngineHost
from pai_scheduler.cluster.node import Node
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.protocol import EndCause, Ended, EngineEvent, Gang, Launch, Started, Usage
from pai_scheduler.engine.remote.certificates import Authority, agent_tls
from pai_scheduler.engine.remote.defaults import AGENT_PORT
from pai_scheduler.engine.remote.messages import MOST_BYTES, Open
from pai_scheduler.job.messages import Message
from pai_scheduler.job.task import TaskRef

#: Of each node; memory is enough for all tasks.
CPUS, MEMORY_MB = int(os.environ.get("PAI_SIMULATED_CPUS", "64")), 10_000_000
_FIRST_ADDRESS = IPv4Address("127.1.0.1")


class Tally:
    """How many tasks have begun and ended on all nodes."""

    def __init__(self) -> None:
        self.begun = self.ended = 0

    async def show(self) -> None:
        """Print it, whenever it has changed."""
        shown = (-1, -1)
        while True:
            if (now := (self.begun, self.ended)) != shown:
                shown = now
                print(json.dumps({"begun": now[0], "ended": now[1], "time": time.time()}), flush=True)
            await asyncio.sleep(0.05)


class CountingEngine:
    """An engine whose tasks take `seconds` and do nothing."""

    name = "counting"
    shares_host_ports, one_machine = False, True
    front_door_url = storage_host = bridge_address = None

    def __init__(self, folder: Path, tally: Tally, seconds: float) -> None:
        self._folder, self._tally, self._seconds = folder, tally, seconds
        self._events: asyncio.Queue[EngineEvent] = asyncio.Queue()
        self._running: dict[TaskRef, asyncio.TimerHandle] = {}

    async def start(self) -> None:
        """Do nothing, as all that is not said below."""

    async def close(self) -> None:
        """Do nothing."""

    async def nodes(self) -> Sequence[Node]:
        """Return a machine with many cores."""
        return [Node("this", CPUS, MEMORY_MB, 10_000)]

    async def refuses_image(self, image: str) -> Message | None:  # noqa: ARG002
        """Take any."""
        return None

    async def adopt(self, expected: Mapping[TaskRef, str]) -> None:
        """Forget nothing, end nothing."""

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        """Return addresses."""
        return {member.task: str(_FIRST_ADDRESS) for member in gang.members}

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:  # noqa: ARG002
        """Return none."""
        return ()

    async def launch(self, launch: Launch) -> None:
        """Begin, and end some time later."""
        self._tally.begun += 1
        self._events.put_nowait(Started(launch.task, _now(), launch.address, "0" * 64))
        loop = asyncio.get_running_loop()
        self._running[launch.task] = loop.call_later(self._seconds, self._end, launch.task, EndCause.EXITED)

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:  # noqa: ARG002
        """End a task."""
        self._end(task, EndCause.KILLED)

    async def usage(self, task: TaskRef) -> Usage | None:  # noqa: ARG002
        """Return next to nothing."""
        return Usage(_now(), 0.0, 1.0)

    async def release(self, gang: Gang) -> None:
        """Do nothing."""

    async def forget(self, task: TaskRef) -> None:
        """Do nothing."""

    async def events(self) -> AsyncIterator[EngineEvent]:
        """Return what happens."""
        while True:
            yield await self._events.get()

    def log(self, task: TaskRef) -> TaskLog:
        """Return an empty log."""
        return TaskLog(self._folder / task.name)

    async def task_address(self, task: TaskRef) -> str:  # noqa: ARG002
        """Return an address."""
        return str(_FIRST_ADDRESS)

    def _end(self, task: TaskRef, cause: EndCause) -> None:
        if (timer := self._running.pop(task, None)) is not None:
            timer.cancel()
            self._tally.ended += 1
            code = 0 if cause is EndCause.EXITED else None
            self._events.put_nowait(Ended(task, _now(), cause, code))


class Manager(RequestHandler):
    """What a scheduler asks of a Swarm's manager."""

    def initialize(self, count: int, networks: dict[str, Any]) -> None:
        """Take the number of nodes, and the networks that there are."""
        self._count, self._networks = count, networks

    def get(self, path: str) -> None:
        """Answer about the engine, the nodes, the networks."""
        match path.split("/"):
            case ["version"]:
                self._answer({"ApiVersion": "1.43", "Version": "24.0.7"})
            case ["info"]:
                self._answer(
                    {"Name": "node-0", "Swarm": {"LocalNodeState": "active", "ControlAvailable": True}}
                )
            case ["nodes"]:
                self._answer([_node(number) for number in range(self._count)])
            case ["networks"]:
                self._answer(list(self._networks.values()))
            case ["networks", name]:
                found = [each for each in self._networks.values() if name in (each["Id"], each["Name"])]
                self.set_status(200 if found else 404)
                self._answer(found[0] if found else {"message": "not found"})
            case _:
                self.set_status(404)
                self._answer({"message": f"no {path} here"})

    def post(self, path: str) -> None:  # noqa: ARG002
        """Make a network."""
        asked = json.loads(self.request.body)
        made = {**asked, "Id": f"{next(_NUMBERS):064x}", "Scope": "swarm", "Containers": {}}
        self._networks[made["Id"]] = made
        self.set_status(201)
        self._answer({"Id": made["Id"]})

    def delete(self, path: str) -> None:
        """Remove a network."""
        self._networks.pop(path.rpartition("/")[2], None)
        self.set_status(204)

    def _answer(self, value: object) -> None:
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(value))


_NUMBERS = itertools.count(1)


async def serve(folder: Path, count: int, seconds: float) -> None:
    """Serve until ended. `folder` gets the manager's socket, docker.sock, and has the secret, agents.key."""
    tally = Tally()
    secret = (folder / "agents.key").read_bytes()
    tls = agent_tls(Authority(secret).agent().write(folder / "agent-credentials"))
    for number in range(count):
        own = folder / f"agent-{number}"

        def make(asked: Open, on_output: Callable[[TaskRef], None], own: Path = own) -> CountingEngine:  # noqa: ARG001
            return CountingEngine(own / "logs", tally, seconds)

        app = make_app(EngineHost(make, own), Folders(own / "folders"))  # type: ignore[arg-type]
        server = HTTPServer(app, ssl_options=tls, max_body_size=MOST_BYTES)
        server.listen(AGENT_PORT, str(_FIRST_ADDRESS + number))
    manager = Application(
        [
            (r"/v[0-9.]+/(.*)", Manager, {"count": count, "networks": {}}),
            (r"/(version)", Manager, {"count": count, "networks": {}}),
        ],
        log_function=lambda _: None,
    )
    HTTPServer(manager).add_socket(bind_unix_socket(str(folder / "docker.sock")))
    await tally.show()


def _node(number: int) -> dict[str, Any]:
    return {
        "ID": f"{number:025d}",
        "Spec": {"Availability": "active", "Labels": {}},
        "Description": {"Hostname": f"node-{number:03d}"},
        "Status": {"State": "ready", "Addr": str(_FIRST_ADDRESS + number)},
    }


def _now() -> int:
    return time.time_ns() // 10**6


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
