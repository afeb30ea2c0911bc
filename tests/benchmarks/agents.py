"""What one scheduler holds and does for many nodes: `python -m tests.benchmarks.agents --nodes 100`.

A real scheduler, over mutual TLS, with real agents whose engines only count (`simulated_swarm.py`): first
at rest, then with `--tasks` tasks in gangs of `--gang` on any nodes, each task of `--task-seconds`. The same
with one node that has as many cores is measured in the same run. What it prints is for people to compare;
nothing is asserted. All programs share this machine's cores, so that the scheduler's own CPU time says more
than the tasks per minute.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.benchmarks import simulated_swarm
from tests.testbed.scheduler import RunningScheduler

_CLUSTER = "virtualClusters: {default: {capacity: 100}}\n"
_HEADERS = {"Authorization": "Bearer token-of-alice"}
_SUBMITTERS = 8
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measured:
    """One kind of cluster. Seconds, MB; CPU in seconds of the scheduler's process."""

    nodes: int
    idle_cpu: float
    idle_memory: float
    idle_sockets: int
    submitted: float
    begun: float
    over: float
    busy_cpu: float
    busy_memory: float


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100, help="how many (%(default)s)")
    parser.add_argument("--tasks", type=int, default=10_000, help="how many in all (%(default)s)")
    parser.add_argument("--gang", type=int, default=10, help="tasks of a job (%(default)s)")
    parser.add_argument("--task-seconds", type=float, default=1.0, help="what one takes (%(default)s)")
    parser.add_argument("--idle-seconds", type=float, default=20.0, help="the time at rest (%(default)s)")
    options = parser.parse_args()
    for nodes in (1, options.nodes):
        _print(asyncio.run(_measure(options, nodes)), options)


def _print(found: Measured, options: argparse.Namespace) -> None:
    tasks = options.tasks
    print(f"{found.nodes} node{'s' if found.nodes > 1 else ''}")
    print(
        f"  at rest: {found.idle_memory:.0f} MB, {found.idle_sockets} sockets, "
        f"{1000 * found.idle_cpu / options.idle_seconds:.1f} ms of CPU a second"
    )
    print(
        f"  {tasks} tasks, gangs of {options.gang}: submitted in {found.submitted:.1f} s, all begun in "
        f"{found.begun:.1f} s ({60 * tasks / found.begun:.0f} a minute), all over in {found.over:.1f} s"
    )
    print(
        f"  the scheduler: {1000 * found.busy_cpu / tasks:.2f} ms of CPU a task "
        f"({60_000 * tasks / (1000 * found.busy_cpu):.0f} a minute on one core), "
        f"{2 * tasks / found.over:.0f} events a second, {found.busy_memory:.0f} MB at the end",
        flush=True,
    )


async def _measure(options: argparse.Namespace, nodes: int) -> Measured:
    with tempfile.TemporaryDirectory(prefix="pai-agents-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "agents.key").write_bytes(secrets.token_bytes(32))
        (folder / "agents.key").chmod(0o600)
        cpus = simulated_swarm.CPUS * options.nodes // nodes
        with _swarm(folder, nodes, cpus, options.task_seconds) as swarm, _scheduler(folder) as scheduler:
            pid = scheduler.process.pid
            async with httpx.AsyncClient(
                base_url=f"{scheduler.url}/api/v1", headers=_HEADERS, trust_env=False, timeout=120
            ) as api:
                while not await _all_ready(api, nodes):  # noqa: ASYNC110 (it happens in another process)
                    await asyncio.sleep(0.1)
                await asyncio.sleep(2)
                before = _cpu(pid)
                await asyncio.sleep(options.idle_seconds)
                idle_cpu, idle_memory, sockets = _cpu(pid) - before, _memory(pid), _sockets(pid)
                before, begin = _cpu(pid), time.time()
                await _submit(api, options)
                submitted = time.time() - begin
                begun = await asyncio.to_thread(_begun, swarm, options.tasks) - begin
                while not await _all_over(api):  # noqa: ASYNC110 (the same)
                    await asyncio.sleep(0.2)
                over = time.time() - begin
                busy_cpu = _cpu(pid) - before
                return Measured(
                    nodes, idle_cpu, idle_memory, sockets, submitted, begun, over, busy_cpu, _memory(pid)
                )


@contextmanager
def _swarm(folder: Path, nodes: int, cpus: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    command = (sys.executable, "-m", simulated_swarm.__name__, str(folder), str(nodes), str(seconds))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PAI_SIMULATED_CPUS": str(cpus)}
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()


@contextmanager
def _scheduler(folder: Path) -> Iterator[RunningScheduler]:
    os.environ["DOCKER_HOST"] = f"unix://{folder}/docker.sock"
    scheduler = RunningScheduler(folder, "--engine", "swarm", cluster=_CLUSTER, data_dir=folder)
    try:
        yield scheduler
    finally:
        scheduler.kill()


async def _submit(api: httpx.AsyncClient, options: argparse.Namespace) -> None:
    numbers = iter(range(options.tasks // options.gang))

    async def work() -> None:
        for number in numbers:
            role = {
                "name": "worker",
                "taskNumber": options.gang,
                "cpuNumber": 1,
                "memoryMB": 100,
                "command": "true",
            }
            job = {"jobName": f"job-{number}", "image": "any", "taskRoles": [role]}
            (await api.post("/jobs", json=job)).raise_for_status()

    await asyncio.gather(*(work() for _ in range(_SUBMITTERS)))


def _begun(swarm: subprocess.Popen[str], tasks: int) -> float:
    """Return when the last task has begun."""
    assert swarm.stdout is not None
    for line in swarm.stdout:
        if (tally := json.loads(line))["begun"] >= tasks:
            return float(tally["time"])
    raise RuntimeError("the simulated Swarm has ended")


async def _all_ready(api: httpx.AsyncClient, count: int) -> bool:
    nodes = (await api.get("/nodes")).json()
    return sum(node["state"] == "READY" for node in nodes) == count


async def _all_over(api: httpx.AsyncClient) -> bool:
    default = (await api.get("/virtual-clusters")).json()["default"]
    return not default["numActiveJobs"] and not default["numPendingJobs"]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS"))) / 1024


def _sockets(pid: int) -> int:
    return sum(str(entry.readlink()).startswith("socket:") for entry in Path(f"/proc/{pid}/fd").iterdir())


if __name__ == "__main__":
    main()
