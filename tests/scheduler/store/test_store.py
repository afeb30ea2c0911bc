"""What was put into the store is read from it: jobs, attempts, job events, what goes on after a restart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import JobEvent, RetryCounts, State, SubState, Verdict
from pai_scheduler.i18n import msg
from pai_scheduler.store.records import SubmittedText
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config
from tests.scheduler.store.stored_jobs import add, give_attempt, make_job, tell


def test_a_job_is_found_by_user_and_name_with_its_attempt_and_tasks(store: Store) -> None:
    (job,) = add(store, "j", name="my-job")
    outcome = Outcome()
    give_attempt(outcome, job)
    store.commit(outcome, {})
    assert store.job("alice", "my-job") == job
    assert store.job("alice", "j") is None
    assert store.job("bob", "my-job") is None


def test_a_job_json_is_kept_as_it_was_submitted(store: Store) -> None:
    job, _ = make_job("j")
    config = {**make_config(name="j"), "extras": {"说明": ["你好", None, 1.5]}}
    text = SubmittedText('{"jobName": "j", /* 你好 */}', "application/json")
    store.commit(Outcome(jobs={"j": job}), {"j": config}, {"j": text})
    assert store.config("j") == config
    assert store.submitted_text("j") == text
    store.commit(Outcome(jobs={"j": job}), {})
    assert (store.config("j"), store.submitted_text("j")) == (config, text)


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


# -- job events


def test_job_events_come_in_order_from_where_one_left_off(store: Store) -> None:
    add(store, "j")
    store.commit(Outcome(job_events=tell("j", "a", "b", "c")), {})
    store.commit(Outcome(job_events=tell("j", "d", "e")), {})
    read, after = list[str](), 0
    for _ in range(3):
        page = store.job_events(job_id="j", after=after, limit=2)
        read.extend(told.entry.type for told in page)
        after = page[-1].id
    assert read == ["a", "b", "c", "d", "e"]
    assert store.job_events(job_id="j", after=after) == []


def test_job_event_ids_are_never_used_twice(store: Store) -> None:
    add(store, "j", "k")
    store.commit(Outcome(job_events=tell("j", "a")), {})
    last = store.job_events()[-1].id
    store.commit(Outcome(deleted=["j"]), {})
    store.commit(Outcome(job_events=tell("k", "b")), {})
    assert store.job_events()[-1].id > last


def test_job_events_are_read_of_a_job_of_a_user_or_of_all(store: Store) -> None:
    add(store, "a")
    add(store, "b", user="bob", name="other")
    store.commit(Outcome(job_events=[*tell("a", "x"), *tell("b", "y")]), {})
    assert [(told.user, told.job, told.entry.type) for told in store.job_events()] == [
        ("alice", "a", "x"),
        ("bob", "other", "y"),
    ]
    assert [told.entry.type for told in store.job_events(user="bob")] == ["y"]
    assert [told.entry.type for told in store.job_events(job_id="a")] == ["x"]


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


def test_whatever_is_different_of_a_job_that_waits_is_there_after_a_restart(store: Store) -> None:
    changes: dict[str, dict[str, Any]] = {
        "plain": {},
        "moved": {"priority": 7, "overtaken": 3, "order": -4},
        "tried": {"retries": RetryCounts(1, 2, 3, 4)},
        "had": {"attained": 5},
        "long": {"uncounted": 6},
        "later": {"not_before": 8},
        "decided": {"verdict": Verdict(State.STOPPED, -1, -1, None, msg("It is told."))},
        "completed": {"completed": 9},
        "deleted": {"doomed": True},
        "odd": {"state": State.RUNNING},
    }
    outcome, known = Outcome(), {}
    for job in add(store, *changes):
        known[job.id] = outcome.jobs[job.id] = replace(job, **changes[job.id])
    store.commit(outcome, {})
    live = store.live_jobs()
    assert {job.id: job for job in live} == known
    assert len(live) == len(known)


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
    store.commit(Outcome(jobs={"j": job}, job_events=[told]), {"j": config})
    assert store.config("j") == config
    assert store.job_events()[0].entry == told


def test_numbers_of_any_size_that_a_caller_may_give_are_understood(store: Store) -> None:
    add(store, "j")
    store.commit(Outcome(job_events=tell("j", "a")), {})
    assert store.job_events(after=2**63 - 1) == []
    assert len(store.job_events(after=0, limit=2**31)) == 1
