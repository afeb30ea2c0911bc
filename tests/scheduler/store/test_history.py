"""What ran when is read from the database, in the order of submission, in a period."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.store.store import Store
from tests.scheduler.store.stored_jobs import add, give_attempt


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Open a database with four jobs, submitted at 1001 to 1004 ms."""
    store = Store.in_folder(tmp_path)
    add(store, "waits", "runs", "ended", "again")
    yield store
    store.close()


def run(store: Store, name: str, *ended: int | None) -> None:
    """Give a job attempts that have ended, each at its time."""
    for number, end in enumerate(ended):
        outcome = Outcome()
        job = store.job("alice", name)
        assert job is not None
        attempt = give_attempt(outcome, job, number)
        attempt.created, attempt.completed = 2000 + number, end
        store.commit(outcome, {})


def test_a_job_has_the_times_of_its_last_attempt(store: Store) -> None:
    run(store, "runs", None)
    run(store, "ended", 5000)
    run(store, "again", 3000, 7000)
    found = [(one.name, one.created, one.placed, one.ended) for one in store.recorded_jobs()]
    assert found == [
        ("waits", 1001, None, None),
        ("runs", 1002, 2000, None),
        ("ended", 1003, 2000, 5000),
        ("again", 1004, 2001, 7000),
    ]


def test_a_job_that_waited_for_others_counts_from_when_they_had_ended(store: Store) -> None:
    (job,) = (job for job in store.live_jobs() if job.name == "waits")
    job.eligible = 4000
    store.commit(Outcome(jobs={job.id: job}), {})
    assert [one.created for one in store.recorded_jobs() if one.name == "waits"] == [4000]


def test_a_period_has_its_begin_and_not_its_end(store: Store) -> None:
    assert [one.name for one in store.recorded_jobs(1002, 1004)] == ["runs", "ended"]
    assert [one.name for one in store.recorded_jobs(end=1002)] == ["waits"]
    assert [one.name for one in store.recorded_jobs(1004)] == ["again"]


def test_a_job_has_the_priority_that_it_was_given_last(store: Store) -> None:
    job = store.job("alice", "waits")
    assert job is not None
    job.priority = 70
    store.commit(Outcome(jobs={job.id: job}), {})
    assert [one.priority for one in store.recorded_jobs()] == [70, 50, 50, 50]


def test_of_those_that_ended_it_is_known_how_long_they_ran(store: Store) -> None:
    for name, launched, ended in (("runs", 2100, None), ("ended", 2100, 5000), ("again", None, 7000)):
        outcome = Outcome()
        job = store.job("alice", name)
        assert job is not None
        attempt = give_attempt(outcome, job, 0)
        attempt.created, attempt.launched, attempt.completed = 2000, launched, ended
        job.completed = ended
        outcome.jobs[job.id] = job
        store.commit(outcome, {})
    # one still runs, and one never did: its tasks had not all started
    assert [(one.user, one.spec.name, one.ran_ms) for one in store.last_ended_runs(9)] == [
        ("alice", "ended", 3000)
    ]
    assert store.last_ended_runs(0) == []
