"""The scheduler's own metrics for Prometheus: what is counted as it happens.

Labels are virtual clusters, states, GPU types and the like, never jobs or users: their number stays small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import version

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.registry import Collector

from pai_scheduler.core.events import EndCause, Ended, Event, Started
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Attempt, Job, JobEvent
from pai_scheduler.job.exit_codes import exit_spec

_WAITS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)
_STARTS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600, 1800)
_PASSES = (0.0001, 0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5)
_COMMITS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)
_GROUPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_REQUESTS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5)


class Monitor:
    """Counts what happens in one service. `registry` has everything that `/metrics` shows."""

    def __init__(self, engine_name: str, virtual_clusters: Iterable[str]) -> None:
        # when a counter began is of use to nobody here, and as many series again
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._make_job_metrics()
        self._make_inner_metrics()
        self._make_http_metrics()
        ProcessCollector(registry=self.registry)
        build = self._gauge("pai_build_info", "What runs: always 1.", "version", "engine")
        build.labels(version("pai-for-jupyter"), engine_name).set(1)
        # there from the start, so that the first change of each is seen as one
        for name in virtual_clusters:
            self._submissions(name)
            self._queue_time(name)
            self._start_time(name)
        for cause in EndCause:
            self._task_ends(cause.value)

    def watch(self, collector: Collector) -> None:
        """Show what `collector` finds whenever somebody asks."""
        self.registry.register(collector)

    def committed(self, outcome: Outcome, events: Iterable[Event], find: Callable[[str], Job | None]) -> None:
        """Count what has just become durable; `find` finds a job that `outcome` does not have."""
        for event in events:
            # an event about what was over already has changed nothing
            task = outcome.tasks.get(event.task) if isinstance(event, Started | Ended) else None
            if task is not None and isinstance(event, Started) and task.started == event.time:
                self._task_starts.inc()
            elif task is not None and isinstance(event, Ended) and task.ended == event.time:
                self._task_ends(event.cause.value).inc()
        for entry in outcome.job_events:
            if job := outcome.jobs.get(entry.job_id) or find(entry.job_id):
                self._told(entry, job, outcome.attempts.get((job.id, entry.attempt or 0)))

    def _told(self, entry: JobEvent, job: Job, attempt: Attempt | None) -> None:
        cluster = job.spec.virtual_cluster
        match entry.type:
            case "submitted":
                self._submissions(cluster).inc()
            case "placed" if entry.attempt == 0:
                self._queue_time(cluster).observe(max(0, entry.time - job.eligible_since) / 1000)
            case "running" if attempt is not None:
                self._start_time(cluster).observe(max(0, entry.time - attempt.created) / 1000)
            case "retry" if attempt is not None and attempt.verdict is not None:
                self._retries(exit_spec(attempt.verdict.exit_row).behavior.value).inc()
            case "ended":
                self._ends(cluster, job.state.value).inc()

    def wrote(self, events: int, handled_seconds: float, commit_seconds: float) -> None:
        """Observe one group of events: how long the core took for it, and the database."""
        self._passes.observe(handled_seconds)
        self._commits.observe(commit_seconds)
        self._groups.observe(events)

    def answered(self, handler: str, status: int, seconds: float | None) -> None:
        """Count a request; `seconds` None: it was a stream, which takes as long as its reader likes."""
        self._requests(handler, str(status)).inc()
        if seconds is not None:
            self._request_time(handler).observe(seconds)

    def sent(self, handler: str, size: int) -> None:
        """Count bytes that a stream sent."""
        self._stream_bytes(handler).inc(size)

    def streams(self, handler: str, change: int) -> None:
        """Note that a stream was opened (1) or closed (-1)."""
        self._streams(handler).inc(change)

    # what has labels is cached by their values: finding a child costs several times what counting does

    def _make_job_metrics(self) -> None:
        self._submissions = cache(
            self._counter("pai_job_submissions", "Jobs that were accepted.", "virtual_cluster").labels
        )
        self._ends = cache(
            self._counter("pai_jobs_ended", "Jobs that came to their end.", "virtual_cluster", "state").labels
        )
        self._queue_time = cache(
            self._histogram(
                "pai_job_queue_seconds",
                "From the submission of a job until its first attempt had its resources.",
                _WAITS,
                "virtual_cluster",
            ).labels
        )
        self._start_time = cache(
            self._histogram(
                "pai_job_start_seconds",
                "From when an attempt had its resources until all its tasks ran: pulls, networks, starts.",
                _STARTS,
                "virtual_cluster",
            ).labels
        )
        self._retries = cache(
            self._counter(
                "pai_job_retries", "Attempts that were followed by another, by the exit table.", "behavior"
            ).labels
        )
        self._task_starts = self._counter("pai_task_starts", "Tasks whose command began to run.")
        self._task_ends = cache(
            self._counter("pai_task_ends", "Tasks that are over, by cause.", "cause").labels
        )

    def _make_inner_metrics(self) -> None:
        self._passes = self._histogram(
            "pai_scheduling_pass_seconds",
            "What the core took for one group of events, placement included.",
            _PASSES,
        )
        self._commits = self._histogram(
            "pai_commit_seconds", "What the database took for one group of events.", _COMMITS
        )
        self._groups = self._histogram("pai_commit_events", "Events that were written at once.", _GROUPS)

    def _make_http_metrics(self) -> None:
        self._requests = cache(
            self._counter("pai_http_requests", "Requests answered.", "handler", "status").labels
        )
        self._request_time = cache(
            self._histogram(
                "pai_http_request_seconds",
                "From a request's first byte to its answer; streams are left out.",
                _REQUESTS,
                "handler",
            ).labels
        )
        self._stream_bytes = cache(
            self._counter("pai_stream_bytes", "Bytes of logs and events that were sent.", "handler").labels
        )
        self._streams = cache(
            self._gauge("pai_open_streams", "Logs and job events that are being followed.", "handler").labels
        )

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        return Gauge(name, text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: Iterable[float], *labels: str) -> Histogram:
        return Histogram(name, text, labels, buckets=tuple(buckets), registry=self.registry)
