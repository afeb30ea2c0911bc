"""Replay of a trace: the core that runs in the service, an engine whose tasks only take time, and a clock."""

from __future__ import annotations

import heapq
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from msgspec.structs import replace

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.events import EndCause, Ended, Event, Started, Submitted, Tick
from pai_scheduler.core.instructions import KillTask, LaunchAttempt, Outcome, WakeAt
from pai_scheduler.core.model import Attempt, State, Task
from pai_scheduler.core.queries import start_of_waiting
from pai_scheduler.core.state_machine import Core, CoreSettings

from .traces import TraceJob

# What was used at each moment of a replay: GPUs, who waited, and how free GPUs were scattered.


@dataclass(frozen=True, slots=True)
class Span:
    """A while in which nothing changed; times in ms."""

    begin: int
    end: int
    used: int
    waiting: int
    #: free GPUs on nodes of which some are taken
    scattered: int
    #: a job waited that asks for no more GPUs than were free
    idle: bool

    @property
    def length(self) -> int:
        """Return how long it was, in ms."""
        return self.end - self.begin


class Curve:
    """Told what changes as the clock goes; remembers each while in which something was different."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.gpus = sum(len(node.gpus) for node in nodes)
        self._sizes = {node.name: len(node.gpus) for node in nodes}
        self._free = dict(self._sizes)
        self._used = 0
        self._scattered = 0
        self._waiting = 0
        #: how many wait that ask for so many GPUs
        self._asked: Counter[int] = Counter()
        self._now: int | None = None
        self._times = array("q")
        self._values = array("q")

    def move(self, time: int) -> None:
        """Go on to a moment: what is now was so until then."""
        if self._now is not None and time > self._now:
            self._times.append(self._now)
            idle = self._waiting > 0 and min(self._asked) <= self.gpus - self._used
            self._values.extend((self._used, self._waiting, self._scattered, idle))
        self._now = time

    def close(self) -> None:
        """Know that nothing comes after this moment."""
        if self._now is not None:
            self._times.append(self._now)

    def come(self, job: TraceJob) -> None:
        """A job waits."""
        self._waiting += 1
        self._asked[job.gpus] += 1

    def leave(self, job: TraceJob) -> None:
        """It waits no more."""
        self._waiting -= 1
        self._asked[job.gpus] -= 1
        if not self._asked[job.gpus]:
            del self._asked[job.gpus]

    def take(self, assignment: Assignment) -> None:
        """A task has its GPUs."""
        self._change(assignment, len(assignment.gpus))

    def give(self, assignment: Assignment) -> None:
        """It has them no more."""
        self._change(assignment, -len(assignment.gpus))

    def _change(self, assignment: Assignment, taken: int) -> None:
        if taken:
            node = assignment.node
            self._used += taken
            self._scattered -= self._scattered_on(node)
            self._free[node] -= taken
            self._scattered += self._scattered_on(node)

    def _scattered_on(self, node: str) -> int:
        free = self._free[node]
        return free if free < self._sizes[node] else 0

    def __iter__(self) -> Iterator[Span]:
        for number in range(len(self._times) - 1):
            used, waiting, scattered, idle = self._values[4 * number : 4 * number + 4]
            yield Span(self._times[number], self._times[number + 1], used, waiting, scattered, bool(idle))


# Replays a trace: the core that runs in the service, an engine whose tasks only take time, and a clock.
#
# The clock goes from one moment at which something happens to the next; all that happens at one moment is
# known before anything is decided. A task starts when it is told to, and ends when its time is over. One
# that is stopped keeps its place for its whole grace, unless its time is over before; a job that was
# stopped for others begins anew.

#: After so many jobs somebody who waits is told.
_TOLD_EVERY = 50_000


@dataclass(slots=True)
class Replayed:
    """One replayed job. Times in ms as in the trace; `started`: its present attempt; None: it has none."""

    job: TraceJob
    started: int | None = None
    first_started: int | None = None
    ended: int | None = None
    succeeded: bool = False
    #: how often it was stopped for others, when last, and for how long it had run in vain by then
    preemptions: int = 0
    stopped: int = 0
    lost_ms: int = 0
    #: for how long it had run before its present attempt, and need not again, as it writes checkpoints
    done_ms: int = 0
    #: it waited after its submission, and was said to start then; None: nobody knew
    asked: bool = False
    said: int | None = None


@dataclass(slots=True)
class Replay:
    """The result of a replay: all jobs in the order of submission, and resource usage over time."""

    jobs: Sequence[Replayed]
    curve: Curve


#: What an observer is told: the time, an attempt that got its resources, or a task that gave back its own.
Observer = Callable[[int, Attempt | Task], None]


@dataclass(slots=True)
class _Simulation:
    core: Core
    replayed: dict[str, Replayed]
    curve: Curve
    observe: Observer | None
    ends: bool
    checkpoints: bool
    #: what will happen: the number keeps the order in which it was found
    due: list[tuple[int, int, Event]] = field(default_factory=list)
    #: at which times the core is to be woken
    wakes: set[int] = field(default_factory=set)
    made: int = 0

    def handle(self, events: Sequence[Event], time: int) -> None:
        """Hand all events of a moment to the core, and do what it says, until nothing more follows."""
        while events:
            outcome = Outcome()
            for left, event in enumerate(events, 1 - len(events)):
                if isinstance(event, Ended):
                    self._note_end(event)
                self.core.handle(event, outcome, more=left < 0)
            events = []
            for instruction in outcome.instructions:
                match instruction:
                    case LaunchAttempt():
                        events += self._launch(instruction, time)
                    case KillTask():
                        events += self._kill(instruction, time)
                    case WakeAt() if instruction.time not in self.wakes:
                        self.wakes.add(instruction.time)
                        heapq.heappush(self.due, (instruction.time, 0, Tick(instruction.time)))
            for job_id, job in outcome.jobs.items():
                if job.completed is not None:
                    fared = self.replayed[job_id]
                    fared.ended, fared.succeeded = job.completed, job.state is State.SUCCEEDED

    def _launch(self, launch: LaunchAttempt, time: int) -> Iterator[Event]:
        job = self.core.jobs[launch.job_id]
        attempt, fared = job.attempt, self.replayed[job.id]
        if attempt is None:
            return
        if self.observe is not None:
            self.observe(time, attempt)
        if fared.first_started is None:
            fared.first_started = time
        fared.started = time
        self.curve.leave(fared.job)
        for task in attempt.tasks.values():
            self.curve.take(task.assignment)
            yield Started(task.ref, time, "", "")
            if self.ends:
                self._expect(Ended(task.ref, time + fared.job.run_ms - fared.done_ms, EndCause.EXITED, 0))

    def _kill(self, kill: KillTask, time: int) -> Iterator[Event]:
        """Let a task have its grace, which it uses up."""
        self.replayed[kill.task.job_id].stopped = time
        end = Ended(kill.task, kill.until, EndCause.KILLED, 143)
        if end.time <= time:
            yield end
        else:
            self._expect(end)

    def _expect(self, end: Ended) -> None:
        self.made += 1
        heapq.heappush(self.due, (end.time, self.made, end))

    def _note_end(self, event: Ended) -> None:
        job = self.core.jobs.get(event.task.job_id)
        attempt = job.attempt if job is not None else None
        if job is None or attempt is None or attempt.number != event.task.attempt:
            return
        task = attempt.tasks[event.task.role, event.task.index]
        if task.state.ended:
            return
        self.curve.give(task.assignment)
        if self.observe is not None:
            self.observe(event.time, task)
        last = sum(not other.state.ended for other in attempt.tasks.values()) == 1
        if last and not job.is_decided and attempt.verdict is not None:
            # it was stopped for others, and waits again
            fared = self.replayed[job.id]
            fared.preemptions += 1
            began = event.time if fared.started is None else fared.started
            if self.checkpoints:
                # (its grace is the time in which it writes the last one)
                fared.done_ms += fared.stopped - began
                began = fared.stopped
            fared.lost_ms += event.time - began
            fared.started = None
            self.curve.come(fared.job)


def replay(
    jobs: Iterable[TraceJob],
    nodes: Sequence[Node],
    virtual_clusters: Iterable[VirtualCluster] = (VirtualCluster("default", 100.0),),
    settings: CoreSettings | None = None,
    *,
    ends: bool = True,
    observe: Observer | None = None,
    estimate: bool = False,
    checkpoints: bool = False,
    tell: Callable[[int], None] | None = None,
) -> Replay:
    """Submit all jobs at their times and go on until nothing more happens.

    A job that never starts is left as it waits. `ends`: False lets no job end. `observe`: told of each
    attempt that gets its resources and each task that gives back its own; `estimate`: estimate for each job
    that does not start at once when it will; `checkpoints`: who is stopped for others goes on where it was,
    and whoever may be stopped for other virtual clusters may be for its own; `tell`: how many were submitted.
    """
    core = Core(Cluster(nodes), settings, virtual_clusters)
    ordered = sorted(jobs, key=lambda job: job.submitted)
    replayed = {f"{number:x}": Replayed(job) for number, job in enumerate(ordered, 1)}
    simulation = _Simulation(core, replayed, Curve(nodes), observe, ends, checkpoints)
    coming = deque(replayed.items())
    due, count = simulation.due, 0
    # (what a job that has ended was to be woken for is no matter)
    while coming or (due and core.jobs):
        times = [due[0][0]] if due else []
        if coming:
            times.append(coming[0][1].job.submitted)
        time = min(times)
        simulation.curve.move(time)
        events: list[Event] = []
        while due and due[0][0] == time:
            events.append(heapq.heappop(due)[2])
        simulation.wakes.discard(time)
        came = []
        while coming and coming[0][1].job.submitted == time:
            job_id, fared = coming.popleft()
            came.append(job_id)
            count += 1
            simulation.curve.come(fared.job)
            spec = fared.job.spec
            if checkpoints and fared.job.preemptible:
                spec = replace(spec, extras={**spec.extras, "preemptible": True})
            events.append(Submitted(time, job_id, fared.job.user, spec, count))
            if tell is not None and not count % _TOLD_EVERY:
                tell(count)
        simulation.handle(events, time)
        for job_id in came if estimate else ():
            if job_id in core.queue:
                replayed[job_id].asked = True
                replayed[job_id].said = start_of_waiting(core, job_id, time)
    simulation.curve.close()
    return Replay(list(replayed.values()), simulation.curve)


# How true the estimates of a replay were: when jobs were said to start, and when they did.

#: What is told in seconds is never less than 1; so short a wait is as true as one can say.
_LEAST_MS = 1000


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Of the jobs that waited when they were submitted, how true it was what they were told then.

    `ratio`: the real wait, in parts of the one that was told; its median, None: nobody was told anything.
    """

    #: who started at once, and was told nothing
    at_once: int
    waited: int
    #: who was told that nobody knows
    untold: int
    #: the real wait was within half and twice of what was told, less than half, more than twice
    true: int
    sooner: int
    later: int
    ratio: float | None

    @property
    def told(self) -> int:
        """Count the jobs that waited and were told when they would start."""
        return self.waited - self.untold

    @classmethod
    def of(cls, jobs: Iterable[Replayed]) -> Accuracy:
        """Compare; a job that was told when it would start, and never did, started later."""
        at_once = untold = true = sooner = later = 0
        ratios = []
        for one in jobs:
            if not one.asked:
                at_once += 1
            elif one.said is None:
                untold += 1
            elif one.first_started is None:
                later += 1
                ratios.append(float("inf"))
            else:
                ratio = _wait(one, one.first_started) / _wait(one, one.said)
                ratios.append(ratio)
                true += 0.5 <= ratio <= 2
                sooner += ratio < 0.5
                later += ratio > 2
        told = true + sooner + later
        return cls(at_once, told + untold, untold, true, sooner, later, median(ratios) if ratios else None)


def _wait(one: Replayed, start: int) -> int:
    return max(_LEAST_MS, start - one.job.submitted)


def document(found: Accuracy) -> dict[str, object]:
    """Return the numbers for JSON."""
    return {
        "startedAtOnce": found.at_once,
        "waited": found.waited,
        "notEstimated": found.untold,
        "withinFactor2": found.true,
        "sooner": found.sooner,
        "later": found.later,
        "medianRatio": None if found.ratio in (None, float("inf")) else round(found.ratio or 0.0, 3),
    }
