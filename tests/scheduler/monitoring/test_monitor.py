"""What is counted of what becomes durable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import generate_latest

from pai_scheduler.core.events import EndCause, Ended, Event, Started, Submitted
from pai_scheduler.core.instructions import LaunchAttempt, Outcome
from pai_scheduler.core.model import Job
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring.monitor import Monitor
from tests.scheduler.core.world import World
from tests.scheduler.making import make_node, make_role, make_spec

REF = TaskRef("j", 0, "main", 0)


class Counted:
    """A monitor, and a real core whose events it is told."""

    def __init__(self) -> None:
        self.monitor = Monitor("process", ["default"])
        self.core = World(make_node()).core
        self.orders = 0

    def handle(self, *events: Event) -> Outcome:
        outcome = Outcome()
        for event in events:
            self.core.handle(event, outcome)
        self.monitor.committed(outcome, events, self.core.jobs.get)
        return outcome

    def submit(self, job_id: str, time: int, *roles: Mapping[str, Any], **fields: Any) -> Submitted:
        self.orders += 1
        return Submitted(time, job_id, "alice", make_spec(*roles, name=job_id, **fields), self.orders)

    def value(self, name: str, **labels: str) -> float | None:
        return self.monitor.registry.get_sample_value(name, labels)


def test_a_job_is_counted_from_its_submission_to_its_end() -> None:
    counted = Counted()
    outcome = counted.handle(counted.submit("j", 1000))
    assert LaunchAttempt("j", 0) in outcome.instructions
    counted.handle(Started(REF, 3500, "127.0.0.1", "1"))
    counted.handle(Ended(REF, 4000, EndCause.EXITED, 0))
    vc = {"virtual_cluster": "default"}
    assert counted.value("pai_job_submissions_total", **vc) == 1
    assert counted.value("pai_jobs_ended_total", state="SUCCEEDED", **vc) == 1
    assert counted.value("pai_job_start_seconds_sum", **vc) == 2.5
    assert counted.value("pai_task_starts_total") == 1
    assert counted.value("pai_task_ends_total", cause="exited") == 1
    assert counted.value("pai_task_ends_total", cause="oom") == 0


def test_a_job_that_is_gone_at_once_is_counted_all_the_same() -> None:
    counted = Counted()
    counted.handle(
        counted.submit("j", 1000),
        Started(REF, 1000, "127.0.0.1", "1"),
        Ended(REF, 1000, EndCause.EXITED, 3),
    )
    assert counted.value("pai_jobs_ended_total", state="FAILED", virtual_cluster="default") == 1
    assert counted.value("pai_task_ends_total", cause="exited") == 1


def test_time_in_the_queue_goes_from_the_submission_to_the_first_placement() -> None:
    counted = Counted()
    everything = make_role(cpus=8)
    counted.handle(counted.submit("first", 0, everything), counted.submit("second", 1000, everything))
    first = TaskRef("first", 0, "main", 0)
    counted.handle(Started(first, 0, "127.0.0.1", "1"))
    counted.handle(Ended(first, 61_000, EndCause.EXITED, 0))
    assert counted.value("pai_job_queue_seconds_sum", virtual_cluster="default") == 60
    assert counted.value("pai_job_queue_seconds_count", virtual_cluster="default") == 2
    bucket = {"virtual_cluster": "default", "le": "15.0"}
    assert counted.value("pai_job_queue_seconds_bucket", **bucket) == 1


def test_a_retry_is_counted_by_its_behaviour_and_is_not_another_time_in_the_queue() -> None:
    counted = Counted()
    counted.handle(counted.submit("j", 0, retryCount=1))
    counted.handle(Started(REF, 0, "127.0.0.1", "1"))
    counted.handle(Ended(REF, 500_000, EndCause.EXITED, 3))
    assert counted.value("pai_job_retries_total", behavior="UNKNOWN") == 1
    assert counted.value("pai_job_queue_seconds_count", virtual_cluster="default") == 1


def test_an_engine_event_that_is_reported_twice_counts_once() -> None:
    counted = Counted()
    counted.handle(counted.submit("j", 0))
    started, ended = Started(REF, 1, "127.0.0.1", "1"), Ended(REF, 2, EndCause.OOM, 137)
    counted.handle(started)
    counted.handle(Started(REF, 5, "127.0.0.1", "1"))
    counted.handle(ended, Ended(REF, 9, EndCause.LOST, None))
    counted.handle(Ended(REF, 9, EndCause.LOST, None))
    assert counted.value("pai_task_starts_total") == 1
    assert counted.value("pai_task_ends_total", cause="oom") == 1
    assert counted.value("pai_task_ends_total", cause="lost") == 0


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    counted = Counted()
    counted.handle(counted.submit("j", 10_000))
    counted.handle(Started(REF, 4000, "127.0.0.1", "1"))
    assert counted.value("pai_job_start_seconds_sum", virtual_cluster="default") == 0


def test_an_event_of_an_unknown_job_is_passed_over() -> None:
    counted = Counted()
    outcome = counted.handle(counted.submit("j", 0))
    outcome.jobs.clear()
    before = counted.value("pai_job_submissions_total", virtual_cluster="default")

    def nobody(_: str) -> Job | None:
        return None

    counted.monitor.committed(outcome, [], nobody)
    assert counted.value("pai_job_submissions_total", virtual_cluster="default") == before


def test_requests_streams_and_groups_are_observed() -> None:
    monitor = Monitor("process", [])
    monitor.answered("JobsHandler", 200, 0.02)
    monitor.answered("LogHandler", 200, None)
    monitor.streams("LogHandler", 1)
    monitor.sent("LogHandler", 1000)
    monitor.wrote(7, 0.001, 0.002)
    value = monitor.registry.get_sample_value
    assert value("pai_http_requests_total", {"handler": "LogHandler", "status": "200"}) == 1
    assert value("pai_http_request_seconds_count", {"handler": "JobsHandler"}) == 1
    assert value("pai_http_request_seconds_count", {"handler": "LogHandler"}) is None
    assert value("pai_open_streams", {"handler": "LogHandler"}) == 1
    assert value("pai_stream_bytes_total", {"handler": "LogHandler"}) == 1000
    assert value("pai_commit_events_sum") == 7
    assert value("pai_scheduling_pass_seconds_sum") == 0.001
    assert value("pai_commit_seconds_sum") == 0.002


def test_two_services_in_one_process_count_apart() -> None:
    one, other = Monitor("process", []), Monitor("docker", [])
    one.sent("LogHandler", 5)
    assert b'handler="LogHandler"' not in generate_latest(other.registry)
