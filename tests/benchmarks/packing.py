"""What the exact search gains on recorded clusters: `python -m tests.benchmarks.packing TRACES` (minutes).

Plays a trace through the pure core on a virtual clock, with the exact search and with best fit
alone, and prints both. `TRACES` is a folder with `muri/trace*.csv.gz` (Philly's jobs as of the
Muri paper) and `openb/*.csv.gz` (Alibaba's cluster of 2023). What was recorded are gangs of equal tasks and
single tasks; `mixed` are the same jobs made of tasks of different shapes, where packing is hardest.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import heapq
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

from pai_scheduler.cluster.bin_packing import ExactSearch
from pai_scheduler.cluster.node import Gpu, Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.events import EndCause, Ended, Event, Submitted, Tick
from pai_scheduler.core.instructions import LaunchAttempt, Outcome
from pai_scheduler.core.state_machine import Core
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import parse_job

#: cores, memory in MB, GPUs
Shape = tuple[int, int, int]
_DAY, _FOREVER = 86_400_000, 10**12
#: Jobs that are made of tasks of different shapes: a queue of so many takes a minute.
_MIXED = 250


@dataclass(frozen=True)
class TracedJob:
    """A job of a trace: when it came, how long it ran (both in ms), and its tasks."""

    submitted: int
    duration: int
    tasks: tuple[Shape, ...]

    @property
    def gpus(self) -> int:
        """Count the GPUs of all tasks."""
        return sum(gpus for _, _, gpus in self.tasks)


@dataclass(frozen=True)
class Replayed:
    """How a trace went; `at_last`: GPUs in use when the last job had come.

    `found`: states in which the exact search placed a gang for which best fit found no room.
    """

    gpu_use: float
    at_last: float
    makespan: float
    waits: Sequence[float]
    never: int
    found: int
    seconds: float

    @property
    def columns(self) -> Mapping[str, float]:
        """Return what is compared: GPUs in use on average in per cent, hours, numbers of jobs."""
        return {
            "GPU use %": 100 * self.gpu_use,
            "at the last %": 100 * self.at_last,
            "makespan h": self.makespan / 3.6e6,
            "mean wait h": statistics.fmean(self.waits) / 3.6e6,
            "p95 wait h": statistics.quantiles(self.waits, n=20)[-1] / 3.6e6,
            "never run": self.never,
            "found": self.found,
            "run time s": self.seconds,
        }


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Read a table."""
    with gzip.open(path, "rt") as lines:
        yield from csv.DictReader(lines)


def read_muri(path: Path) -> list[TracedJob]:
    """Read a trace of the Muri paper: a job's tasks have eight GPUs at most, and eight cores for each."""
    jobs = []
    for row in rows(path):
        gpus, work = int(row["num_gpu"]), int(row["iterations"]) * float(row["iteration_time"]) * 1.015
        each = min(gpus, 8)
        jobs.append(
            TracedJob(int(row["submit_time"]), int(work), ((8 * each, 32_000 * each, each),) * (gpus // each))
        )
    return jobs


def muri_nodes(count: int) -> list[Node]:
    """Make nodes of eight GPUs; cores for them, and some for tasks without."""
    return [node(f"n{number}", 80, 400_000, {"P100": 8}) for number in range(count)]


def read_openb(folder: Path) -> list[TracedJob]:
    """Read Alibaba's tasks; a share of a GPU is a whole one here."""
    return [
        TracedJob(
            1000 * int(row["creation_time"]),
            1000 * max(1, int(row["deletion_time"]) - int(row["creation_time"])),
            ((max(1, int(row["cpu_milli"]) // 1000), max(100, int(row["memory_mib"])), int(row["num_gpu"])),),
        )
        for row in rows(folder / "openb_pod_list_default.csv.gz")
    ]


def openb_nodes(folder: Path, one_in: int) -> list[Node]:
    """Read Alibaba's nodes, one in so many."""
    found = rows(folder / "openb_node_list_gpu_node.csv.gz")
    return [
        node(
            row["sn"], int(row["cpu_milli"]) // 1000, int(row["memory_mib"]), {row["model"]: int(row["gpu"])}
        )
        for row in islice(found, 0, None, one_in)
    ]


def node(name: str, cpus: int, memory_mb: int, gpus: Mapping[str, int]) -> Node:
    """Make a node; storage is never what lacks."""
    kinds = [kind for kind, count in gpus.items() for _ in range(count)]
    return Node(name, cpus, memory_mb, 100_000, tuple(Gpu(index, kind) for index, kind in enumerate(kinds)))


def split(job: TracedJob, chance: random.Random) -> TracedJob:
    """Make a gang of different tasks of a job: a chief, workers of other sizes, and servers without a GPU."""
    left = job.gpus
    tasks: list[Shape] = []
    while left and job.gpus > 1:
        gpus = min(left, chance.choice((1, 2, 2, 3, 4, 5, 6)))
        tasks.append(
            (chance.choice((4, 6, 8, 12)) * gpus, chance.choice((16_000, 32_000, 48_000)) * gpus, gpus)
        )
        left -= gpus
    if not tasks:
        return job
    return replace(job, tasks=(*tasks, *[(8, 16_000, 0)] * chance.randrange(3)))


def together(jobs: Sequence[TracedJob]) -> list[TracedJob]:
    """Make gangs of two to five jobs that came after each other."""
    gangs: list[TracedJob] = []
    waiting = iter(jobs)
    while gang := list(islice(waiting, 2 + len(gangs) % 4)):
        tasks = tuple(task for job in gang for task in job.tasks)
        gangs.append(TracedJob(gang[-1].submitted, max(job.duration for job in gang), tasks))
    return gangs


def until_full(jobs: Sequence[TracedJob], nodes: Sequence[Node], seed: int) -> list[TracedJob]:
    """Draw jobs that never end, until they ask for 130 % of the GPUs, as FGD's authors do."""
    chance = random.Random(seed)  # noqa: S311  (the same every time)
    left = 1.3 * sum(len(one.gpus) for one in nodes)
    drawn: list[TracedJob] = []
    while left > 0:
        job = chance.choice(jobs)
        drawn.append(replace(job, submitted=len(drawn), duration=_FOREVER))
        left -= job.gpus
    return drawn


def spec_of(job: TracedJob) -> JobSpec:
    """Make a job: a role for each shape of task."""
    shapes = {shape: job.tasks.count(shape) for shape in job.tasks}
    roles: list[dict[str, Any]] = [
        {
            "name": f"r{number}",
            "taskNumber": count,
            "cpuNumber": cpus,
            "memoryMB": memory_mb,
            "gpuNumber": gpus,
            "command": "true",
        }
        for number, ((cpus, memory_mb, gpus), count) in enumerate(shapes.items())
    ]
    return parse_job({"jobName": "job", "image": "image", "taskRoles": roles})


def replay(nodes: Sequence[Node], jobs: Sequence[TracedJob], *, exact: bool) -> Replayed:
    """Play a trace to its end."""
    core = Core(Cluster(nodes))
    started: dict[str, int] = {}
    ends: list[tuple[int, str]] = []
    found: set[tuple[int, int]] = set()
    search = ExactSearch.arrange

    def arrange(self: ExactSearch, state: int, rooms: Any, gang: Any, gpu_room: Any) -> Any:
        places = search(self, state, rooms, gang, gpu_room) if exact else None
        if places is not None:
            found.add((state, hash(tuple(gang))))
        return places

    def handle(event: Event, now: int) -> None:
        outcome = Outcome()
        core.handle(event, outcome)
        for one in outcome.instructions:
            if isinstance(one, LaunchAttempt):
                started[one.job_id] = now
                heapq.heappush(ends, (now + jobs[int(one.job_id)].duration, one.job_id))

    def end_until(moment: float) -> int:
        now = 0
        while ends and ends[0][0] <= moment:
            now, job_id = heapq.heappop(ends)
            attempt = core.jobs[job_id].attempt
            for task in list(attempt.tasks.values()) if attempt is not None else ():
                handle(Ended(task.ref, now, EndCause.EXITED, 0), now)
        return now

    specs = {job.tasks: spec_of(job) for job in jobs}
    begin = time.perf_counter()
    full = 0
    with mock.patch.object(ExactSearch, "arrange", arrange):
        for number, job in enumerate(jobs):
            end_until(job.submitted)
            handle(
                Submitted(job.submitted, str(number), f"u{number % 20}", specs[job.tasks], number),
                job.submitted,
            )
        full = sum(jobs[int(job_id)].gpus for _, job_id in ends)
        last = end_until(float("inf"))
        handle(Tick(last + _DAY), last + _DAY)
        last = max(last, end_until(float("inf")))
    gpus = sum(len(one.gpus) for one in nodes)
    ran = [jobs[int(job_id)] for job_id in started]
    makespan = last - min(job.submitted for job in jobs)
    return Replayed(
        sum(job.gpus * job.duration for job in ran) / (gpus * makespan),
        full / gpus,
        makespan,
        [at - jobs[int(job_id)].submitted for job_id, at in started.items()],
        len(jobs) - len(ran),
        len(found),
        time.perf_counter() - begin,
    )


def compare(name: str, nodes: Sequence[Node], jobs: Sequence[TracedJob]) -> None:
    """Play a trace with and without the exact search; print both, and how much best fit loses."""
    gpus = sum(len(one.gpus) for one in nodes)
    print(f"\n{name}: {len(jobs):,} jobs on {len(nodes):,} nodes with {gpus:,} GPUs")
    exact, best_fit = (replay(nodes, jobs, exact=exact).columns for exact in (True, False))
    print(f"  {'':12}{'exact':>12}{'best fit':>12}{'ratio':>9}")
    for column, value in exact.items():
        ratio = f"{best_fit[column] / value:9.4f}" if value else f"{'':9}"
        print(f"  {column:12}{value:12,.2f}{best_fit[column]:12,.2f}{ratio}", flush=True)


def main() -> None:
    """Read the command line and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("traces", type=Path, help="the folder with the traces")
    parser.add_argument(
        "--mixes", type=int, default=0, help="in how many ways jobs are made of different tasks (slow)"
    )
    parser.add_argument("--only", default="", help="leave out whose name does not have this")
    options = parser.parse_args()
    cases: dict[str, tuple[Sequence[Node], Sequence[TracedJob]]] = {}
    for path in sorted((options.traces / "muri").glob("*.csv.gz")):
        jobs = read_muri(path)
        for nodes in (8, 5):
            cases[f"{path.name} on {nodes} nodes, as recorded"] = muri_nodes(nodes), jobs
            for seed in range(options.mixes):
                chance = random.Random(seed)  # noqa: S311  (the same every time)
                mixed = [split(job, chance) for job in jobs[:_MIXED]]
                cases[f"{path.name} on {nodes} nodes, mixed ({seed})"] = muri_nodes(nodes), mixed
    folder = options.traces / "openb"
    pods = read_openb(folder)
    nodes_ = openb_nodes(folder, 8)
    for kind, jobs in (("as recorded", pods), ("mixed", together(pods))):
        cases[f"openb, own load, {kind}"] = openb_nodes(folder, 1), jobs
        for seed in range(options.mixes):
            name = f"openb, one node in 8, until it is full, {kind} ({seed})"
            cases[name] = nodes_, until_full(jobs, nodes_, seed)
    for name, case in cases.items():
        if options.only in name:
            compare(name, *case)


if __name__ == "__main__":
    main()
