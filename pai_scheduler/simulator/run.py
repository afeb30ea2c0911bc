"""Replays a trace: the core that runs in the service, an engine whose tasks only take time, and a clock.

The clock goes from one moment at which something happens to the next; all that happens at one moment is
known before anything is decided. A task starts when it is told to, and ends when its time is over. One that
is stopped keeps its place for its whole grace, unless its time is over before; a job that was stopped for
others begins anew.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.events import EndCause, Ended, Event, Started, Submitted, Tick
from pai_scheduler.core.instructions import KillTask, LaunchAttempt, Outcome, WakeAt
from pai_scheduler.core.model import Attempt, State, Task
from pai_scheduler.core.queries import start_of_waiting
from pai_scheduler.core.state_machine import Core, CoreSettings

from .curve import Curve
from .trace import TraceJob

#: After so many jobs somebody who waits is told.
_TOLD_EVERY = 50_000


@dataclass(slots=True)
class Replayed:
    """How a job fared. Times in ms as in the trace; `started`: its present attempt; None: it has none."""

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
    """What came out: all jobs in the order of submission, and what was used when."""

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
