"""Everything that measures, in one place for the service: the counters, the tally and the recorder."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from pai_scheduler import logging_config
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Node
from pai_scheduler.core.events import Event
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, State, Task
from pai_scheduler.core.state_machine import Core
from pai_scheduler.engine.protocol import Engine

from .monitor import Monitor
from .present import Present, ServiceFacts
from .recorder import Recorder
from .tally import Tally


class HasVirtualClusters(Protocol):
    """The virtual clusters by name, as they are now."""

    @property
    def virtual_clusters(self) -> Mapping[str, VirtualCluster]: ...  # noqa: D102


class CountsFailures(Protocol):
    """Counter of the writes that the database refused."""

    @property
    def failures(self) -> int: ...  # noqa: D102


class DurableCommit(Protocol):
    """Commit as `Meters` reads it: `core` has the jobs that `outcome` has not; how long both took."""

    @property
    def outcome(self) -> Outcome: ...  # noqa: D102
    @property
    def events(self) -> Sequence[Event]: ...  # noqa: D102
    @property
    def core(self) -> Core: ...  # noqa: D102
    @property
    def handled_seconds(self) -> float: ...  # noqa: D102
    @property
    def commit_seconds(self) -> float: ...  # noqa: D102


class Meters:
    """Told what becomes durable; `engine_errors` counts the failed calls by call, `writer` the database's."""

    def __init__(
        self,
        engine: Engine,
        cluster: HasVirtualClusters,
        engine_errors: Mapping[str, int],
        writer: CountsFailures,
    ) -> None:
        self.monitor = Monitor(engine.name, list(cluster.virtual_clusters))
        self.recorder = Recorder(engine, self._not_measured)
        self._tally = Tally()
        self._nodes: dict[str, Node] = {}
        self._engine = engine
        self._cluster, self._engine_errors, self._writer = cluster, engine_errors, writer
        self._unmeasured = 0
        self.monitor.watch(Present(self._facts))

    def start(self, jobs: Collection[Job], nodes: Sequence[Node]) -> None:
        """Take up what there is when the service starts, and begin to measure."""
        self.note_nodes(nodes)
        self._tally.note_jobs(jobs)
        for job in jobs:
            for task in job.attempt.tasks.values() if job.attempt else ():
                self._note_task(job, task)
        self.recorder.start()

    async def close(self) -> None:
        """Stop measuring."""
        await self.recorder.close()

    def note_nodes(self, nodes: Sequence[Node]) -> None:
        """Take the nodes as they are now."""
        self._nodes = {node.name: node for node in nodes}

    def gpus(self) -> tuple[int, int]:
        """Count the GPUs that tasks hold, and all there are."""
        return sum(self._tally.gpus.values()), sum(len(node.gpus) for node in self._nodes.values())

    def committed(self, committed: DurableCommit) -> None:
        """Count what has just become durable."""
        outcome, find = committed.outcome, committed.core.jobs.get
        self.monitor.committed(outcome, committed.events, find)
        self.monitor.wrote(len(committed.events), committed.handled_seconds, committed.commit_seconds)
        if logging_config.JOB_EVENTS.isEnabledFor(logging.DEBUG):
            for entry in outcome.job_events:
                logging_config.log_job_event(entry, outcome.jobs.get(entry.job_id) or find(entry.job_id))
        self._tally.note_jobs(outcome.jobs.values())
        for task in outcome.tasks.values():
            job_id = task.ref.job_id
            self._note_task(outcome.jobs.get(job_id) or find(job_id), task)

    def _note_task(self, job: Job | None, task: Task) -> None:
        self._tally.note_task(job, task, self._nodes)
        if task.state is State.RUNNING:
            self.recorder.begin(task.ref)
        elif task.state.ended:
            self.recorder.end(task.ref)

    def _not_measured(self) -> None:
        self._unmeasured += 1

    def _facts(self) -> ServiceFacts:
        return ServiceFacts(
            tuple(self._nodes.values()),
            self._cluster.virtual_clusters.values(),
            self._tally,
            self.recorder.latest,
            {**self._engine_errors, "usage": self._unmeasured},
            self._writer.failures,
            {name: disk for name in self._nodes if (disk := self._engine.disk(name)) is not None},
        )
