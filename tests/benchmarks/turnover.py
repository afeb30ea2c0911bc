"""What each end costs the planner: `python -m tests.benchmarks.turnover`; no core, no engine, one process.

A cluster is full and many jobs wait; one job after another ends, and what can start does. Prints placements
per second of CPU time (so that another program on the machine changes little), the mean and the longest
event, the end of one task. Grows one thing at a time: nodes, queue, shapes, gangs, virtual clusters, memory.
What was decided is checked afterwards: nothing is given twice, and gangs are whole.
"""

from __future__ import annotations

import argparse
import gc
import random
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.dispatcher import Dispatcher, Preempt, Start
from pai_scheduler.cluster.node import Gpu, Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.resources import Demand
from pai_scheduler.cluster.scheduler_state import SchedulerState
from pai_scheduler.cluster.sort_key import SortKey
from pai_scheduler.job.spec import TaskRole
from pai_scheduler.service.garbage import collect_in_small_steps

from .checker import Held, faults
from .numpy_scan import NumpyScan
from .rows import Against, Goal, Row

TYPES = ("A100", "V100", "P100")
CPUS, MEMORY_MB, GPUS = 64, 256_000, 8


@dataclass(frozen=True)
class Case:
    """A cluster and what waits for it. `shapes`: how many different jobs; `gang`: tasks of each.

    `scarce`: what keeps jobs from starting is memory, with GPUs left over. `reserves`: resources are kept for
    a job that is overtaken too often.
    """

    nodes: int = 10_000
    queued: int = 100_000
    shapes: int = 4
    gang: int = 1
    clusters: int = 1
    scarce: bool = False
    reserves: bool = True

    @property
    def changed(self) -> str:
        """Say in what it differs from the first one."""
        parts = {
            f"{self.nodes:,} nodes": self.nodes != Case.nodes,
            f"{self.queued:,} queued": self.queued != Case.queued,
            f"{self.shapes:,} shapes": True,
            f"gangs of {self.gang}": self.gang != Case.gang,
            f"{self.clusters} virtual clusters": self.clusters != Case.clusters,
            "GPUs free but no memory": self.scarce,
            "no reservations": not self.reserves,
        }
        return ", ".join(part for part, differs in parts.items() if differs)

    def __str__(self) -> str:
        """Say it in few words."""
        return (
            f"{self.nodes:>7,} nodes {self.queued:>9,} queued {self.shapes:>5,} shapes,"
            f" gangs of {self.gang:>2}, {self.clusters} clusters{', scarce memory' if self.scarce else ''}"
            f"{'' if self.reserves else ', no reservations'}"
        )


def make_nodes(count: int) -> list[Node]:
    """Make nodes of three types of GPU."""
    return [
        Node(
            f"node-{number}",
            CPUS,
            MEMORY_MB,
            4_000,
            tuple(Gpu(index, TYPES[number % len(TYPES)]) for index in range(GPUS)),
        )
        for number in range(count)
    ]


def make_demands(case: Case) -> list[Demand]:
    """Make the shapes: 1, 2, 4 or 8 GPUs and cores and memory with them, a little less in each round.

    Each has the ports that every task of a job has.
    """
    demands = []
    for number in range(case.shapes):
        gpus = 1 << number % 4
        less = number // 4
        memory = gpus * (60_000 if case.scarce else 32_000) - less
        memory = max(1, min(memory, MEMORY_MB - less))
        demands.append(Demand(8 * gpus, memory, 1, gpus, ports=TaskRole("", "").all_ports))
    return demands


class Turnover:
    """A full cluster, its queue, and the jobs that run."""

    def __init__(self, case: Case) -> None:
        clusters = [VirtualCluster(f"vc{number}", 100 / case.clusters) for number in range(case.clusters)]
        overtake_limit = {} if case.reserves else {"overtake_limit": 1 << 60}
        self.nodes = make_nodes(case.nodes)
        self.dispatcher = Dispatcher(SchedulerState(Cluster(self.nodes), clusters, **overtake_limit))
        self.chance = random.Random(7)  # noqa: S311  (the same every time)
        self.case = case
        self.demands = make_demands(case)
        self.running: deque[str] = deque()
        #: who was stopped for another, and ends next
        self.stopped: deque[str] = deque()
        self.now = 0
        self.came = 0
        self.asked: dict[str, Demand] = {}
        #: CPU seconds that the planner has taken for ends; the notes made here beside it are not its work
        self.took = 0.0
        #: … and the most for one event, the end of a task: so long the program does nothing else
        self.longest = 0.0
        #: what was decided and when, and which task of which job had ended when
        self.starts: list[tuple[int, Start]] = []
        self.ends: dict[tuple[str, int], int] = {}

    def submit(self) -> None:
        """Let a job come: a shape by chance, of clusters in turn."""
        self.came += 1
        name = f"j{self.came}"
        self.asked[name] = self.chance.choice(self.demands)
        gang = [self.asked[name]] * self.case.gang
        cluster = f"vc{self.came % self.case.clusters}"
        self.dispatcher.state.wait(name, f"u{self.came % 50}", cluster, gang, SortKey(0, 0, self.came))

    def decide(self) -> int:
        """Take what is decided; return how many start."""
        self.now += 1
        return self.note(self.dispatcher.decide(self.now))

    def note(self, decisions: Sequence[Start | Preempt]) -> int:
        """Write down what was decided; return how many start."""
        started = [one for one in decisions if isinstance(one, Start)]
        for one in decisions:
            if isinstance(one, Preempt):
                self.stopped.extend(one.victims)
        self.starts += [(self.now, one) for one in started]
        self.running.extend(one.job_id for one in started)
        return len(started)

    def fill(self) -> None:
        """Let jobs come until the queue is as long as wanted."""
        while len(self.dispatcher.state.queue) < self.case.queued:
            for _ in range(100):
                self.submit()
            self.decide()
        mixed = list(self.running)
        self.chance.shuffle(mixed)
        self.running = deque(mixed)

    def end(self) -> int:
        """Let the next job end, task by task; return how many start."""
        job_id = (self.stopped or self.running).popleft()
        while (job_id, 0) in self.ends:
            # (it was stopped before its turn)
            job_id = self.running.popleft()
        started = 0
        for place in range(self.case.gang):
            before = self.took
            started += self.release(job_id, place)
            self.longest = max(self.longest, self.took - before)
        return started

    def release(self, job_id: str, place: int) -> int:
        """Let a task of a job end."""
        self.now += 1
        self.ends[job_id, place] = self.now
        begin = time.process_time()
        self.dispatcher.state.release(job_id, place)
        decisions = self.dispatcher.decide(self.now + 1)
        self.took += time.process_time() - begin
        self.now += 1
        return self.note(decisions)

    def check(self) -> None:
        """Raise AssertionError where something was given twice, or a gang began in parts."""
        held = (
            Held(
                start.job_id,
                place,
                given.node,
                self.asked[start.job_id].cpus,
                self.asked[start.job_id].memory_mb,
                given.gpus,
                begin,
                self.ends.get((start.job_id, place)),
            )
            for begin, start in self.starts
            for place, given in enumerate(start.assignments)
        )
        found = faults(self.nodes, held, dict.fromkeys(self.asked, self.case.gang))
        assert not found, found[:10]


@dataclass(frozen=True)
class Ends:
    """What ends have cost: seconds of CPU time each, sorted, and how many jobs have started by them.

    `longest`: seconds for one event, of which the end of a gang is as many as it has tasks.
    """

    took: list[float]
    started: int
    longest: float

    @property
    def rate(self) -> float:
        """Return the starts per second of CPU time."""
        return self.started / sum(self.took)


def ends(turnover: Turnover, seconds: float) -> Ends:
    """Let jobs end for so much CPU time, with garbage collected as the program has it."""
    before_this, callbacks = gc.get_threshold(), list(gc.callbacks)
    collect_in_small_steps()
    # the first leaves out what there is; a second tells Python that nothing is left, or it puts the next off
    gc.collect()
    gc.collect()
    turnover.took = turnover.longest = 0.0
    started = 0
    took = []
    while turnover.took < seconds and turnover.running:
        before = turnover.took
        started += turnover.end()
        took.append(turnover.took - before)
    gc.callbacks[:] = callbacks
    gc.unfreeze()
    gc.set_threshold(*before_this)
    return Ends(sorted(took), started, turnover.longest)


def measure(case: Case, seconds: float) -> str:
    """Measure one case; return a line of the table."""
    turnover = Turnover(case)
    begin = time.process_time()
    turnover.fill()
    filled = time.process_time() - begin
    found = ends(turnover, seconds)
    turnover.check()
    return (
        f"{case!s:84} {found.rate:10,.0f} /s  {1e6 * sum(found.took) / len(found.took):10,.0f} us an end  "
        f"99 % {1e3 * found.took[len(found.took) * 99 // 100]:8.2f} ms"
        f"  longest event {1e3 * found.longest:8.2f} ms  filled {filled:5.1f} s"
    )


class Scanned:
    """The same cluster and jobs for the scan; who fits goes first, in the order in which the jobs came."""

    def __init__(self, case: Case) -> None:
        self.scan = NumpyScan(make_nodes(case.nodes))
        self.chance = random.Random(7)  # noqa: S311  (the same every time)
        self.demands = make_demands(case)
        self.running: deque[tuple[int, Demand]] = deque()
        self.next = self.chance.choice(self.demands)
        while self.start():
            pass
        mixed = list(self.running)
        self.chance.shuffle(mixed)
        self.running = deque(mixed)

    def start(self) -> bool:
        """Start the next job; tell whether it had room."""
        number = self.scan.place(self.next)
        if number is not None:
            self.running.append((number, self.next))
            self.next = self.chance.choice(self.demands)
        return number is not None

    def rate(self, seconds: float) -> float:
        """Let jobs end for so much CPU time; return the starts per second of it."""
        begin = time.process_time()
        started = 0
        while (took := time.process_time() - begin) < seconds:
            self.scan.release(*self.running.popleft())
            while self.start():
                started += 1
        return started / took


def rows(*, short: bool) -> Iterator[Row]:
    """Measure each case beside the scan, in turn; nothing slow is wrong, but what was decided is checked."""
    wanted = list(dict.fromkeys(replace(case, nodes=20, queued=200) if short else case for case in cases()))
    goals = {4: 20_000, 4_000: 5_000}
    for case in wanted:
        turnover, scanned = Turnover(case), Scanned(case)
        turnover.fill()
        seconds = 0.02 if short else 3.0  # so that looks for garbage of each kind come
        mine, theirs = [], []
        for _ in range(2 if short else 3):
            mine.append(ends(turnover, seconds))
            theirs.append(scanned.rate(min(seconds, 0.5)))
        turnover.check()
        plain = case == replace(Case(), nodes=case.nodes, queued=case.queued, shapes=case.shapes)
        aim = 10_000 if case.nodes > 10_000 else goals.get(case.shapes)
        grows = plain and case.shapes == Case.shapes and case.queued == Case.queued and not short
        yield Row(
            measure=f"placements, {case.changed}",
            unit="/s of CPU",
            ours=tuple(one.rate for one in mine),
            peer="NumPy scan",
            theirs=tuple(theirs),
            goal=Goal(Against.VALUE, at_least=aim) if aim and plain else None,
            series="placements by nodes" if grows else "",
            size=case.nodes if grows else None,
        )
        yield Row(
            measure=f"longest event, {case.changed}",
            unit="ms of CPU",
            ours=tuple(1e3 * one.longest for one in mine),
            goal=Goal(Against.VALUE, at_most=10),
        )


def cases() -> Iterator[Case]:
    """Grow one thing at a time."""
    base = Case()
    yield replace(base, shapes=1)
    yield base
    yield replace(base, reserves=False)
    for shapes in (40, 400, 4_000):
        yield replace(base, shapes=shapes)
    for gang in (4, 64):
        yield replace(base, gang=gang)
    yield replace(base, clusters=4)
    yield replace(base, scarce=True)
    for nodes in (1_000, 100_000):
        yield replace(base, nodes=nodes)
    yield replace(base, queued=1_000_000)


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0, help="of CPU time for each case")
    parser.add_argument("--only", type=int, nargs="*", help="cases by number")
    parser.add_argument("--nodes", type=int)
    options = parser.parse_args(arguments)
    for number, case in enumerate(cases()):
        if not options.only or number in options.only:
            if options.nodes:
                case = replace(case, nodes=options.nodes, queued=10 * options.nodes)
            print(f"{number:2} {measure(case, options.seconds)}", flush=True)


if __name__ == "__main__":
    main()
