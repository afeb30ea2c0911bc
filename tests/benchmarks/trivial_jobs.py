"""How many jobs a second that do next to nothing come to their end on the process engine, and at what cost.

    python -m tests.benchmarks.trivial_jobs [--jobs 300] [--clients 8] [--rounds 3]

Clients submit one job after another over HTTP; each job writes one byte and ends. Counted is from the first
submit until the last job is known to have ended, and what the scheduler took of a core, all that it started
(supervisors and the commands themselves) with it, until it is at rest again. slurmrestd does the same in
turns, with a Slurm whose one node has as many processors.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil

from tests.testbed.machine import CannotError
from tests.testbed.scheduler import RunningScheduler

from .cpu_group import CpuGroup
from .rows import Against, Goal, Row, UnavailableError
from .slurm_peer import SlurmPeer
from .submit_load import http_request, submit

_CPUS = 64
_CLUSTER = f"""
nodes:
  - {{name: node-a, cpus: {_CPUS}, memoryMB: 400000, storageGB: 1000}}
defaults: {{jobsPerUser: 10000000}}
"""
_TOKEN = "token-of-alice"
_PATIENCE = 120.0
#: seconds after the last end in which what was put off is done
_REST = 2.0


class _Scheduler:
    """The real program with its process engine and SQLite."""

    def __init__(self, running: RunningScheduler) -> None:
        self._running, self._numbers = running, count()
        self._client = httpx.Client(
            base_url=f"{running.url}/api/v1",
            headers={"Authorization": f"Bearer {_TOKEN}"},
            trust_env=False,
            timeout=60,
        )
        self.processes = [psutil.Process(running.process.pid)]

    @classmethod
    @contextmanager
    def open(cls) -> Iterator[_Scheduler]:
        with tempfile.TemporaryDirectory(prefix="pai-trivial-", ignore_cleanup_errors=True) as folder:
            running = RunningScheduler(Path(folder), cluster=_CLUSTER)
            try:
                yield cls(running)
            finally:
                running.close()

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol]
    ) -> tuple[asyncio.BaseTransport, asyncio.Protocol]:
        place = urlsplit(self._running.url)
        loop = asyncio.get_running_loop()
        return await loop.create_connection(protocol, str(place.hostname), place.port or 80)

    def request(self, command: str) -> tuple[str, bytes]:
        name = f"trivial-{next(self._numbers)}"
        role = {"name": "main", "command": command, "cpuNumber": 1, "memoryMB": 100}
        job = {"jobName": name, "image": "local/any", "taskRoles": [role]}
        return name, http_request("/api/v1/jobs", job, {"Authorization": f"Bearer {_TOKEN}"})

    def unfinished(self) -> int:
        return len(self._client.get("/jobs", params={"state": "WAITING,RUNNING"}).json())

    def check(self) -> None:
        found = self._client.get("/jobs").json()
        failed = [job for job in found if job["state"] != "SUCCEEDED"]
        assert not failed, failed[:3]


class _Slurm:
    """Slurm behind slurmrestd."""

    def __init__(self, peer: SlurmPeer) -> None:
        self._peer, self._numbers = peer, count()
        self.processes = peer.processes
        self.connect = peer.connect

    def request(self, command: str) -> tuple[str, bytes]:
        return f"trivial-{next(self._numbers)}", self._peer.request_for(f"#!/bin/bash\n{command}\n")

    def unfinished(self) -> int:
        return self._peer.unfinished()

    def check(self) -> None:
        """(That each wrote its byte is all that can be known.)"""


_Side = _Scheduler | _Slurm


@dataclass
class _Found:
    """Of each round: jobs a second, and ms of a core a job."""

    rates: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        rates, costs = sorted(self.rates), sorted(self.costs)
        middle = len(rates) // 2
        return (
            f"{rates[middle]:6.1f} jobs/s ({rates[0]:.1f} to {rates[-1]:.1f}), "
            f"{costs[middle]:5.2f} ms of a core each ({costs[0]:.2f} to {costs[-1]:.2f})"
        )


def _round(side: _Side, group: CpuGroup, jobs: int, clients: int, found: _Found) -> None:
    with tempfile.TemporaryDirectory(prefix="pai-trivial-") as folder:
        bytes_written = Path(folder) / "bytes"
        bytes_written.touch()
        for public in (bytes_written.parent, bytes_written):
            public.chmod(0o777)
        command, left = f"printf . >> {bytes_written}", iter(range(jobs))

        def request() -> tuple[str, bytes]:
            next(left)
            return side.request(command)

        cpu, begin = group.seconds(), time.perf_counter()
        asyncio.run(submit(side.connect, request, clients, _PATIENCE, []))
        while bytes_written.stat().st_size < jobs or side.unfinished():
            assert time.perf_counter() - begin < _PATIENCE, "not all jobs come to their end"
            time.sleep(0.01)
        found.rates.append(jobs / (time.perf_counter() - begin))
        time.sleep(_REST)
        found.costs.append(1e3 * (group.seconds() - cpu) / jobs)
        assert bytes_written.stat().st_size == jobs, "a job ran twice"
        side.check()


def _measure(jobs: int, clients: int, rounds: int) -> tuple[_Found, _Found | None, str]:
    """Measure in turns; give ours, the peer's, and why there is none."""
    ours, theirs, missing = _Found(), _Found(), ""
    with ExitStack() as stack:
        try:
            group = {id(ours): stack.enter_context(CpuGroup.open("trivial-ours"))}
            with group[id(ours)].starting():
                sides: list[tuple[_Side, _Found]] = [(stack.enter_context(_Scheduler.open()), ours)]
        except CannotError as error:
            raise UnavailableError(str(error)) from error
        try:
            group[id(theirs)] = stack.enter_context(CpuGroup.open("trivial-theirs"))
            with group[id(theirs)].starting():
                peer = stack.enter_context(SlurmPeer.open(cpus=_CPUS))
            sides.append((_Slurm(peer), theirs))
        except CannotError as error:
            missing = str(error)
        for side, found in sides:
            group[id(found)].take(side.processes)
            _round(side, group[id(found)], max(1, jobs // 10), clients, _Found())  # (warms up)
        for _ in range(rounds):
            for side, found in sides:
                _round(side, group[id(found)], jobs, clients, found)
    return ours, theirs if theirs.rates else None, missing


def rows(*, short: bool) -> Iterator[Row]:
    """Measure ours beside slurmrestd, which is left out where it is not installed."""
    ours, theirs, _ = _measure(20, 4, 1) if short else _measure(300, 8, 5)
    peer = "" if theirs is None else "slurmrestd"
    yield Row(
        measure="trivial jobs on the process engine, 8 clients",
        unit="/s",
        ours=tuple(ours.rates),
        theirs=() if theirs is None else tuple(theirs.rates),
        goal=Goal(Against.RATIO, at_least=2),
        peer=peer,
    )
    yield Row(
        measure="a trivial job on the process engine, all that runs for it",
        unit="ms of CPU",
        ours=tuple(ours.costs),
        theirs=() if theirs is None else tuple(theirs.costs),
        peer=peer,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=300)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ours, theirs, missing = _measure(options.jobs, options.clients, options.rounds)
    print(f"ours        {ours}")
    print(f"slurmrestd  {theirs if theirs is not None else f'left out: {missing}'}")


if __name__ == "__main__":
    main()
