"""The dependencies of jobs are there after a restart, and are read from both their ends."""

from __future__ import annotations

from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, State, SubState
from pai_scheduler.job.dependencies import On
from pai_scheduler.store.records import JobLinks, LinkedJob
from pai_scheduler.store.store import Store
from tests.scheduler.store.conftest import OpenStore
from tests.scheduler.store.stored_jobs import Configs, add, make_job


def end(store: Store, job: Job, state: State = State.SUCCEEDED) -> None:
    job.state, job.sub_state = state, SubState.ENDED
    store.commit(Outcome(jobs={job.id: job}), {})


def add_waiting(store: Store, job_id: str, *after: Dependency) -> Job:
    job, config = make_job(job_id, order=store.last_order() + 1)
    job.sub_state = SubState.DEPENDENCY_WAIT
    outcome, configs = Outcome(jobs={job_id: job}), Configs({job_id: config})
    outcome.dependencies = {(job_id, place): one for place, one in enumerate(after)}
    store.commit(outcome, configs)
    return job


def test_what_waits_is_read_with_its_dependencies_in_their_order(open_store: OpenStore) -> None:
    store = open_store()
    add(store, "a", "b", "c")
    after = [
        Dependency("b", "b", On.FAILED),
        Dependency("a", "a", On.SUCCEEDED),
        Dependency("c", "c", On.ENDED),
    ]
    job = add_waiting(store, "j", *after)
    assert store.waited_for() == {"j": after}
    assert [one.sub_state for one in store.live_jobs() if one.id == "j"] == [SubState.DEPENDENCY_WAIT]
    after[1] = after[1].after(State.SUCCEEDED)
    store.commit(Outcome(dependencies={("j", 1): after[1]}), {})
    store.close()
    store = open_store()
    assert store.waited_for() == {"j": after}
    job.sub_state, job.eligible = SubState.QUEUED, 5000
    store.commit(Outcome(jobs={"j": job}), {})
    assert store.waited_for() == {}
    (queued,) = (one for one in store.live_jobs() if one.id == "j")
    assert (queued.sub_state, queued.eligible) == (SubState.QUEUED, 5000)


def test_the_jobs_of_a_user_are_found_by_their_names_without_what_is_deleted(store: Store) -> None:
    add(store, "a", "b", "c")
    add(store, "d", user="bob")
    (gone,) = (job for job in store.live_jobs() if job.id == "b")
    gone.doomed = True
    store.commit(Outcome(jobs={"b": gone}), {})
    assert store.job_ids("alice", ["a", "b", "c", "d", "no\0ne"]) == {"a": "a", "c": "c"}
    assert store.job_ids("alice", []) == {}


def test_how_jobs_ended_is_read_of_those_that_have(store: Store) -> None:
    good, bad, _ = add(store, "good", "bad", "runs")
    end(store, good)
    end(store, bad, State.FAILED)
    found = store.ended_states(["good", "bad", "runs", "never"])
    assert found == {"good": State.SUCCEEDED, "bad": State.FAILED}


def test_a_job_is_linked_with_those_before_and_after_it_as_they_are_now(store: Store) -> None:
    (first,) = add(store, "first")
    add_waiting(
        store, "j", Dependency("first", "first", On.ENDED), Dependency("gone", "old", On.FAILED, False)
    )
    for name in ("k", "l"):
        add_waiting(store, name, Dependency("j", "j", On.SUCCEEDED))
    end(store, first, State.FAILED)
    links = store.links("j", 10)
    assert links.dependencies == [
        LinkedJob("first", State.FAILED, On.ENDED, None),
        LinkedJob("old", None, On.FAILED, False),
    ]
    after = [LinkedJob(name, State.WAITING, On.SUCCEEDED, None) for name in ("k", "l")]
    assert (links.dependents, links.dependent_count) == (after, 2)
    assert store.links("j", 1).dependents == after[:1]
    assert store.links("j", 1).dependent_count == 2
    store.commit(Outcome(deleted=["k", "first"]), {})
    links = store.links("j", 10)
    assert (links.dependents, links.dependencies[0].state) == (after[1:], None)
    assert store.links("none", 10) == JobLinks([], [], 0)
