"""What bytes to and from tasks on other nodes cost everybody else: `python -m tests.benchmarks.tunnel_load`.

Clients fetch from and send to a TCP server through a task's tunnel as fast as they can, while another one
asks the API something small, again and again, and the node's agent too. The same is done with the machine
idle, and while as many clients do the same straight to the server: what is left of the difference is what the
tunnels cost the scheduler's loop, and the agent's. Scheduler (`--engine swarm`) and agent are the real ones,
with mutual TLS between them; what runs on the node is a stand-in (`tests.testbed.agents`), and the node is
this machine. On a machine with few cores the transfers also take the scheduler's turn on a core; with
`--own-core` it has one for itself, beside which only the one who asks runs.

Each row also says how many seconds of a core a GiB took: of the scheduler, of the processes that it has
begun, of the agent. What it prints is for people to compare, between two states of the code on one machine;
nothing is asserted.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from pai_scheduler.engine.swarm.tunnel import AGENT_NAME, scheduler_tls
from pai_scheduler.server.engines import authority
from pai_scheduler.testing.ports import free_ports
from tests.testbed.agents import node_address
from tests.testbed.scheduler import RunningScheduler, hello_job

_PAUSE = 0.01
_CHUNK = bytes(2**18)
_FETCH, _SEND = b"f", b"s"
_ALICE, _BOB = ({"Authorization": f"Bearer token-of-{name}"} for name in ("alice", "bob"))
_PROCESSES = multiprocessing.get_context("fork")


class _SwarmScheduler(RunningScheduler):
    """A scheduler whose users are in its tokens file, although it has variables of its own."""

    def command(self) -> tuple[str, ...]:
        return (*super().command(), "--tokens", str(self.tokens))


@dataclass
class _Lab:
    """What is measured. `api`, `agent` ask them. `tunnel`, `task`: ways to the server."""

    scheduler: psutil.Process
    agents: psutil.Process
    api: Callable[[], object]
    agent: Callable[[], object]
    tunnel: tuple[str, int]
    task: tuple[str, int]
    #: those that are left for clients
    cores: set[int]

    def seconds(self) -> dict[str, float]:
        """Return the seconds of a core that each part has taken so far."""
        children = [each.cpu_times() for each in self.scheduler.children()]
        parts = {"scheduler": [self.scheduler.cpu_times()], "its processes": children}
        parts["agent"] = [self.agents.cpu_times()]
        return {name: sum(each.user + each.system for each in times) for name, times in parts.items()}


@dataclass
class _Waits:
    """How long answers took (seconds)."""

    found: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        self.found.sort()
        return f"median {self._ms(0.5)}, 99 % {self._ms(0.99)}, longest {self._ms(1)}"

    def keep_asking(self, ask: Callable[[], object], end: float) -> None:
        """Ask again and again."""
        while time.monotonic() < end:
            begin = time.perf_counter()
            ask()
            self.found.append(time.perf_counter() - begin)
            time.sleep(_PAUSE)

    def _ms(self, share: float) -> str:
        return f"{1000 * self.found[min(len(self.found) - 1, int(share * len(self.found)))]:.1f} ms"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=8, help="how long each is measured (%(default)s)")
    parser.add_argument("--clients", type=int, default=4, help="that transfer at once (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured (%(default)s)")
    parser.add_argument("--own-core", action="store_true", help="the scheduler shares no core with transfers")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load of the machine before: {os.getloadavg()[0]:.1f}")
    with (
        tempfile.TemporaryDirectory(prefix="pai-tunnel-load-") as folder,
        _lab(Path(folder), own_core=options.own_core) as lab,
    ):
        for _ in range(options.rounds):
            _measure("nobody transfers", lab, None, options)
            for name, how in (("fetched", _FETCH), ("sent", _SEND)):
                _measure(f"{name} straight", lab, (lab.task, how), options)
                _measure(f"{name} through tunnels", lab, (lab.tunnel, how), options)


def _measure(
    name: str, lab: _Lab, way: tuple[tuple[str, int], bytes] | None, options: argparse.Namespace
) -> None:
    counts = _PROCESSES.Queue()
    clients = [
        _PROCESSES.Process(target=_transfer, args=(*(way or ()), options.seconds, lab.cores, counts))
        for _ in range(options.clients if way is not None else 0)
    ]
    before = lab.seconds()
    for client in clients:
        client.start()
    end = time.monotonic() + options.seconds
    api, agent = _Waits(), _Waits()
    other = threading.Thread(target=agent.keep_asking, args=(lab.agent, end))
    other.start()
    api.keep_asking(lab.api, end)
    other.join()
    size = sum(counts.get() for _ in clients)
    for client in clients:
        client.join()
    costs = {part: after - before[part] for part, after in lab.seconds().items()}
    each = ", ".join(f"{part} {cost * 2**30 / size:.2f}" for part, cost in costs.items()) if size else "-"
    print(
        f"{name:24}{size / 2**20 / options.seconds:7.0f} MiB/s   API: {api}   agent: {agent}   "
        f"core seconds a GiB: {each}",
        flush=True,
    )


def _transfer(
    address: tuple[str, int], how: bytes, seconds: float, cores: set[int], counts: multiprocessing.Queue[int]
) -> None:
    """Fetch or send for so many seconds; put into `counts` how many bytes."""
    os.sched_setaffinity(0, cores)
    end, size, chunk = time.monotonic() + seconds, 0, bytearray(_CHUNK)
    with socket.create_connection(address) as connection:
        connection.sendall(how)
        while time.monotonic() < end:
            size += connection.recv_into(chunk) if how == _FETCH else connection.send(chunk)
    counts.put(size)


def _serve(listening: socket.socket) -> None:
    """Be what a task has at its port: send without end, or take all that comes."""

    def answer(connection: socket.socket) -> None:
        chunk = bytearray(_CHUNK)
        with connection:
            try:
                if connection.recv(1) == _FETCH:
                    while True:
                        connection.sendall(chunk)
                while connection.recv_into(chunk):
                    pass
            except OSError:  # (who fetches goes away in the middle)
                return

    while True:
        threading.Thread(target=answer, args=(listening.accept()[0],), daemon=True).start()


@contextmanager
def _lab(folder: Path, *, own_core: bool) -> Iterator[_Lab]:
    own, cores = {min(os.sched_getaffinity(0))}, os.sched_getaffinity(0)
    if own_core:
        cores -= own
        os.sched_setaffinity(0, cores)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        server = _PROCESSES.Process(target=_serve, args=(listening,), daemon=True)
        server.start()
        stack.callback(server.terminate)
        port, manager = free_ports(2)
        data = folder / "data"
        data.mkdir(mode=0o700)
        agents = subprocess.Popen(
            [
                *(sys.executable, "-m", "tests.testbed.agents", "--nodes=1", "--cpus=4"),
                *(f"--port={port}", f"--manager-port={manager}", f"--folder={folder / 'agents'}"),
                f"--credentials={authority(data).agent().write(folder / 'credentials')}",
            ],
            stdout=subprocess.PIPE,
        )
        stack.callback(agents.wait)
        stack.callback(agents.terminate)
        if agents.stdout is None or agents.stdout.readline() != b"ready\n":
            raise RuntimeError("the agent does not start")
        scheduler = _SwarmScheduler(
            folder,
            *("--engine", "swarm", "--agent-port", str(port)),
            environ={"DOCKER_HOST": f"tcp://127.0.0.1:{manager}"},
        )
        stack.callback(scheduler.process.wait)
        stack.callback(scheduler.process.send_signal, signal.SIGTERM)
        if own_core:
            _move(scheduler.process.pid, own)
            os.sched_setaffinity(0, own)
        api = stack.enter_context(httpx.Client(headers=_BOB, trust_env=False, timeout=60))
        tls = scheduler_tls(authority(data).scheduler().write(folder / "credentials-of-the-scheduler"))
        agent = stack.enter_context(httpx.Client(verify=tls, trust_env=False, timeout=60))
        asked = agent.build_request(
            "GET",
            f"https://{node_address(0)}:{port}/v1/none",
            extensions={"sni_hostname": AGENT_NAME},
        )
        yield _Lab(
            psutil.Process(scheduler.process.pid),
            psutil.Process(agents.pid),
            lambda: api.get(f"{scheduler.url}/api/v1/jobs").raise_for_status(),
            lambda: agent.send(asked),
            _tunnel(scheduler.url, listening.getsockname()[1]),
            listening.getsockname(),
            cores,
        )


def _move(pid: int, cores: set[int]) -> None:
    """Let a process run on these cores; those that it has begun stay where they are."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def _tunnel(url: str, port: int) -> tuple[str, int]:
    """Start a task; return where a port of it is reached."""
    with httpx.Client(base_url=f"{url}/api/v1", headers=_ALICE, trust_env=False, timeout=60) as alice:
        alice.post("/jobs", json=hello_job("tunnelled")).raise_for_status()
        while (
            alice.get("/user/alice/jobs/tunnelled").raise_for_status().json()["jobStatus"]["state"]
            != "RUNNING"
        ):
            time.sleep(0.05)
        place = "/user/alice/jobs/tunnelled/taskRoles/main/tasks/0/ports"
        found = alice.get(f"{place}/{port}").raise_for_status().json()
    return found["host"], found["port"]


if __name__ == "__main__":
    main()
