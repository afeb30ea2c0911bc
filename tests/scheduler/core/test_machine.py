from __future__ import annotations

import pytest

from pai_scheduler.cluster.placement import PORT_RANGE
from pai_scheduler.core.events import Ended, Notice, Noticed, PortsTaken
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import State, SubState
from pai_scheduler.core.states import FOLLOWS
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from tests.scheduler.core.world import (
    EndCause,
    LaunchAttempt,
    ReleaseAttempt,
    World,
    make_node,
    make_role,
)

A, B = TaskRef("j", 0, "main", 0), TaskRef("j", 0, "main", 1)


# -- from submission to the end


def test_a_job_that_fits_is_launched_as_soon_as_it_is_submitted() -> None:
    world = World()
    assert world.submit() == [LaunchAttempt("j", 0)]
    job = world.job()
    assert (job.state, job.sub_state) == (State.WAITING, SubState.STARTING)
    assert world.told() == ["submitted", "placed"]
    assert world.sentences() == ["Submitted by alice.", "Has its resources on a."]


def test_a_job_that_does_not_fit_waits() -> None:
    world = World(make_node(cpus=2))
    assert world.submit(make_role(cpus=3)) == []
    assert (world.job().state, world.job().sub_state) == (State.WAITING, SubState.QUEUED)
    assert "j" in world.core.queue


def test_a_gang_gets_everything_or_nothing() -> None:
    world = World(make_node("a", cpus=2), make_node("b", cpus=2))
    assert world.submit(make_role(tasks=3, cpus=2)) == []
    assert world.is_free()
    assert world.submit(make_role(tasks=2, cpus=2), id="k") == [LaunchAttempt("k", 0)]
    assert sorted(task.assignment.node for task in world.attempt("k").tasks.values()) == ["a", "b"]


def test_a_job_runs_only_when_all_of_its_tasks_have_started() -> None:
    world = World()
    world.submit(make_role(tasks=2))
    world.started(A)
    assert (world.job().state, world.attempt().launched) == (State.WAITING, None)
    assert world.task(A).state is State.RUNNING
    world.now += 5
    world.started(B)
    assert (world.job().state, world.job().sub_state) == (State.RUNNING, SubState.RUNNING)
    assert world.attempt().launched == world.now
    assert world.told()[-3:] == ["task-started", "task-started", "running"]


def test_a_task_that_has_started_and_ended_counts_as_started() -> None:
    world = World()
    world.submit(make_role(tasks=2))
    world.started(A)
    world.exited(A, 0)
    world.started(B)
    assert world.job().state is State.RUNNING


def test_a_started_task_says_where_it_can_be_found() -> None:
    world = World()
    world.run()
    task = world.task(A)
    assert (task.address, task.container_id, task.started) == ("127.0.0.1", f"pid-{A.name}", world.now)


def test_a_job_whose_only_task_exits_0_succeeds_and_lets_go_of_everything() -> None:
    world = World(make_node(gpus={"P100": 1}), shares_host_ports=True)
    (task,) = world.run(make_role(gpus=1))
    assert not world.is_free()
    world.now += 7
    assert world.exited(task, 0) == [ReleaseAttempt("j", 0)]
    job = world.job()
    assert (job.state, job.sub_state, job.completed) == (State.SUCCEEDED, SubState.ENDED, world.now)
    assert job.verdict is not None
    assert job.verdict.exit_code == 0
    assert (world.attempt().state, world.attempt().completed) == (State.SUCCEEDED, world.now)
    assert (world.task(task).state, world.task(task).exit_code) == (State.SUCCEEDED, 0)
    assert world.is_free()
    assert world.core.jobs == {}


def test_a_job_whose_task_fails_ends_with_that_tasks_exit_code() -> None:
    world = World()
    (task,) = world.run()
    world.exited(task, 7)
    job = world.job()
    assert job.state is State.FAILED
    assert job.verdict is not None
    assert (job.verdict.exit_code, job.verdict.exit_row, job.verdict.trigger) == (7, 255, ("main", 0))
    assert str(job.verdict.reason) == (
        "Task main-0 ended with exit code 7. Its command failed: the end of its log says why."
    )


def test_when_a_task_decides_the_attempt_the_others_are_ended_before_anything_is_released() -> None:
    world = World()
    first, second, third = world.run(make_role(tasks=3))
    assert world.exited(first, 1) == world.kills([second, third])
    assert (world.job().state, world.job().sub_state) == (State.RUNNING, SubState.ENDING)
    assert world.task(second).killing
    assert world.killed(second) == []
    assert world.killed(third) == [ReleaseAttempt("j", 0)]
    assert world.job().sub_state is SubState.ENDED
    for ref in (second, third):
        assert (world.task(ref).state, world.task(ref).exit_code) == (State.STOPPED, -7400)


def test_a_task_that_ended_by_itself_while_it_was_being_ended_keeps_its_real_exit_code() -> None:
    world = World()
    first, second, third = world.run(make_role(tasks=3))
    world.exited(first, 1)
    world.exited(second, 0)
    world.exited(third, 9)
    assert (world.task(second).state, world.task(second).exit_code) == (State.SUCCEEDED, 0)
    assert (world.task(third).state, world.task(third).exit_code) == (State.FAILED, 9)
    verdict = world.job().verdict
    assert verdict is not None
    assert verdict.exit_code == 1


def test_what_a_job_gives_back_goes_to_the_next_in_line() -> None:
    world = World(make_node(cpus=1))
    (task,) = world.run()
    world.submit(id="next")
    world.submit(id="later")
    assert world.exited(task) == [ReleaseAttempt("j", 0), LaunchAttempt("next", 0)]
    assert world.job("later").sub_state is SubState.QUEUED


def test_what_a_task_gives_back_is_used_before_its_job_has_ended() -> None:
    world = World(make_node(cpus=2))
    first, _ = world.run(make_role(tasks=2))
    world.submit(id="next")
    assert world.exited(first) == [LaunchAttempt("next", 0)]


def test_a_small_job_passes_a_large_one_that_does_not_fit() -> None:
    world = World(make_node(cpus=2))
    world.run(id="running")
    assert world.submit(make_role(cpus=2), id="large") == []
    assert world.submit(id="small") == [LaunchAttempt("small", 0)]


def test_several_events_can_be_handled_as_one_group() -> None:
    world = World()
    world.submit(make_role(tasks=2))
    world.started(A, B)
    assert world.job().state is State.RUNNING


# -- progress


def test_what_an_engine_notices_of_a_running_task_is_a_job_event_and_changes_nothing() -> None:
    world = World()
    world.submit()
    world.started(A)
    assert world.handle(Noticed(A, world.now, Notice.PROCESS_KILLED, msg("Killed."), {"memoryMB": 100})) == []
    told = world.disk.job_events[-1]
    assert (told.type, told.attempt, told.role, told.index) == ("process-killed", A.attempt, A.role, A.index)
    assert told.data == {"memoryMB": 100}


def test_progress_is_told_until_the_task_has_started() -> None:
    world = World()
    world.submit()
    world.progress(A, 40)
    assert world.disk.job_events[-1].data == {"percent": 40}
    world.progress(A)
    assert world.disk.job_events[-1].data == {}
    world.started(A)
    before = len(world.disk.job_events)
    world.progress(A, 50)
    assert len(world.disk.job_events) == before


# -- stop


def test_a_queued_job_is_stopped_at_once() -> None:
    world = World()
    world.submit(make_role(cpus=100))
    assert world.stop() == []
    job = world.job()
    assert (job.state, job.sub_state, job.completed) == (State.STOPPED, SubState.ENDED, world.now)
    assert job.verdict is not None
    assert (job.verdict.exit_code, job.verdict.exit_row) == (-7351, -7351)
    assert str(job.verdict.reason) == "Stopped by bob."
    assert "j" not in world.core.queue
    assert world.told() == ["submitted", "stop-requested", "ended"]


@pytest.mark.parametrize("started", [False, True])
def test_a_starting_or_running_job_is_stopped_and_its_tasks_ended(started: bool) -> None:
    world = World()
    world.submit(make_role(tasks=2))
    if started:
        world.started(A, B)
    assert world.stop() == world.kills([A, B])
    before = State.RUNNING if started else State.WAITING
    assert (world.job().state, world.job().sub_state) == (before, SubState.ENDING)
    world.killed(A)
    assert world.killed(B) == [ReleaseAttempt("j", 0)]
    assert (world.job().state, world.job().sub_state) == (State.STOPPED, SubState.ENDED)
    assert [world.task(ref).exit_code for ref in (A, B)] == [-7351, -7351]
    assert world.is_free()


def test_a_stopped_job_has_no_other_attempt_whatever_its_retry_count() -> None:
    world = World()
    world.run(retryCount=-2)
    world.stop()
    assert world.killed(A) == [ReleaseAttempt("j", 0)]
    assert world.job().sub_state is SubState.ENDED


def test_a_job_between_attempts_is_stopped_at_once() -> None:
    world = World()
    world.run(retryCount=-1)
    for _ in range(4):
        world.started(*world.refs())
        world.exited(world.refs()[0], 1)
    assert world.job().sub_state is SubState.RETRY_WAIT
    assert world.stop() == []
    assert (world.job().state, world.job().sub_state) == (State.STOPPED, SubState.ENDED)
    assert world.job().not_before is None
    assert world.tick(10_000_000) == []


def test_a_job_whose_failed_attempt_is_just_ending_is_stopped_and_the_attempt_stays_failed() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2), retryCount=5)
    assert world.exited(first, 3) == world.kills([second])
    assert (world.job().state, world.job().sub_state) == (State.RUNNING, SubState.ENDING)
    assert world.stop() == []
    assert (world.job().state, world.job().sub_state) == (State.RUNNING, SubState.ENDING)
    assert world.job().is_decided
    assert world.killed(second) == [ReleaseAttempt("j", 0)]
    job, attempt = world.job(), world.attempt()
    assert (job.state, job.sub_state) == (State.STOPPED, SubState.ENDED)
    assert attempt.verdict is not None
    assert (attempt.state, attempt.verdict.exit_code) == (State.FAILED, 3)


def test_stopping_a_job_that_is_decided_changes_nothing() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2))
    world.exited(first, 3)
    assert world.stop() == []
    assert world.job().sub_state is SubState.ENDING
    world.killed(second)
    assert world.stop() == []
    assert world.job().state is State.FAILED
    assert world.told().count("stop-requested") == 0


def test_stopping_twice_is_stopping_once() -> None:
    world = World()
    world.run()
    world.stop()
    assert world.stop() == []
    assert world.told().count("stop-requested") == 1


# -- time


@pytest.mark.parametrize("restarted", [False, True])
def test_what_is_told_by_a_clock_that_was_set_back_is_told_after_what_came_before(restarted: bool) -> None:
    world = World()
    (task,) = world.run(retryCount=1)
    if restarted:
        world.restart()
    long_ago = world.now - 3_600_000
    ended = world.core.in_order(Ended(task, long_ago, EndCause.EXITED, 3))
    assert ended == Ended(task, world.now, EndCause.EXITED, 3)
    world.handle(ended)
    assert world.attempt(number=0).completed == world.now
    times = [entry.time for entry in world.disk.job_events]
    assert times == sorted(times)


def test_what_ended_while_nobody_looked_keeps_its_time_and_what_follows_begins_now() -> None:
    world = World(make_node(cpus=1))
    (task,) = world.run()
    world.submit(id="next")
    ended = world.now + 1000
    world.tick(60_000)
    event = Ended(task, ended, EndCause.EXITED, 0)
    assert world.core.in_order(event) is event
    world.handle(event)
    assert world.job().completed == ended
    assert world.attempt("next").created == world.now


# -- the end is the end


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("how", ["fails", "succeeds", "is stopped", "runs out of time"])
def test_a_job_ends_when_its_last_task_has_and_tells_how_it_came_out_before(
    how: str, restarted: bool
) -> None:
    world = World()
    role = make_role(tasks=2, min_succeeded=1)
    first, second = world.run(role, extras={"maxRunSeconds": 60})
    state, code = {
        "fails": (State.FAILED, 7),
        "succeeds": (State.SUCCEEDED, 0),
        "is stopped": (State.STOPPED, -7351),
        "runs out of time": (State.STOPPED, -7351),
    }[how]
    if how == "is stopped":
        world.stop()
    elif how == "runs out of time":
        world.tick(60_000)
    else:
        world.exited(first, code)
    if code < 0:
        world.killed(first)
    world.now += 5_000
    if restarted:
        world.restart()
    job, attempt = world.job(), world.attempt()
    assert (job.state, job.sub_state, job.completed) == (State.RUNNING, SubState.ENDING, None)
    assert (attempt.state, attempt.completed) == (State.RUNNING, None)
    assert job.verdict is not None
    assert (job.verdict.state, job.verdict.exit_code) == (state, code)
    assert list(world.core.unended("alice")) == [world.core.jobs["j"]]
    assert "ended" not in world.told()
    assert str(job.verdict.reason) in world.sentences()
    world.killed(second)
    job, attempt = world.job(), world.attempt()
    assert (job.state, job.sub_state, job.completed) == (state, SubState.ENDED, world.now)
    assert (attempt.state, attempt.completed) == (state, world.now)
    assert world.told().count("ended") == 1
    assert world.told()[-1] == "ended"
    assert list(world.core.unended("alice")) == []
    assert world.is_free()


def test_a_job_that_is_tried_again_runs_until_its_last_task_has_ended() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2), retryCount=1)
    world.exited(first, 1)
    assert (world.job().state, world.job().sub_state) == (State.RUNNING, SubState.ENDING)
    assert not world.job().is_decided
    world.killed(second)
    assert (world.job().state, world.job().sub_state) == (State.WAITING, SubState.STARTING)


def test_every_sub_state_can_be_left_but_the_last_and_nothing_else_may_follow() -> None:
    assert FOLLOWS.keys() == set(SubState)
    assert [each for each, following in FOLLOWS.items() if not following] == [SubState.ENDED]
    world = World()
    world.submit()
    job = world.job()
    assert job.sub_state is SubState.STARTING
    with pytest.raises(ValueError, match="QUEUED cannot follow STARTING"):
        job.enter(SubState.QUEUED)


# -- delete


def test_a_queued_job_is_deleted_at_once() -> None:
    world = World()
    world.submit(make_role(cpus=100))
    world.stop(delete=True)
    assert world.outcome.deleted == ["j"]
    assert world.core.jobs == {}


def test_a_running_job_is_deleted_when_its_tasks_are_gone() -> None:
    world = World()
    world.run()
    assert world.stop(delete=True) == world.kills([A])
    assert world.outcome.deleted == []
    assert world.job().doomed
    assert world.killed(A) == [ReleaseAttempt("j", 0)]
    assert world.outcome.deleted == ["j"]


def test_a_job_that_is_being_stopped_can_be_deleted_too() -> None:
    world = World()
    world.run()
    world.stop()
    assert world.stop(delete=True) == []
    world.killed(A)
    assert world.outcome.deleted == ["j"]


def test_a_deleted_job_stays_deleted_over_a_restart() -> None:
    world = World()
    world.run()
    world.stop(delete=True)
    assert world.restart() == world.kills([A])
    world.killed(A)
    assert world.outcome.deleted == ["j"]


def test_an_ended_job_is_deleted_at_once() -> None:
    world = World()
    (task,) = world.run()
    world.exited(task)
    world.stop(delete=True)
    assert world.outcome.deleted == ["j"]


# -- what an engine may say late, twice or wrongly


def test_what_is_said_about_unknown_jobs_or_tasks_changes_nothing() -> None:
    world = World()
    world.submit()
    for ref in (TaskRef("other", 0, "main", 0), TaskRef("j", 0, "main", 9), TaskRef("j", 1, "main", 0)):
        for instructions in (world.started(ref), world.exited(ref), world.progress(ref)):
            assert instructions == []
            assert (world.outcome.jobs, world.outcome.tasks, world.outcome.job_events) == ({}, {}, [])


def test_an_event_that_is_reported_twice_counts_once() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2, min_failed=2))
    assert world.started(first) == []
    world.exited(first, 1)
    events = len(world.disk.job_events)
    assert world.exited(first, 1) == []
    assert world.started(first) == []
    assert len(world.disk.job_events) == events
    assert world.job().state is State.RUNNING
    assert world.task(second).state is State.RUNNING


def test_what_is_said_about_a_past_attempt_changes_nothing() -> None:
    world = World()
    (old,) = world.run(retryCount=1)
    assert LaunchAttempt("j", 1) in world.exited(old, 1)
    for instructions in (world.exited(old, 0), world.started(old), world.progress(old)):
        assert instructions == []
        assert world.outcome.job_events == []
    assert world.job().sub_state is SubState.STARTING


# -- nodes


def test_a_node_that_joins_takes_what_waits() -> None:
    world = World(make_node("a", cpus=1))
    world.submit(make_role(cpus=4))
    assert world.change_nodes(make_node("a", cpus=1), make_node("b", cpus=4)) == [LaunchAttempt("j", 0)]


def test_what_runs_keeps_its_resources_when_nodes_change() -> None:
    world = World(make_node("a", cpus=4))
    world.run(make_role(cpus=3))
    assert world.change_nodes(make_node("a", cpus=4), make_node("b", cpus=1)) == []
    uses = world.core.cluster.uses
    assert (uses["a"].cpus, uses["b"].cpus) == (1, 1)


def test_a_task_on_a_node_that_left_can_still_end() -> None:
    world = World(make_node("a"), make_node("b"))
    (task,) = world.run()
    node = world.task(task).assignment.node
    world.change_nodes(*(n for n in world.nodes if n.name != node))
    assert world.exited(task) == [ReleaseAttempt("j", 0)]
    assert world.is_free()


# -- restart


def test_a_queued_job_is_in_line_again_after_a_restart() -> None:
    world = World(make_node(cpus=1))
    (task,) = world.run(id="running")
    world.submit(id="one")
    world.submit(id="two")
    assert world.restart() == []
    assert [world.core.queue.queue_position(job) for job in ("one", "two")] == [1, 2]
    assert world.exited(task._replace(job_id="running")) == [
        ReleaseAttempt("running", 0),
        LaunchAttempt("one", 0),
    ]


def test_a_job_that_fits_only_after_the_restart_begins_with_the_first_event() -> None:
    world = World(make_node(cpus=1))
    world.submit(make_role(cpus=2))
    world.nodes = (make_node(cpus=2),)
    assert world.restart() == []
    assert world.tick() == [LaunchAttempt("j", 0)]


def test_a_starting_job_is_launched_again_after_a_restart_and_holds_its_resources() -> None:
    world = World(make_node(cpus=2))
    world.submit(make_role(tasks=2))
    world.started(A)
    assert world.restart() == [LaunchAttempt("j", 0)]
    assert world.core.cluster.uses["a"].cpus == 0
    world.started(B)
    assert world.job().state is State.RUNNING


def test_a_running_job_is_taken_up_silently_after_a_restart() -> None:
    world = World(make_node(cpus=2))
    first, second = world.run(make_role(tasks=2))
    world.exited(first)
    assert world.restart() == []
    assert world.core.cluster.uses["a"].cpus == 1
    assert world.exited(second) == [ReleaseAttempt("j", 0)]


def test_a_task_that_could_not_be_started_is_not_launched_again_after_a_restart() -> None:
    world = World()
    world.submit(make_role(tasks=2, min_failed=None))
    world.ended(A, EndCause.LAUNCH_FAILED)
    world.started(B)
    assert world.restart() == []


def test_an_ending_job_has_its_tasks_ended_again_after_a_restart() -> None:
    world = World()
    first, second, third = world.run(make_role(tasks=3))
    world.exited(first, 1)
    world.killed(second)
    assert world.restart() == world.kills([third])
    assert world.killed(third) == [ReleaseAttempt("j", 0)]
    assert world.job().state is State.FAILED


def test_an_ended_job_is_not_taken_up_after_a_restart() -> None:
    world = World()
    (task,) = world.run()
    world.exited(task)
    assert world.restart() == []
    assert world.core.jobs == {}
    assert world.is_free()


def test_a_task_that_ended_while_nobody_looked_is_recorded_with_its_exit_code() -> None:
    world = World()
    world.submit()
    world.restart()
    world.started(A)
    world.exited(A, 7)
    assert world.task(A).exit_code == 7
    assert world.job().state is State.FAILED


def test_the_sentence_about_a_tasks_end_gives_the_engines_reason() -> None:
    world = World()
    world.submit()
    world.ended(A, EndCause.REFUSED, None, msg("There is no image {image}.", image="x/y"))
    assert "Task main-0 has ended: There is no image x/y." in world.sentences()
    verdict = world.job().verdict
    assert verdict is not None
    assert str(verdict.reason) == "Task main-0 failed: There is no image x/y."


# ports that other programs have


def test_a_task_whose_ports_are_taken_gets_others_before_the_gang_starts() -> None:
    world = World(shares_host_ports=True)
    world.submit(make_role(tasks=2))
    first, second = world.refs()
    theirs, others = world.task(first).assignment, world.task(second).assignment
    taken = frozenset(theirs.ports["http"])
    instructions = world.handle(PortsTaken(world.now, "j", 0, taken))
    assert instructions == [LaunchAttempt("j", 0)]
    assert world.task(first).assignment.ports["http"] != theirs.ports["http"]
    assert world.task(first).assignment.ports["ssh"] == theirs.ports["ssh"]
    assert world.task(second).assignment == others
    assert "1 task has others now" in world.sentences()[-1]
    # what was changed is what a restart finds, and what is given back in the end
    world.restart()
    for ref in (first, second):
        world.started(ref)
        world.exited(ref)
    assert world.is_free()


def test_an_attempt_for_which_too_few_ports_are_left_is_tried_again() -> None:
    world = World(shares_host_ports=True)
    world.submit(make_role(tasks=2))
    refs = world.refs()
    assert world.handle(PortsTaken(world.now, "j", 0, frozenset(PORT_RANGE)))[:2] == world.kills(refs)
    world.killed(*refs)
    assert "too few are left" in " ".join(world.sentences())
    assert world.attempt().number == 1


def test_taken_ports_of_an_attempt_that_is_decided_or_over_change_nothing() -> None:
    world = World(shares_host_ports=True)
    world.submit()
    world.stop()
    assert world.handle(PortsTaken(world.now, "j", 0, frozenset(PORT_RANGE))) == []
    assert world.handle(PortsTaken(world.now, "j", 7, frozenset(PORT_RANGE))) == []
    assert world.handle(PortsTaken(world.now, "nobody", 0, frozenset(PORT_RANGE))) == []


def test_what_the_tasks_of_one_job_leave_together_goes_to_who_comes_first() -> None:
    world = World(make_node("a", cpus=2), make_node("b", cpus=2))
    refs = world.run(make_role(tasks=2, cpus=2))
    world.submit(make_role(tasks=2, cpus=2), id="large")
    world.submit(make_role(cpus=1), id="small")
    outcome = Outcome()
    world.core.handle(Ended(refs[0], world.now, EndCause.EXITED, 0), outcome, more=True)
    assert not [one for one in outcome.instructions if isinstance(one, LaunchAttempt)]
    world.core.handle(Ended(refs[1], world.now, EndCause.EXITED, 0), outcome)
    launched = [one.job_id for one in outcome.instructions if isinstance(one, LaunchAttempt)]
    assert launched == ["large"]
