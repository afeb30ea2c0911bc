"""What a hundred nodes cost a scheduler: `python -m tests.benchmarks.agents --nodes 100 --tasks 10000`.

One real scheduler process (REST, SQLite, `--engine swarm`) against the stand-ins of `tests.testbed.agents`:
a second process that has the agents of all nodes, each at an address of its own, with the real API and mutual
TLS. Three runs, one after the other: one node; many nodes; and many nodes without agents, the stand-in engine
being the scheduler's own, so that the difference is what the way to the nodes costs.

Each run: idle for `--seconds`; `--tasks` submitted by REST until all run; `--seconds` with all of them
running; all told to end, until all have ended. Scheduler, agents and client share the machine, so each row
says how much of a core each of them took. What it prints is for people to compare; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil

from pai_scheduler.engine.protocol import Engine
from pai_scheduler.server import engines
from pai_scheduler.server import main as scheduler_main
from pai_scheduler.server.engines import authority
from pai_scheduler.testing.ports import free_ports
from tests.scheduler.making import make_config, make_role
from tests.testbed.agents import END_ALL, StandInEngine, node_name
from tests.testbed.scheduler import RunningScheduler

_CLIENTS = 16
_CLUSTER = "defaults: {jobsPerUser: 1000000}\n"
_TOKEN = "token-of-root"
_DEADLINE_SECONDS = 900.0
_METRICS_TOKEN = "token-of-prometheus"
_SAMPLE = re.compile(r"^(pai_\w+)(?:\{[^}]*\})? ([0-9.e+]+)$", re.MULTILINE)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100, help="(%(default)s)")
    parser.add_argument("--tasks", type=int, default=10_000, help="(%(default)s)")
    parser.add_argument("--gang", type=int, default=10, help="tasks of a job (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of each quiet phase (%(default)s)")
    parser.add_argument("--log", type=Path, help="append the schedulers' logs to this file")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load of the machine before: {os.getloadavg()[0]:.1f}")
    print(_HEAD)
    ways = [("1 node", 1, True), (f"{options.nodes} nodes", options.nodes, True)]
    ways.append((f"{options.nodes}, no agents", options.nodes, False))
    for name, nodes, remote in ways:
        with tempfile.TemporaryDirectory(prefix="pai-agents-", ignore_cleanup_errors=True) as folder:
            try:
                with _lab(Path(folder), nodes, _cpus(options, nodes), remote=remote) as lab:
                    asyncio.run(_measure(name, lab, nodes, options))
            finally:
                if options.log is not None and (log := Path(folder, "scheduler.log")).exists():
                    with options.log.open("ab") as all_logs:
                        all_logs.write(log.read_bytes())


@dataclass(frozen=True, slots=True)
class _Lab:
    """`agents`: the process in which the tasks are; the scheduler's own where there are no agents."""

    url: str
    scheduler: psutil.Process
    agents: psutil.Process


class _SwarmScheduler(RunningScheduler):
    """A scheduler whose users are in its tokens file, although it has variables of its own."""

    def command(self) -> Sequence[str]:
        return (*super().command(), "--tokens", str(self.tokens))


class _SchedulerWithoutAgents(RunningScheduler):
    """A scheduler that has the stand-in engine itself, by this module's `_serve_alone`."""

    engine: tuple[int, int] = (0, 0)

    def command(self) -> Sequence[str]:
        nodes, cpus = map(str, self.engine)
        return (sys.executable, "-m", __spec__.name, "alone", nodes, cpus, *super().command()[1:])


@contextmanager
def _lab(folder: Path, nodes: int, cpus: int, *, remote: bool) -> Iterator[_Lab]:
    metrics = folder / "metrics-token"
    metrics.write_text(_METRICS_TOKEN)
    metrics.chmod(0o600)
    options = ["--metrics-token-file", str(metrics)]
    with ExitStack() as stack:
        if remote:
            port, manager = free_ports(2)
            data = folder / "data"
            data.mkdir(mode=0o700)
            credentials = authority(data).agent().write(folder / "credentials")
            command = [
                *(sys.executable, "-m", "tests.testbed.agents"),
                *(f"--nodes={nodes}", f"--cpus={cpus}", f"--port={port}", f"--manager-port={manager}"),
                *(f"--folder={folder / 'agents'}", f"--credentials={credentials}"),
            ]
            agents = stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE))
            stack.callback(agents.terminate)
            assert agents.stdout is not None
            if agents.stdout.readline() != b"ready\n":
                raise RuntimeError("the agents do not start")
            options += ["--engine", "swarm", "--agent-port", str(port)]
            environ = {"DOCKER_HOST": f"tcp://127.0.0.1:{manager}"}
            scheduler: RunningScheduler = _SwarmScheduler(folder, *options, cluster=_CLUSTER, environ=environ)
            tasks = psutil.Process(agents.pid)
        else:
            _SchedulerWithoutAgents.engine = (nodes, cpus)
            scheduler = _SchedulerWithoutAgents(folder, *options, cluster=_CLUSTER)
            tasks = psutil.Process(scheduler.process.pid)
        try:
            yield _Lab(scheduler.url, psutil.Process(scheduler.process.pid), tasks)
        finally:
            scheduler.process.send_signal(signal.SIGTERM)
            try:
                scheduler.process.wait(60)
            except subprocess.TimeoutExpired:
                scheduler.kill()


class _Costs:
    """What a phase took, from its beginning to `row`."""

    def __init__(self, lab: _Lab) -> None:
        self._processes = {"scheduler": lab.scheduler, "agents": lab.agents, "client": psutil.Process()}
        if lab.agents.pid == lab.scheduler.pid:
            del self._processes["agents"]
        self._lab, self._begin, self._cpu = lab, time.monotonic(), self._now()

    def _now(self) -> dict[str, float]:
        times = {name: process.cpu_times() for name, process in self._processes.items()}
        return {name: each.user + each.system for name, each in times.items()}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._begin

    @property
    def scheduler(self) -> float:
        """Return the seconds of a core that the scheduler took."""
        return self._now()["scheduler"] - self._cpu["scheduler"]

    def row(self, run: str, phase: str, more: str) -> None:
        seconds, now = self.seconds, self._now()
        shares = "".join(
            f"{100 * (now[name] - self._cpu[name]) / seconds:8.1f}" if name in now else f"{'-':>8}"
            for name in ("scheduler", "agents", "client")
        )
        memory = self._lab.scheduler.memory_info().rss / 2**20
        print(f"{run:18}{phase:14}{seconds:8.1f}{shares}{memory:8.0f}   {more}", flush=True)


_HEAD = f"{'':32}{'s':>8}{'sched.%':>8}{'agents%':>8}{'client%':>8}{'MiB':>8}"


async def _measure(run: str, lab: _Lab, nodes: int, options: argparse.Namespace) -> None:
    tasks = _tasks(options)
    headers = {"Authorization": f"Bearer {_TOKEN}"}
    async with aiohttp.ClientSession(lab.url, headers=headers, trust_env=False) as client:
        await _until(client, "pai_nodes", nodes)
        costs = _Costs(lab)
        await asyncio.sleep(options.seconds)
        connections = sum(
            each.status == psutil.CONN_ESTABLISHED and bool(each.raddr) and each.raddr.ip.startswith("127.1.")
            for each in lab.scheduler.net_connections("tcp")
        )
        each_node = 1000 * costs.scheduler / costs.seconds / nodes
        costs.row(run, "idle", f"{each_node:.2f} ms of a core a node and second, {connections} connections")
        before = await _metrics(client)
        costs = _Costs(lab)
        submitted = await _submit(client, tasks, options.gang)
        await _until(client, "pai_task_starts_total", tasks)
        costs.row(run, "start", _rate(costs, tasks, before, await _metrics(client), submitted))
        costs = _Costs(lab)
        await asyncio.sleep(options.seconds)
        costs.row(
            run, "all run", f"{1000 * costs.scheduler / costs.seconds / nodes:.2f} ms a node and second"
        )
        before = await _metrics(client)
        costs = _Costs(lab)
        lab.agents.send_signal(END_ALL)
        await _until(client, "pai_jobs_ended_total", tasks // options.gang)
        costs.row(run, "end", _rate(costs, tasks, before, await _metrics(client)))


def _rate(
    costs: _Costs,
    tasks: int,
    before: dict[str, float],
    after: dict[str, float],
    submitted: float | None = None,
) -> str:
    events = after["pai_commit_events_sum"] - before.get("pai_commit_events_sum", 0)
    rest = "" if submitted is None else f", submitted in {submitted:.1f} s"
    return (
        f"{60 * tasks / costs.seconds:,.0f} tasks a minute, {events / costs.seconds:,.0f} events/s, "
        f"{1000 * costs.scheduler / tasks:.2f} ms of a core a task{rest}"
    )


async def _submit(client: aiohttp.ClientSession, tasks: int, gang: int) -> float:
    """Submit all by REST, some at once; return the seconds until the last was accepted."""
    begin, numbers = time.monotonic(), iter(range(tasks // gang))

    async def submit() -> None:
        for number in numbers:
            job = make_config(make_role(tasks=gang), name=f"job-{number}")
            async with client.post("/api/v1/jobs", json=job) as response:
                if response.status != 202:
                    raise RuntimeError(f"status {response.status}: {await response.text()}")

    await asyncio.gather(*(submit() for _ in range(_CLIENTS)))
    return time.monotonic() - begin


async def _until(client: aiohttp.ClientSession, name: str, least: float) -> None:
    """Wait until the scheduler has counted so many; a look each 200 ms."""
    begin = time.monotonic()
    while (found := (await _metrics(client)).get(name, 0)) < least:
        if time.monotonic() - begin > _DEADLINE_SECONDS:
            raise RuntimeError(f"{name} stays at {found:g} of {least:g}")
        await asyncio.sleep(0.2)


async def _metrics(client: aiohttp.ClientSession) -> dict[str, float]:
    """Return the scheduler's own figures, each summed over its labels."""
    headers = {"Authorization": f"Bearer {_METRICS_TOKEN}"}
    found: dict[str, float] = {}
    async with client.get("/metrics", headers=headers) as response:
        response.raise_for_status()
        for name, value in _SAMPLE.findall(await response.text()):
            found[name] = found.get(name, 0) + float(value)
    return found


def _tasks(options: argparse.Namespace) -> int:
    """Return a number of tasks that makes whole jobs."""
    return int(-(-options.tasks // options.gang) * options.gang)


def _cpus(options: argparse.Namespace, nodes: int) -> int:
    """Return the cores of a node, so that all tasks run at once and fill all nodes with whole jobs."""
    return int(-(-_tasks(options) // options.gang // nodes) * options.gang)


class _EngineOfSignals(StandInEngine):
    """Ends its tasks by the signal that the agents' process takes too."""

    async def start(self) -> None:
        asyncio.get_running_loop().add_signal_handler(END_ALL, self.end_all)


def _serve_alone(nodes: int, cpus: int, argv: Sequence[str]) -> int:
    """Run the scheduler over nodes without agents."""

    def engine(options: argparse.Namespace, data_dir: Path, around: engines.Surroundings) -> Engine:  # noqa: ARG001
        return _EngineOfSignals([node_name(number) for number in range(nodes)], cpus, data_dir / "logs")

    engines.make_engine = engine
    return scheduler_main.main(argv)


if __name__ == "__main__":
    if sys.argv[1:2] == ["alone"]:
        sys.exit(_serve_alone(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]))
    main()
