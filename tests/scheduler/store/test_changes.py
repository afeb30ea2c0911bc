"""What the core decided is put into the tables: all of it or nothing, each thing once."""

from __future__ import annotations

import itertools

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from pai_scheduler.core.events import Notice
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import JobEvent, State, Verdict
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.store.store import Store
from tests.scheduler.store.conftest import OpenStore
from tests.scheduler.store.stored_jobs import Configs, add, give_attempt, make_job, tell


def test_what_is_written_twice_is_the_newer(store: Store) -> None:
    (job,) = add(store, "j")
    outcome = Outcome()
    attempt = give_attempt(outcome, job)
    store.commit(outcome, {})
    task = attempt.tasks["main", 1]
    task.state, task.exit_code, task.ended = State.FAILED, 7, 3000
    attempt.verdict = Verdict(State.FAILED, 7, 255, ("main", 1), msg("{what} failed.", what="It"))
    job.state, job.verdict, job.completed = State.FAILED, attempt.verdict, 3000
    again = Outcome(jobs={"j": job}, attempts={("j", 0): attempt}, tasks={task.ref: task})
    store.commit(again, {})
    assert store.job("alice", "j") == job
    assert store.attempts("j") == [attempt]


def test_what_cannot_be_written_whole_is_not_written_at_all(store: Store) -> None:
    (job,) = add(store, "j")
    other, config = make_job("other", name="other")
    same_name, same_config = make_job("twin", name="j")
    outcome = Outcome(jobs={"other": other, "twin": same_name}, job_events=tell("j", "submitted"))
    give_attempt(outcome, job)
    with pytest.raises(IntegrityError):
        store.commit(outcome, {"other": config, "twin": same_config})
    assert [found.id for found in store.jobs()] == ["j"]
    assert store.attempts("j") == []
    assert store.job_events() == []


def test_as_many_jobs_as_come_together_are_written_in_their_order(store: Store) -> None:
    outcome, configs = Outcome(), Configs()
    for number in range(171):
        job, configs[job.id] = make_job(f"j{number:03}", order=number)
        outcome.jobs[job.id] = job
        outcome.job_events.extend(tell(job.id, "submitted"))
    store.commit(outcome, configs)
    assert {job.id: job for job in store.live_jobs()} == outcome.jobs
    assert [told.entry.job_id for told in store.job_events()] == list(outcome.jobs)


def test_two_jobs_of_one_user_cannot_have_one_name_but_two_users_can(store: Store) -> None:
    add(store, "a", name="same")
    add(store, "b", name="same", user="bob")
    with pytest.raises(IntegrityError):
        add(store, "c", name="same")


def test_with_a_job_everything_of_it_goes_and_its_tasks_are_named(store: Store) -> None:
    job, kept = add(store, "j", "kept")
    for number in range(2):
        outcome = Outcome(job_events=tell("j", "placed"))
        give_attempt(outcome, job, number)
        give_attempt(outcome, kept, number)
        store.commit(outcome, {})
    gone = store.commit(Outcome(deleted=["j"]), {})
    assert sorted(gone) == [TaskRef("j", number, "main", index) for number in (0, 1) for index in (0, 1)]
    assert store.job("alice", "j") is None
    assert store.attempts("j") == []
    assert store.job_events(job_id="j") == []
    assert len(store.attempts("kept")) == 2
    with store.engine.connect() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM tasks WHERE job_id = 'j'")).scalar() == 0


def test_the_tasks_of_a_deleted_job_are_remembered_until_their_logs_are_gone(
    store: Store, open_store: OpenStore
) -> None:
    for job in add(store, "j", "k"):
        outcome = Outcome()
        give_attempt(outcome, job, 0)
        store.commit(outcome, {})
    assert store.forgotten() == []
    gone = store.commit(Outcome(deleted=["j"]), {})
    store.commit(Outcome(deleted=["k"]), {})
    store.close()
    later = open_store()
    assert {ref.job_id for ref in later.forgotten()} == {"j", "k"}
    later.forgot(gone)
    assert {ref.job_id for ref in later.forgotten()} == {"k"}


def test_deleting_what_is_not_there_is_nothing(store: Store) -> None:
    assert store.commit(Outcome(deleted=["j"]), {}) == []


def test_ids_of_many_deleted_jobs_fit_into_one_commit(store: Store) -> None:
    ids = [f"j{number}" for number in range(1000)]
    add(store, *ids)
    store.commit(Outcome(deleted=ids), {})
    assert list(itertools.islice(store.jobs(), 1)) == []


def test_what_was_noticed_of_a_task_is_told_once_however_often_an_engine_says_it(store: Store) -> None:
    add(store, "j")

    def noticed(attempt: int, time: int) -> JobEvent:
        return JobEvent("j", time, Notice.PROCESS_KILLED.value, msg("Killed."), attempt, "main", 0)

    store.commit(Outcome(job_events=[noticed(0, 1), noticed(0, 2), noticed(1, 3)]), {})
    store.commit(Outcome(job_events=[noticed(0, 4), noticed(1, 5), noticed(2, 6)]), {})
    told = [found.entry for found in store.job_events(job_id="j") if found.entry.type == "process-killed"]
    assert [(entry.attempt, entry.time) for entry in told] == [(0, 1), (1, 3), (2, 6)]
