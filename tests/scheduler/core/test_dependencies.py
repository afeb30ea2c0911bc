"""A job waits for others (`extras.after`), starts when they have ended as it asks, or never."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from pai_scheduler.cluster.definition import ShortestRemaining, VirtualCluster
from pai_scheduler.core.events import Ended, StopRequested
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, State, SubState
from pai_scheduler.core.queries import queued_jobs, start_of_waiting, waiting_reason
from pai_scheduler.core.timers import Timer
from pai_scheduler.job.exit_codes import DEPENDENCY_NEVER_SATISFIED, STOPPED_BY_USER
from tests.scheduler.core.world import EndCause, LaunchAttempt, World, make_role
from tests.scheduler.making import make_config, make_node


def after(*jobs: Any) -> dict[str, Any]:
    return {"extras": {"after": list(jobs)}}


def on(job: str, word: str) -> dict[str, str]:
    return {"job": job, "on": word}


def reason(world: World, job_id: str) -> str:
    return str(waiting_reason(world.core, world.job(job_id), world.now))


def is_queued(job: Job) -> bool:
    """Return whether nothing keeps a job from its resources but others that hold them."""
    return job.sub_state in (SubState.QUEUED, SubState.STARTING)


def end(world: World, job_id: str, state: State) -> None:
    if state is State.STOPPED:
        world.stop(job_id)
        world.killed(*world.refs(job_id))
    else:
        world.exited(world.refs(job_id)[0], 0 if state is State.SUCCEEDED else 1)
    assert world.job(job_id).state is state


def test_a_job_waits_for_another_to_succeed_with_that_as_its_reason_and_out_of_line() -> None:
    world = World()
    first = world.run(id="prepare")
    world.submit(id="train", **after("prepare"))
    job = world.job("train")
    assert (job.state, job.sub_state) == (State.WAITING, SubState.DEPENDENCY_WAIT)
    assert reason(world, "train") == "Waiting for job prepare to succeed."
    assert queued_jobs(world.core, "default") == []
    assert start_of_waiting(world.core, "train", world.now) is None
    world.now += 5000
    assert LaunchAttempt("train", 0) in world.exited(first[0], 0)
    assert world.job("train").eligible == world.now
    told = [event.type for event in world.disk.job_events if event.job_id == "train"]
    assert told == ["submitted", "dependency-wait", "dependencies-met", "placed"]


@pytest.mark.parametrize("state", [State.SUCCEEDED, State.FAILED, State.STOPPED])
@pytest.mark.parametrize(
    ("word", "holds"),
    [
        ("succeeded", {State.SUCCEEDED}),
        ("failed", {State.FAILED}),
        ("ended", {State.SUCCEEDED, State.FAILED, State.STOPPED}),
    ],
)
@pytest.mark.parametrize("submitted_first", [True, False])
def test_a_job_starts_after_the_end_that_it_asks_for_and_never_after_another(
    state: State, word: str, holds: set[State], submitted_first: bool
) -> None:
    world = World()
    world.run(id="first")
    if submitted_first:
        world.submit(id="next", **after(on("first", word)))
    end(world, "first", state)
    if not submitted_first:
        world.submit(id="next", **after(on("first", word)))
    job = world.job("next")
    if state in holds:
        assert is_queued(job)
        return
    assert job.state is State.STOPPED
    assert job.verdict is not None
    assert job.verdict.exit_code == job.verdict.exit_row == DEPENDENCY_NEVER_SATISFIED
    assert "first" in str(job.verdict.reason)
    assert str(state) in str(job.verdict.reason)
    assert job.attempt is None
    assert "next" not in world.core.jobs


@pytest.mark.parametrize("retries", [-2, -1, 3])
def test_a_job_whose_dependency_cannot_hold_is_never_tried_again(retries: int) -> None:
    world = World()
    world.run(id="first")
    world.submit(id="next", retryCount=retries, **after("first"))
    end(world, "first", State.FAILED)
    world.tick(10**9)
    job = world.job("next")
    assert (job.state, job.retries.total) == (State.STOPPED, 0)


def test_a_job_that_waits_for_several_starts_with_the_last_of_them() -> None:
    world = World()
    for name in ("a", "b", "c"):
        world.run(id=name)
    world.submit(id="next", **after("a", on("b", "ended"), on("c", "failed")))
    assert reason(world, "next") == "Waiting for 3 jobs: a (succeeded), b (ended), c (failed)."
    end(world, "c", State.FAILED)
    assert reason(world, "next") == "Waiting for 2 jobs: a (succeeded), b (ended)."
    end(world, "b", State.STOPPED)
    assert reason(world, "next") == "Waiting for job a to succeed."
    end(world, "a", State.SUCCEEDED)
    assert is_queued(world.job("next"))


def test_of_many_jobs_the_first_ten_are_named() -> None:
    world = World(make_node(cpus=100))
    names = [f"n{number}" for number in range(12)]
    for name in names:
        world.run(id=name)
    world.submit(id="next", **after(*names))
    assert reason(world, "next").endswith("n8 (succeeded), n9 (succeeded), ….")


def test_while_a_job_that_is_waited_for_is_ending_or_tried_again_it_has_not_ended() -> None:
    world = World()
    world.submit(make_role("m", 2, min_failed=1), id="first", retryCount=1)
    refs = world.refs("first")
    world.started(*refs)
    world.submit(id="next", **after(on("first", "failed")))
    world.exited(refs[0], 1)
    assert world.job("first").sub_state is SubState.ENDING
    assert world.job("next").sub_state is SubState.DEPENDENCY_WAIT
    world.killed(refs[1])
    again = world.refs("first")
    assert again != refs
    assert world.job("next").sub_state is SubState.DEPENDENCY_WAIT
    world.started(*again)
    world.exited(again[0], 1)
    world.killed(again[1])
    assert is_queued(world.job("next"))


def test_a_retry_does_not_wait_again() -> None:
    world = World()
    end(world, world.run(id="first")[0].job_id, State.SUCCEEDED)
    world.submit(id="next", retryCount=1, **after("first"))
    world.stop("first", delete=True)
    world.started(*world.refs("next"))
    world.exited(world.refs("next")[0], 1)
    world.started(*world.refs("next"))
    assert world.job("next").state is State.RUNNING


def test_a_job_that_was_deleted_after_it_had_ended_as_asked_still_holds() -> None:
    world = World()
    world.run(id="a")
    world.run(id="b")
    world.submit(id="next", **after("a", "b"))
    end(world, "a", State.SUCCEEDED)
    world.stop("a", delete=True)
    world.restart()
    assert reason(world, "next") == "Waiting for job b to succeed."
    end(world, "b", State.SUCCEEDED)
    assert is_queued(world.job("next"))


def test_a_running_job_that_is_deleted_can_hold_no_longer() -> None:
    world = World()
    refs = world.run(id="first")
    world.submit(id="next", **after("first"))
    world.submit(id="cleanup", **after(on("first", "ended")))
    world.stop("first", delete=True)
    assert world.job("next").sub_state is SubState.DEPENDENCY_WAIT
    world.killed(*refs)
    assert world.job("next").state is State.STOPPED
    assert is_queued(world.job("cleanup"))


def test_a_job_that_was_deleted_before_its_dependent_arrived_at_the_core_is_named() -> None:
    world = World()
    world.submit(id="next", **after(on("gone", "ended")))
    job = world.job("next")
    assert job.state is State.STOPPED
    assert job.verdict is not None
    assert str(job.verdict.reason) == "Job gone was deleted, and this one waited for its end."


def test_an_end_in_the_same_group_of_events_counts() -> None:
    world = World()
    ref = world.run(id="first")[0]
    asks = make_config(name="next", **after("first"))
    world.handle(Ended(ref, world.now, EndCause.EXITED, 0), world.submitted(asks, "next"))
    assert is_queued(world.job("next"))
    ref = world.run(id="second")[0]
    asks = make_config(name="other", **after("second"))
    stopped = StopRequested(world.now, "second", "alice", delete=True)
    world.handle(stopped, Ended(ref, world.now, EndCause.KILLED, 143), world.submitted(asks, "other"))
    assert world.job("other").state is State.STOPPED


def test_a_job_that_waits_for_others_can_be_stopped_and_moved_up() -> None:
    world = World()
    world.run(id="first")
    world.submit(id="next", **after("first"))
    world.submit(id="last", **after(on("next", "ended")))
    world.reorder("next", priority=90)
    assert world.job("next").present_priority == 90
    world.stop("next")
    job = world.job("next")
    assert job.verdict is not None
    assert (job.state, job.verdict.exit_code) == (State.STOPPED, STOPPED_BY_USER)
    assert is_queued(world.job("last"))
    end(world, "first", State.SUCCEEDED)
    assert world.job("next").state is State.STOPPED


def test_two_entries_for_the_same_job_that_contradict_each_other_end_it_once() -> None:
    world = World()
    world.run(id="first")
    world.submit(id="next", **after(on("first", "failed"), "first", on("first", "ended")))
    end(world, "first", State.SUCCEEDED)
    assert world.job("next").state is State.STOPPED
    assert sum(event.type == "ended" for event in world.disk.job_events if event.job_id == "next") == 1


def test_what_waits_still_waits_after_a_restart_and_goes_on_from_there() -> None:
    world = World()
    for name in ("a", "b"):
        world.run(id=name)
    world.submit(id="next", **after("a", "b"))
    end(world, "a", State.SUCCEEDED)
    world.restart()
    assert world.job("next").sub_state is SubState.DEPENDENCY_WAIT
    # it ended while the service was down: the engine tells of it now
    end(world, "b", State.SUCCEEDED)
    assert is_queued(world.job("next"))
    world.restart()
    assert is_queued(world.job("next"))


def test_nothing_is_kept_in_memory_of_what_waits_no_more() -> None:
    world = World()
    world.run(id="first")
    for number in range(5):
        world.submit(id=f"n{number}", **after("first"))
    for number in range(3):
        world.stop(f"n{number}")
    end(world, "first", State.SUCCEEDED)
    assert vars(world.core.dependencies) == {"_waiting": {}, "_waiters": {}}


def test_time_spent_waiting_for_others_counts_for_no_promotion() -> None:
    cluster = VirtualCluster("default", 100, shortest_remaining=ShortestRemaining(promote_hours=1))
    world = World(virtual_clusters=[cluster])
    world.run(id="first")
    world.submit(id="next", **after("first"))
    world.tick(10 * 3_600_000)
    world.submit(make_role(cpus=8), id="ahead", extras={"maxRunSeconds": 5})
    end(world, "first", State.SUCCEEDED)
    assert world.job("next").sub_state is SubState.QUEUED
    assert world.job("next").eligible_since == world.now
    # else it would have been promoted hours ago
    promotes_at = world.core.timers.get("default", Timer.PROMOTION)
    assert promotes_at is not None
    assert promotes_at > world.now


def lines_of(action: Callable[[], object]) -> int:
    """Return how many lines of Python something runs: what it costs, on a busy machine too."""
    lines = 0

    def trace(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        action()
    finally:
        sys.settrace(before)
    return lines


def lines_for(count: int, *, chain: bool, code: int) -> int:
    """Return what one end costs on which so many jobs depend."""
    world = World()
    ref = world.run(id="first")[0]
    outcome = Outcome()
    for number in range(count):
        before = f"n{number - 1}" if chain and number else "first"
        config = make_config(name=f"n{number}", **after(before))
        world.core.handle(world.submitted(config, f"n{number}"), outcome)
    outcome, end = Outcome(), Ended(ref, world.now, EndCause.EXITED, code)
    lines = lines_of(lambda: world.core.handle(end, outcome, more=True))
    changed = [job for job_id, job in outcome.jobs.items() if job_id != "first"]
    assert len(changed) == count
    assert {job.sub_state for job in changed} == {SubState.QUEUED if code == 0 else SubState.ENDED}
    return lines


@pytest.mark.parametrize(("chain", "code"), [(True, 1), (False, 1), (False, 0)])
def test_one_end_on_which_ten_thousand_jobs_depend_takes_ten_times_what_a_thousand_take(
    chain: bool, code: int
) -> None:
    few, many = (lines_for(count, chain=chain, code=code) for count in (1000, 10_000))
    assert many < 11 * few


def test_an_end_for_which_nobody_waits_looks_at_no_dependency() -> None:
    def lines(waiting: int) -> int:
        world = World()
        world.validates = False
        world.run(id="first")
        for number in range(waiting):
            world.submit(id=f"n{number}", **after("first"))
        world.submit(id="other")
        return lines_of(lambda: world.stop("other"))

    assert lines(100) == lines(0)
