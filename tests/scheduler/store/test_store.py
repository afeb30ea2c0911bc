from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from pai_scheduler.cluster.demand import Assignment
from pai_scheduler.core.events import Notice
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Attempt, Job, JobEvent, State, SubState, Task, Verdict
from pai_scheduler.job.messages import msg
from pai_scheduler.job.parse import parse_job
from pai_scheduler.job.task import TaskRef
from pai_scheduler.store.database import StoreError, Trouble
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config
from tests.scheduler.store.conftest import OpenStore

Configs = dict[str, Mapping[str, Any]]


def make_job(
    job_id: str, *, user: str = "alice", order: int = 1, **fields: Any
) -> tuple[Job, Mapping[str, Any]]:
    config = make_config(name=fields.pop("name", job_id), **fields)
    return Job(job_id, user, parse_job(config), created=1000 + order, order=order), config


def add(store: Store, *ids: str, **fields: Any) -> list[Job]:
    outcome, configs = Outcome(), Configs()
    for order, job_id in enumerate(ids, store.last_order() + 1):
        job, configs[job_id] = make_job(job_id, order=order, **fields)
        outcome.jobs[job_id] = job
    store.commit(outcome, configs)
    return list(outcome.jobs.values())


def give_attempt(outcome: Outcome, job: Job, number: int = 0, tasks: int = 2) -> Attempt:
    attempt = job.attempt = Attempt(number, 2000)
    for index in range(tasks):
        task = Task(
            TaskRef(job.id, number, "main", index), Assignment("a", (index,), {"http": (20000 + index,)})
        )
        attempt.tasks["main", index] = task
        outcome.tasks[task.ref] = task
    outcome.jobs[job.id] = job
    outcome.attempts[job.id, number] = attempt
    return attempt


def tell(job_id: str, *words: str) -> list[JobEvent]:
    return [JobEvent(job_id, 1, word, msg("It is told.")) for word in words]


# -- what is written is read


def test_a_job_is_found_by_user_and_name_with_its_attempt_and_tasks(store: Store) -> None:
    (job,) = add(store, "j", name="my-job")
    outcome = Outcome()
    give_attempt(outcome, job)
    store.commit(outcome, {})
    assert store.job("alice", "my-job") == job
    assert store.job("alice", "j") is None
    assert store.job("bob", "my-job") is None


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


def test_a_job_json_is_kept_as_it_was_submitted(store: Store) -> None:
    job, _ = make_job("j")
    config = {**make_config(name="j"), "extras": {"说明": ["你好", None, 1.5]}}
    store.commit(Outcome(jobs={"j": job}), {"j": config})
    assert store.config("j") == config


def test_the_json_of_a_job_that_is_not_there_is_a_key_error(store: Store) -> None:
    with pytest.raises(KeyError):
        store.config("j")


def test_every_attempt_is_kept_with_its_tasks(store: Store) -> None:
    (job,) = add(store, "j")
    kept = []
    for number in range(3):
        outcome = Outcome()
        kept.append(give_attempt(outcome, job, number))
        store.commit(outcome, {})
    assert store.attempts("j") == kept
    found = store.job("alice", "j")
    assert found is not None
    assert found.attempt == kept[-1]


def test_jobs_are_listed_newest_first_by_user_or_all(store: Store) -> None:
    add(store, "a", "b", user="alice")
    add(store, "c", user="bob")
    assert [job.id for job in store.jobs()] == ["c", "b", "a"]
    assert [job.id for job in store.jobs("alice")] == ["b", "a"]


def test_jobs_are_counted_by_virtual_cluster(store: Store) -> None:
    add(store, "a", "b")
    add(store, "c", virtualCluster="vision")
    assert store.count_by_virtual_cluster() == {"default": 2, "vision": 1}


def test_the_last_order_is_that_of_the_newest_job(store: Store) -> None:
    assert store.last_order() == 0
    add(store, "a", "b")
    assert store.last_order() == 2


# -- all or nothing


def test_what_cannot_be_written_whole_is_not_written_at_all(store: Store) -> None:
    (job,) = add(store, "j")
    other, config = make_job("other", name="other")
    same_name, same_config = make_job("twin", name="j")
    outcome = Outcome(jobs={"other": other, "twin": same_name}, story=tell("j", "submitted"))
    give_attempt(outcome, job)
    with pytest.raises(IntegrityError):
        store.commit(outcome, {"other": config, "twin": same_config})
    assert [found.id for found in store.jobs()] == ["j"]
    assert store.attempts("j") == []
    assert store.story() == []


def test_two_jobs_of_one_user_cannot_have_one_name_but_two_users_can(store: Store) -> None:
    add(store, "a", name="same")
    add(store, "b", name="same", user="bob")
    with pytest.raises(IntegrityError):
        add(store, "c", name="same")


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Store]:
    """Let the database grow no further, as on a full disk."""

    def limit(connection: sqlite3.Connection, _: object) -> None:
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")

    store = Store.in_folder(tmp_path)
    add(store, "before")
    store.engine.dispose()
    sa.event.listen(store.engine, "connect", limit)
    yield store
    store.close()


def test_on_a_full_disk_a_commit_fails_as_a_whole_and_says_why(full: Store) -> None:
    with pytest.raises(StoreError, match="full") as caught:
        add(full, *(f"j{number}" for number in range(1000)))
    assert [job.id for job in full.jobs()] == ["before"]
    assert caught.value.trouble is Trouble.FULL


def test_after_a_full_disk_small_changes_and_reading_still_work(full: Store) -> None:
    with pytest.raises(StoreError):
        add(full, *(f"j{number}" for number in range(1000)))
    (job,) = full.live_jobs()
    job.state = State.STOPPED
    full.commit(Outcome(jobs={job.id: job}), {})
    assert [found.state for found in full.jobs()] == [State.STOPPED]


# -- deleting


def test_with_a_job_everything_of_it_goes_and_its_tasks_are_named(store: Store) -> None:
    job, kept = add(store, "j", "kept")
    for number in range(2):
        outcome = Outcome(story=tell("j", "placed"))
        give_attempt(outcome, job, number)
        give_attempt(outcome, kept, number)
        store.commit(outcome, {})
    gone = store.commit(Outcome(deleted=["j"]), {})
    assert sorted(gone) == [TaskRef("j", number, "main", index) for number in (0, 1) for index in (0, 1)]
    assert store.job("alice", "j") is None
    assert store.attempts("j") == []
    assert store.story(job_id="j") == []
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


def test_a_job_that_is_being_deleted_is_not_shown_and_leaves_its_name(store: Store) -> None:
    (job,) = add(store, "old", name="same")
    job.doomed = True
    store.commit(Outcome(jobs={"old": job}), {})
    assert store.job("alice", "same") is None
    assert store.jobs() == []
    add(store, "new", name="same")
    found = store.job("alice", "same")
    assert found is not None
    assert found.id == "new"
    assert {live.id for live in store.live_jobs()} == {"old", "new"}


# -- the story


def test_the_story_is_told_in_order_from_where_one_left_off(store: Store) -> None:
    add(store, "j")
    store.commit(Outcome(story=tell("j", "a", "b", "c")), {})
    store.commit(Outcome(story=tell("j", "d", "e")), {})
    read, after = list[str](), 0
    for _ in range(3):
        page = store.story(job_id="j", after=after, limit=2)
        read.extend(told.entry.type for told in page)
        after = page[-1].id
    assert read == ["a", "b", "c", "d", "e"]
    assert store.story(job_id="j", after=after) == []


def test_story_ids_are_never_used_twice(store: Store) -> None:
    add(store, "j", "k")
    store.commit(Outcome(story=tell("j", "a")), {})
    last = store.story()[-1].id
    store.commit(Outcome(deleted=["j"]), {})
    store.commit(Outcome(story=tell("k", "b")), {})
    assert store.story()[-1].id > last


def test_the_story_is_told_by_job_by_user_or_of_all(store: Store) -> None:
    add(store, "a")
    add(store, "b", user="bob", name="other")
    store.commit(Outcome(story=[*tell("a", "x"), *tell("b", "y")]), {})
    assert [(told.user, told.job, told.entry.type) for told in store.story()] == [
        ("alice", "a", "x"),
        ("bob", "other", "y"),
    ]
    assert [told.entry.type for told in store.story(user="bob")] == ["y"]
    assert [told.entry.type for told in store.story(job_id="a")] == ["x"]


# -- after a restart


def test_live_jobs_are_those_that_have_not_ended_or_still_hold_something(store: Store) -> None:
    jobs = dict(zip(SubState, add(store, *(str(state.value) for state in SubState)), strict=True))
    outcome = Outcome()
    for sub_state, job in jobs.items():
        job.sub_state = sub_state
        give_attempt(outcome, job, 3)
    store.commit(outcome, {})
    live = store.live_jobs()
    assert {job.id for job in live} == {str(state.value) for state in SubState if state is not SubState.ENDED}
    assert {job.id: job for job in live} == {job.id: job for job in jobs.values() if job.id != "ENDED"}


def test_a_live_job_has_its_last_attempt_only(store: Store) -> None:
    (job,) = add(store, "j")
    for number in range(3):
        outcome = Outcome()
        give_attempt(outcome, job, number)
        store.commit(outcome, {})
    (found,) = store.live_jobs()
    assert found.attempt is not None
    assert (found.attempt.number, len(found.attempt.tasks)) == (2, 2)


def test_more_live_jobs_than_one_query_takes_are_all_found(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.store.store._CHUNK", 3)
    outcome = Outcome()
    for job in add(store, *(f"j{number}" for number in range(10))):
        give_attempt(outcome, job)
    store.commit(outcome, {})
    live = store.live_jobs()
    assert len(live) == 10
    assert all(job.attempt and len(job.attempt.tasks) == 2 for job in live)


def test_a_job_is_over_when_it_holds_nothing_or_is_gone(store: Store) -> None:
    (job,) = add(store, "j")
    assert not store.is_over("j")
    job.state, job.sub_state = State.FAILED, SubState.ENDING
    store.commit(Outcome(jobs={"j": job}), {})
    assert not store.is_over("j")
    job.sub_state = SubState.ENDED
    store.commit(Outcome(jobs={"j": job}), {})
    assert store.is_over("j")
    assert store.is_over("nobody")


def test_everything_is_there_when_the_database_is_opened_again(open_store: OpenStore) -> None:
    store = open_store()
    (job,) = add(store, "j")
    store.commit(Outcome(story=tell("j", "a")), {})
    store.close()
    again = open_store()
    assert again.job("alice", "j") == job
    assert [told.entry.type for told in again.story()] == ["a"]


def test_a_commit_is_on_disk_before_it_returns_even_if_nobody_closes(open_store: OpenStore) -> None:
    store = open_store()
    add(store, "j")
    assert [job.id for job in open_store().jobs()] == ["j"]


def test_sqlite_writes_ahead_and_waits_for_the_disk(tmp_path: Path) -> None:
    store = Store.in_folder(tmp_path)
    for _ in range(2):
        with store.engine.connect() as connection:
            settings = {
                name: connection.execute(sa.text(f"PRAGMA {name}")).scalar()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            }
            assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
        store.close()


def test_readers_read_while_one_writes(store: Store) -> None:
    add(store, "j")
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE jobs SET created = 5"))
        assert [job.created for job in store.jobs()] == [1001]


def test_ids_of_many_deleted_jobs_fit_into_one_commit(store: Store) -> None:
    ids = [f"j{number}" for number in range(1000)]
    add(store, *ids)
    store.commit(Outcome(deleted=ids), {})
    assert list(itertools.islice(store.jobs(), 1)) == []


def test_a_name_that_no_database_can_hold_is_nobodys(store: Store) -> None:
    add(store, "j")
    assert store.job("alice", "j\0") is None
    assert store.job("alice\0", "j") is None
    assert store.jobs("alice\0") == []


def test_any_text_that_json_can_hold_is_kept(store: Store) -> None:
    job, _ = make_job("j")
    text = "NUL \0, bell \a, line\u2028, 你好 \U0001f600"
    config = {**make_config(name="j"), "extras": {text: text}}
    told = JobEvent("j", 1, "said", msg("{text}", text=text), data={"text": text})
    store.commit(Outcome(jobs={"j": job}, story=[told]), {"j": config})
    assert store.config("j") == config
    assert store.story()[0].entry == told


def test_numbers_of_any_size_that_a_caller_may_give_are_understood(store: Store) -> None:
    add(store, "j")
    store.commit(Outcome(story=tell("j", "a")), {})
    assert store.story(after=2**63 - 1) == []
    assert len(store.story(after=0, limit=2**31)) == 1


def test_whether_writes_are_taken_is_found_out_without_changing_anything(store: Store) -> None:
    add(store, "j")
    store.check_writable()
    assert len(list(store.jobs())) == 1
    read_only = {
        "sqlite": "PRAGMA query_only = ON",
        "postgresql": "SET TRANSACTION READ ONLY",
    }[store.engine.dialect.name]

    sa.event.listen(store.engine, "begin", lambda connection: connection.exec_driver_sql(read_only))
    with pytest.raises(StoreError, match=r"read-?only"):
        store.check_writable()
    assert len(list(store.jobs())) == 1


def test_what_was_noticed_of_a_task_is_told_once_however_often_an_engine_says_it(store: Store) -> None:
    add(store, "j")

    def noticed(attempt: int, time: int) -> JobEvent:
        return JobEvent("j", time, Notice.PROCESS_KILLED.value, msg("Killed."), attempt, "main", 0)

    store.commit(Outcome(story=[noticed(0, 1), noticed(0, 2), noticed(1, 3)]), {})
    store.commit(Outcome(story=[noticed(0, 4), noticed(1, 5), noticed(2, 6)]), {})
    told = [found.entry for found in store.story(job_id="j") if found.entry.type == "process-killed"]
    assert [(entry.attempt, entry.time) for entry in told] == [(0, 1), (1, 3), (2, 6)]
