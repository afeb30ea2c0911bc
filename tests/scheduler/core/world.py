"""A core with a clock and an engine that does only what the test says; it counts along what is durable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from msgspec import structs

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.fair_share import DecayedUsage, Sharer
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.events import (
    EndCause,
    Ended,
    Event,
    HeldAfterFailure,
    NodesChanged,
    Progress,
    Reordered,
    SharesChanged,
    Started,
    StopRequested,
    Submitted,
    Tick,
)
from pai_scheduler.core.instructions import (
    Instruction,
    KillTask,
    LaunchAttempt,
    Outcome,
    ReleaseAttempt,
    WakeAt,
)
from pai_scheduler.core.model import Attempt, Job, JobEvent, State, Task
from pai_scheduler.core.queries import Forecast, forecast
from pai_scheduler.core.state_machine import Core, CoreSettings
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import parse_job
from pai_scheduler.store import rows, tables
from tests.scheduler.core.validation import validate
from tests.scheduler.making import make_config, make_node, make_role

GRACE_MS = 10_000


class Disk:
    """Keeps what outcomes say as the store's rows, and nothing else: what an outcome forgets is lost."""

    def __init__(self) -> None:
        self.jobs: dict[str, dict[str, Any]] = {}
        self.attempts: dict[tuple[str, int], dict[str, Any]] = {}
        self.tasks: dict[TaskRef, dict[str, Any]] = {}
        self.configs: dict[str, str] = {}
        self.job_events: list[JobEvent] = []
        self.usages: dict[Sharer, DecayedUsage] = {}
        self.dependencies: dict[str, dict[int, Dependency]] = {}

    def write(self, outcome: Outcome) -> None:
        for job in outcome.jobs.values():
            self.jobs[job.id] = rows.job_row(job) | {
                "config": self.configs[job.id],
                "submitted": None,
                "submitted_type": None,
            }
        for (job_id, place), dependency in outcome.dependencies.items():
            self.dependencies.setdefault(job_id, {})[place] = dependency
        for (job_id, number), attempt in outcome.attempts.items():
            self.attempts[job_id, number] = rows.attempt_row(job_id, attempt)
        for task in outcome.tasks.values():
            assert (task.ref.job_id, task.ref.attempt) in self.attempts
            self.tasks[task.ref] = rows.task_row(task)
        self.job_events.extend(outcome.job_events)
        for sharer, usage in outcome.usages.items():
            self.usages.pop(sharer, None)
            if usage is not None:
                self.usages[sharer] = replace(usage)
        for job_id in outcome.deleted:
            self.jobs.pop(job_id, None)
            self.attempts = {key: row for key, row in self.attempts.items() if key[0] != job_id}
            self.tasks = {ref: row for ref, row in self.tasks.items() if ref.job_id != job_id}

    def waited_for(self) -> dict[str, list[Dependency]]:
        waiting = [job_id for job_id, row in self.jobs.items() if row["sub_state"] == "DEPENDENCY_WAIT"]
        return {job_id: [*self.dependencies[job_id].values()] for job_id in waiting}

    def ended_states(self) -> dict[str, State]:
        ended = (row for row in self.jobs.values() if row["sub_state"] == "ENDED")
        return {row["id"]: State(row["state"]) for row in ended}

    def live_jobs(self) -> list[Job]:
        return [self.job(job_id) for job_id, row in self.jobs.items() if row["sub_state"] != "ENDED"]

    def job(self, job_id: str) -> Job:
        row = self.jobs[job_id]
        number = row["attempt"]
        values = [row[column.name] for column in tables.jobs.columns]
        return rows.read_job(values, None if number is None else self.attempt(job_id, number))

    def attempt(self, job_id: str, number: int) -> Attempt:
        row: Any = self.attempts[job_id, number]
        attempt = rows.read_attempt(row)
        for ref, task_row in self.tasks.items():
            if ref.job_id == job_id and ref.attempt == number:
                stored: Any = task_row
                attempt.tasks[ref.role, ref.index] = rows.read_task(stored)
        return attempt


class World:
    """Hands events to a core, checks that each outcome is complete, and gives its instructions."""

    def __init__(
        self,
        *nodes: Node,
        shares_host_ports: bool = False,
        virtual_clusters: Iterable[VirtualCluster] = (VirtualCluster("default", 100),),
        settings: CoreSettings | None = None,
    ) -> None:
        self.nodes = nodes or (make_node(),)
        self.virtual_clusters = tuple(virtual_clusters)
        self.settings = settings or CoreSettings()
        self.shares_host_ports = shares_host_ports
        self.now = 1_000_000
        #: whether the core is looked at after each event
        self.validates = True
        self.disk = Disk()
        self.core = self._empty_core()
        self.outcome = Outcome()
        self._orders = 0

    def _empty_core(self) -> Core:
        cluster = Cluster(self.nodes, shares_host_ports=self.shares_host_ports)
        return Core(cluster, self.settings, self.virtual_clusters)

    # -- events ---------------------------------------------------------------------------------------------

    def handle(self, *events: Event) -> list[Instruction]:
        """Handle events as one group, write down what follows; return what is to be done."""
        self.outcome = Outcome()
        for event in events:
            self.core.handle(event, self.outcome)
        self.disk.write(self.outcome)
        if self.validates:
            validate(self.core)
        return self.outcome.instructions

    def submit(
        self, *roles: Mapping[str, Any], id: str = "j", user: str = "alice", **fields: Any
    ) -> list[Instruction]:
        """Submit a job whose name is its id."""
        return self.submit_config(make_config(*roles, name=id, **fields), id, user)

    def forecast(self, user: str, spec: JobSpec, *others: str) -> Forecast:
        """Ask what submitting a job would do; `others`: virtual clusters that are open to its user."""
        return forecast(self.core, user, spec, self.now, others)

    def submit_config(self, config: Mapping[str, Any], job_id: str, user: str = "alice") -> list[Instruction]:
        return self.handle(self.submitted(config, job_id, user))

    def submitted(self, config: Mapping[str, Any], job_id: str, user: str = "alice") -> Submitted:
        """Return the event of a submission; of the jobs that it waits for, the ids are their names."""
        self._orders += 1
        self.disk.configs[job_id] = rows.dump(config)
        spec = parse_job(config)
        after = tuple(Dependency(one.job, one.job, one.on) for one in spec.after)
        ended = self.disk.ended_states() if after else {}
        return Submitted(self.now, job_id, user, spec, self._orders, after, ended)

    def started(self, *refs: TaskRef) -> list[Instruction]:
        return self.handle(*(Started(ref, self.now, "127.0.0.1", f"pid-{ref.name}") for ref in refs))

    def exited(self, ref: TaskRef, code: int = 0) -> list[Instruction]:
        return self.ended(ref, EndCause.EXITED, code)

    def ended(
        self, ref: TaskRef, cause: EndCause, code: int | None = None, reason: Message | None = None
    ) -> list[Instruction]:
        return self.handle(Ended(ref, self.now, cause, code, reason))

    def killed(self, *refs: TaskRef) -> list[Instruction]:
        return self.handle(*(Ended(ref, self.now, EndCause.KILLED, 143) for ref in refs))

    def progress(self, ref: TaskRef, percent: int | None = None) -> list[Instruction]:
        return self.handle(Progress(ref, self.now, msg("pulling the image"), percent))

    def stop(self, job_id: str = "j", *, delete: bool = False, force: bool = False) -> list[Instruction]:
        return self.handle(StopRequested(self.now, job_id, "bob", delete, force=force))

    def held(self, ref: TaskRef, code: int = 1) -> list[Instruction]:
        return self.handle(HeldAfterFailure(ref, self.now, EndCause.EXITED, code))

    def reorder(
        self,
        job_id: str = "j",
        priority: int | None = None,
        place: int | None = None,
        *,
        owner_only: bool = True,
    ) -> list[Instruction]:
        return self.handle(Reordered(self.now, job_id, "bob", priority, place, owner_only))

    def change_shares(self, *clusters: VirtualCluster) -> list[Instruction]:
        self.virtual_clusters = clusters
        return self.handle(SharesChanged(self.now, clusters, {}))

    def change_nodes(self, *nodes: Node) -> list[Instruction]:
        self.nodes = nodes
        return self.handle(NodesChanged(self.now, nodes))

    def tick(self, after_ms: int = 0) -> list[Instruction]:
        self.now += after_ms
        return self.handle(Tick(self.now))

    def restart(self) -> list[Instruction]:
        """Go on with a new core, made of what is durable; return what it says before the first event."""
        self.core = self._empty_core()
        self.outcome = self.core.restore(
            self.disk.live_jobs(),
            {sharer: replace(usage) for sharer, usage in self.disk.usages.items()},
            self.disk.waited_for(),
        )
        self.disk.write(self.outcome)
        return self.outcome.instructions

    # -- what is known --------------------------------------------------------------------------------------

    def job(self, job_id: str = "j") -> Job:
        """Return a job as it is durable; that the core thinks the same is checked."""
        stored = self.disk.job(job_id)
        known = self.core.jobs.get(job_id)
        if known is not None:
            # all but what is for people only
            assert structs.replace(known, last_failure=None, progress=None) == stored
        return stored

    def attempt(self, job_id: str = "j", number: int | None = None) -> Attempt:
        if number is not None:
            return self.disk.attempt(job_id, number)
        attempt = self.job(job_id).attempt
        assert attempt is not None
        return attempt

    def task(self, ref: TaskRef) -> Task:
        return self.disk.attempt(ref.job_id, ref.attempt).tasks[ref.role, ref.index]

    def refs(self, job_id: str = "j") -> list[TaskRef]:
        return [task.ref for task in self.attempt(job_id).tasks.values()]

    def run(self, *roles: Mapping[str, Any], id: str = "j", **fields: Any) -> list[TaskRef]:
        """Submit a job and start all of its tasks."""
        self.submit(*roles, id=id, **fields)
        self.started(*self.refs(id))
        return self.refs(id)

    def kills(self, refs: Iterable[TaskRef], grace_ms: int = GRACE_MS) -> list[Instruction]:
        """Return the instructions that end tasks, decided now."""
        return [KillTask(ref, self.now + grace_ms) for ref in refs]

    def told(self, job_id: str = "j") -> list[str]:
        """List the types of a job's events."""
        return [entry.type for entry in self.disk.job_events if entry.job_id == job_id]

    def sentences(self, job_id: str = "j") -> list[str]:
        return [str(entry.message) for entry in self.disk.job_events if entry.job_id == job_id]

    def is_free(self) -> bool:
        """Return whether nothing is taken of any node."""
        with self.core.state.without_reservations():
            return self.core.cluster.uses.keys() == {node.name for node in self.nodes} and all(
                (use.cpus, use.memory_mb, use.storage_gb, use.free_gpus, use.ports)
                == (use.node.cpus, use.node.memory_mb, use.node.storage_gb, len(use.node.gpus), set())
                for use in self.core.cluster.uses.values()
            )


__all__ = [
    "GRACE_MS",
    "EndCause",
    "KillTask",
    "LaunchAttempt",
    "ReleaseAttempt",
    "WakeAt",
    "World",
    "make_node",
    "make_role",
]
