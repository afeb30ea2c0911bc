"""How fast the pure core decides: `python -m tests.benchmarks.placement`; no engine, no store, one process.

Prints, for clusters and queues of several sizes, how many events per second the core takes that end a job and
start the next one, that have nothing to place, and how long a person waits for an answer about one job. What
it prints is for people to compare, between two states of the code on one machine; nothing is asserted.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Gpu, Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.events import EndCause, Ended, Event, Started, Submitted, Tick
from pai_scheduler.core.instructions import LaunchAttempt, Outcome
from pai_scheduler.core.queries import forecast, waiting_reason
from pai_scheduler.core.state_machine import Core
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import parse_job

TYPES = ("A100", "V100", "P100")
CLUSTERS = ("default", "vision", "speech", "labs")


def make_nodes(count: int, in_rack: int) -> list[Node]:
    """Make nodes of 64 cores, 256 GB and eight GPUs, in three types; so many in a rack, 0: no racks."""
    return [
        Node(
            f"node-{number}",
            64,
            256_000,
            4_000,
            tuple(Gpu(index, TYPES[number % len(TYPES)]) for index in range(8)),
            rack=f"rack-{number // in_rack}" if in_rack else "",
        )
        for number in range(count)
    ]


def role(name: str, tasks: int, cpus: int, gpus: int) -> dict[str, Any]:
    """Describe a role of a job."""
    return {
        "name": name,
        "taskNumber": tasks,
        "command": "true",
        "cpuNumber": cpus,
        "memoryMB": 4000 * cpus,
        "gpuNumber": gpus,
    }


def make_specs(clusters: Iterable[str]) -> list[JobSpec]:
    """Make a mix of jobs for every virtual cluster: single tasks, large gangs, gangs of different roles."""
    kinds: list[dict[str, Any]] = [
        {"taskRoles": [role("main", 1, 4, 1)]},
        {"taskRoles": [role("main", 1, 8, 2)], "gpuType": "V100"},
        {"taskRoles": [role("main", 1, 16, 4)], "gpuType": "A100"},
        {"taskRoles": [role("main", 1, 8, 0)]},
        {"taskRoles": [role("worker", 4, 32, 8)]},
        {"taskRoles": [role("ps", 2, 8, 0), role("worker", 6, 8, 2)]},
    ]
    return [
        parse_job({"jobName": "job", "image": "image", "virtualCluster": cluster, **kind})
        for kind in kinds
        for cluster in clusters
    ]


class Bench:
    """A core under load, and the jobs that run on it."""

    def __init__(self, nodes: int, clusters: int, in_rack: int) -> None:
        names = CLUSTERS[:clusters]
        shares = [VirtualCluster(name, 100 / clusters) for name in names]
        self.core = Core(Cluster(make_nodes(nodes, in_rack)), None, shares)
        self.specs = make_specs(names)
        self.submitted = 0
        self.now = 1_700_000_000_000
        self.running: deque[str] = deque()

    def handle(self, event: Event) -> int:
        """Hand one event to the core; return how many attempts start."""
        outcome = Outcome()
        self.core.handle(event, outcome)
        started = [one.job_id for one in outcome.instructions if isinstance(one, LaunchAttempt)]
        self.running.extend(started)
        return len(started)

    def submit(self, count: int) -> None:
        """Submit jobs of all kinds in turn."""
        for _ in range(count):
            spec = self.specs[self.submitted % len(self.specs)]
            self.submitted += 1
            self.now += 1
            user = f"user-{self.submitted % 50}"
            self.handle(Submitted(self.now, f"j{self.submitted}", user, spec, self.submitted))

    def fill(self) -> int:
        """Submit until nothing more starts for a while; return how many jobs run."""
        before = -1
        while before != len(self.running):
            before = len(self.running)
            self.submit(50 * len(self.specs))
        return len(self.running)

    def start(self, job_id: str) -> None:
        """Say that all tasks of a job run."""
        for task in self.tasks(job_id):
            self.handle(Started(task, self.now, "127.0.0.1", "1"))

    def end(self, job_id: str) -> int:
        """Say that all tasks of a job have succeeded; return how many attempts start."""
        self.now += 1
        return sum(self.handle(Ended(task, self.now, EndCause.EXITED, 0)) for task in self.tasks(job_id))

    def tasks(self, job_id: str) -> list[TaskRef]:
        """List the tasks of a job's present attempt."""
        attempt = self.core.jobs[job_id].attempt
        return [task.ref for task in attempt.tasks.values()] if attempt is not None else []


def per_second(count: int, seconds: float) -> str:
    """Write a rate."""
    return f"{count / seconds:12,.0f} /s"


def timed(what: str, step: Callable[[], int], seconds: float) -> None:
    """Repeat a step for so long; print how many of what it counts are done per second, and the slowest."""
    done, slowest, steps = 0, 0.0, 0
    begin = last = time.perf_counter()
    while last - begin < seconds:
        done += step()
        steps += 1
        now = time.perf_counter()
        slowest, last = max(slowest, now - last), now
    mean = (last - begin) / steps
    rate = per_second(done, last - begin)
    print(f"  {what:44}{rate}   mean {mean * 1e3:8.3f} ms   worst {slowest * 1e3:8.2f} ms")


def measure(nodes: int, queued: int, clusters: int, seconds: float, in_rack: int) -> None:
    """Measure one size of cluster and queue."""
    bench = Bench(nodes, clusters, in_rack)
    begin = time.perf_counter()
    jobs = bench.fill()
    tasks = sum(len(bench.tasks(job_id)) for job_id in bench.running)
    print(f"\n{nodes:,} nodes, {clusters} virtual clusters; full with {jobs:,} jobs ({tasks:,} tasks)")
    print(
        f"  {'jobs submitted until it was full':44}{per_second(bench.submitted, time.perf_counter() - begin)}"
    )
    begin, before = time.perf_counter(), len(bench.core.queue)
    bench.submit(max(0, queued - before))
    waiting = len(bench.core.queue)
    if waiting > before:
        rate = per_second(waiting - before, time.perf_counter() - begin)
        print(f"  {'jobs submitted that have to wait':44}{rate}")
    print(f"  {waiting:,} wait:")
    mixed = list(bench.running)
    random.Random(1).shuffle(mixed)  # noqa: S311  (the same every time)
    bench.running = deque(mixed)
    gc.collect()
    gc.freeze()
    timed("tasks that start (nothing to place)", lambda: start_one(bench), seconds)
    timed("ticks (nothing to place)", lambda: bench.handle(Tick(bench.now)) + 1, seconds)
    timed("jobs started as others end", lambda: bench.end(bench.running.popleft()), seconds)
    print_nearness(bench)
    job = bench.core.jobs[next(bench.core.queue.in_order("default"))]
    timed(
        "answers to: why does it wait",
        lambda: 1 if waiting_reason(bench.core, job, bench.now) else 0,
        seconds,
    )
    timed(
        "answers to: would this fit",
        lambda: 1 if forecast(bench.core, "user-1", bench.specs[-1], bench.now) else 0,
        seconds,
    )
    gc.unfreeze()


def print_nearness(bench: Bench) -> None:
    """Print how near each other the tasks of the running jobs are that have more than one."""
    uses, found = bench.core.cluster.uses, Counter[str]()
    for job_id in bench.running:
        attempt = bench.core.jobs[job_id].attempt
        if attempt is None or len(attempt.tasks) < 2:
            continue
        nodes = {task.assignment.node for task in attempt.tasks.values()}
        racks = {uses[node].node.rack or node for node in nodes}
        found[
            "on one node" if len(nodes) == 1 else "in one rack" if len(racks) == 1 else "further apart"
        ] += 1
    print("  gangs " + ", ".join(f"{what}: {count:,}" for what, count in sorted(found.items())))


def ask(question: Callable[..., object], *about: object) -> int:
    """Ask once."""
    question(*about)
    return 1


def start_one(bench: Bench) -> int:
    """Say that the oldest job runs."""
    job_id = bench.running.popleft()
    bench.start(job_id)
    bench.running.append(job_id)
    return 1


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--queued", type=int, nargs="+", default=[100_000])
    parser.add_argument("--clusters", type=int, nargs="+", default=[1, 4], help="virtual clusters, 1 to 4")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each thing is measured")
    parser.add_argument("--in-rack", type=int, default=0, help="nodes of one rack; 0: no racks")
    parser.add_argument("--profile", action="store_true", help="print what takes the time instead")
    arguments = parser.parse_args()
    profile = cProfile.Profile()
    for nodes in arguments.nodes:
        for queued in arguments.queued:
            for clusters in arguments.clusters:
                of = nodes, queued, clusters
                if arguments.profile:
                    profile.runcall(measure, *of, arguments.seconds, arguments.in_rack)
                else:
                    measure(*of, arguments.seconds, arguments.in_rack)
    if arguments.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
