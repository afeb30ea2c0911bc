from __future__ import annotations

from typing import Any

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.core.instructions import Instruction
from pai_scheduler.core.model import State, SubState
from pai_scheduler.core.queries import limit_errors, queued_jobs, waiting_reason
from pai_scheduler.core.state_machine import CoreSettings
from tests.scheduler.core.world import (
    GRACE_MS,
    EndCause,
    KillTask,
    LaunchAttempt,
    World,
    make_node,
    make_role,
)
from tests.scheduler.making import make_spec

HALVES = (VirtualCluster("default", 50), VirtualCluster("vision", 50))


def shared(*clusters: VirtualCluster, gpus: int = 4, **settings: Any) -> World:
    node = make_node(cpus=100, memory_mb=100_000, gpus={"P100": gpus})
    return World(node, virtual_clusters=clusters or HALVES, settings=CoreSettings(**settings))


def gpus(count: int = 1, tasks: int = 1) -> dict[str, Any]:
    return make_role(tasks=tasks, gpus=count)


def why(world: World, job_id: str) -> str:
    return str(waiting_reason(world.core, world.job(job_id), world.now))


def launches(instructions: list[Instruction]) -> list[str]:
    return [step.job_id for step in instructions if isinstance(step, LaunchAttempt)]


# -- guarantees and borrowing


def test_a_job_within_its_guarantee_starts_and_says_nothing_of_borrowing() -> None:
    world = shared()
    assert launches(world.submit(gpus(2))) == ["j"]
    assert world.sentences()[-1] == "Has its resources on a."


def test_what_is_idle_may_be_borrowed_and_a_job_event_says_what_that_means() -> None:
    world = shared()
    assert launches(world.submit(gpus(4))) == ["j"]
    assert world.sentences()[-1] == (
        "Has its resources on a, beyond the guaranteed share of virtual cluster default: "
        "it may be stopped for others, and is queued again then."
    )


def test_the_form_says_that_a_job_would_borrow() -> None:
    world = shared()
    assert world.forecast("alice", make_spec(gpus(2))).borrows is False
    answer = world.forecast("alice", make_spec(gpus(3)))
    assert (answer.fits, answer.borrows) == ("now", True)
    assert "may be stopped for others" in str(answer.reason)


def test_nobody_holds_more_than_the_maximum_of_their_virtual_cluster() -> None:
    world = shared(VirtualCluster("default", 25, 50), VirtualCluster("vision", 50))
    world.run(gpus(2), id="first")
    assert launches(world.submit(gpus(1), id="second")) == []
    assert why(world, "second") == (
        "Waiting in virtual cluster default, place 1 in the queue: virtual cluster default may hold 2 × GPU "
        "at most (50 %), its jobs hold 2, and the job asks for 1 × GPU. "
        "It fits after the end of the job that runs."
    )
    world.submit(gpus(3), id="third")
    assert "Never fits at present: virtual cluster default may hold 2 × GPU at most (50 %)" in why(
        world, "third"
    )


def test_jobs_that_must_not_be_preempted_never_borrow() -> None:
    world = shared()
    assert launches(world.submit(gpus(3), extras={"preemptible": False})) == []
    assert "Never fits at present: virtual cluster default has 2 × GPU of its own" in why(world, "j")
    assert world.forecast("alice", make_spec(gpus(3), extras={"preemptible": False})).fits == "never"


def test_a_guarantee_is_rounded_down_for_each_type_of_gpu() -> None:
    world = shared(VirtualCluster("default", 60), VirtualCluster("vision", 40), gpus=3)
    assert not world.forecast("alice", make_spec(gpus(1))).borrows
    assert world.forecast("alice", make_spec(gpus(2))).borrows


def test_jobs_within_their_guarantee_come_before_those_that_borrow() -> None:
    world = shared()
    (first,) = world.run(gpus(4), id="first", virtualCluster="vision", extras={"preemptible": True})
    world.submit(gpus(2), id="borrows", virtualCluster="vision")
    world.submit(gpus(2), id="within")
    world.killed(first)
    # vision's own are 2 again; default's job has its 2 first
    assert world.job("within").sub_state is SubState.STARTING


# -- preemption


def test_the_form_says_that_borrowing_jobs_would_be_stopped_for_a_job() -> None:
    world = shared()
    world.run(gpus(2), id="old")
    world.now += 1
    world.run(gpus(2), id="young")
    answer = world.forecast("alice", make_spec(gpus(2), virtualCluster="vision"))
    assert answer.fits == "later"
    assert str(answer.reason) == (
        "it is guaranteed to virtual cluster vision: 1 borrowing job of others is stopped for it."
    )
    assert world.job("young").state is State.RUNNING
    assert world.submit(gpus(2), id="wants", virtualCluster="vision") == world.kills(world.refs("young"))


def test_the_youngest_borrowing_jobs_are_stopped_for_a_job_within_its_guarantee() -> None:
    world = shared()
    old = world.run(gpus(2), id="old")
    world.now += 1
    young = world.run(gpus(1), id="young")
    world.now += 1
    youngest = world.run(gpus(1), id="youngest")
    assert world.submit(gpus(1), id="wants", virtualCluster="vision") == world.kills(youngest)
    assert world.job("youngest").sub_state is SubState.ENDING
    assert launches(world.killed(*youngest)) == ["wants"]
    attempt = world.attempt("youngest")
    assert attempt.verdict is not None
    assert (attempt.state, attempt.verdict.exit_code, attempt.verdict.exit_row) == (
        State.STOPPED,
        -7120,
        -7120,
    )
    assert world.task(youngest[0]).exit_code == -7120
    job = world.job("youngest")
    assert (job.state, job.sub_state, job.retries.platform) == (State.WAITING, SubState.QUEUED, 1)
    assert world.job("old").state is world.job("young").state is State.RUNNING
    assert old
    assert young


def test_a_preempted_job_runs_again_when_there_is_room() -> None:
    world = shared()
    (borrower,) = world.run(gpus(4), id="borrower")
    world.submit(gpus(2), id="wants", virtualCluster="vision")
    world.killed(borrower)
    (wants,) = world.refs("wants")
    world.started(wants)
    assert launches(world.exited(wants)) == ["borrower"]
    assert world.attempt("borrower").number == 1


def test_nobody_is_stopped_where_that_would_not_help() -> None:
    world = shared(VirtualCluster("default", 50), VirtualCluster("vision", 50))
    world.run(gpus(2), id="own", extras={"preemptible": False})
    world.run(gpus(1), id="borrows")
    # two of vision's GPUs are one free and one borrowed, but three are asked for, beyond its own guarantee
    assert world.submit(gpus(3), id="wants", virtualCluster="vision") == []
    assert world.job("borrows").state is State.RUNNING


def test_a_job_does_not_preempt_its_own_virtual_cluster() -> None:
    world = shared()
    world.run(gpus(2), id="own", virtualCluster="vision")
    world.run(gpus(2), id="borrows", virtualCluster="vision")
    assert world.submit(gpus(1), id="more", virtualCluster="vision") == []


def test_what_is_being_freed_is_kept_for_the_job_it_is_freed_for() -> None:
    world = shared()
    first = world.run(gpus(1), id="a")
    second = world.run(gpus(1), id="b")
    world.now += 1
    third = world.run(gpus(1), id="c")
    fourth = world.run(gpus(1), id="d")
    assert set(world.submit(gpus(2), id="wants", virtualCluster="vision")) == set(
        world.kills([*third, *fourth])
    )
    assert [entry.reserved for entry in queued_jobs(world.core, "vision")] == [True]
    assert (
        "what 2 jobs that are being stopped still hold is kept for it, and free in 10 s at the latest."
        in why(world, "wants")
    )
    assert launches(world.killed(*third)) == []  # not c itself again
    assert launches(world.submit(gpus(1), id="small")) == []
    assert launches(world.killed(*fourth)) == ["wants"]
    assert world.is_free() is False
    assert first
    assert second


def test_what_was_being_freed_when_the_service_died_is_kept_for_the_same_job_afterwards() -> None:
    world = shared()
    (a,) = world.run(gpus(2), id="a")
    world.now += 1
    (b,) = world.run(gpus(1), id="b")
    (c,) = world.run(gpus(1), id="c")
    world.submit(gpus(2), id="wants", virtualCluster="vision")
    assert set(world.restart()) == {KillTask(b, world.now + GRACE_MS), KillTask(c, world.now + GRACE_MS)}
    world.tick()
    assert launches(world.killed(b)) == []
    assert launches(world.killed(c)) == ["wants"]
    assert world.task(a).state is State.RUNNING


def test_what_no_longer_goes_beyond_a_guarantee_is_not_stopped() -> None:
    world = shared()
    (old,) = world.run(gpus(2), id="old")
    world.now += 1
    world.run(gpus(2), id="young")
    world.exited(old)
    # now young is all that default holds: its own
    assert world.submit(gpus(2), id="wants", virtualCluster="vision")
    world.started(*world.refs("wants"))
    assert world.submit(gpus(1), id="more", virtualCluster="vision") == []
    assert world.job("young").state is State.RUNNING


# -- order


def test_a_higher_priority_is_first_in_its_virtual_cluster() -> None:
    world = shared(VirtualCluster("default", 100))
    (running,) = world.run(gpus(4), id="running")
    world.submit(gpus(4), id="plain")
    world.submit(gpus(4), id="urgent", extras={"priority": 80})
    world.submit(gpus(4), id="idle", extras={"priority": 10})
    assert [entry.job.id for entry in queued_jobs(world.core, "default")] == ["urgent", "plain", "idle"]
    assert launches(world.exited(running)) == ["urgent"]


def test_a_priority_may_be_changed_while_a_job_waits_and_outlives_a_restart() -> None:
    world = shared(VirtualCluster("default", 100))
    (running,) = world.run(gpus(4), id="running")
    world.submit(gpus(4), id="first")
    world.submit(gpus(4), id="second")
    world.reorder("second", priority=51)
    assert "bob gave it priority 51." in world.sentences("second")
    world.restart()
    assert launches(world.exited(running)) == ["second"]


def test_an_owner_moves_a_job_among_their_own_only() -> None:
    world = shared(VirtualCluster("default", 100))
    world.run(gpus(4), id="running")
    for job_id, user in (("a1", "alice"), ("b1", "bert"), ("a2", "alice"), ("b2", "bert"), ("a3", "alice")):
        world.submit(gpus(4), id=job_id, user=user)
    world.reorder("a3", place=1)
    assert [entry.job.id for entry in queued_jobs(world.core, "default")] == ["a3", "b1", "a1", "b2", "a2"]
    world.reorder("a3", place=99)
    assert [entry.job.id for entry in queued_jobs(world.core, "default")] == ["a1", "b1", "a2", "b2", "a3"]


def test_an_administrator_moves_a_job_past_everybody() -> None:
    world = shared(VirtualCluster("default", 100))
    world.run(gpus(4), id="running")
    for job_id in ("a", "b", "c", "d"):
        world.submit(gpus(4), id=job_id, user=job_id)
    world.reorder("d", place=1, owner_only=False)
    assert [entry.job.id for entry in queued_jobs(world.core, "default")] == ["d", "a", "b", "c"]
    world.reorder("d", place=3, owner_only=False)
    assert [entry.job.id for entry in queued_jobs(world.core, "default")] == ["a", "b", "d", "c"]
    world.restart()
    assert [entry.job.id for entry in queued_jobs(world.core, "default")] == ["a", "b", "d", "c"]


def test_a_large_gang_is_overtaken_only_so_often() -> None:
    world = shared(VirtualCluster("default", 100), overtake_limit=3)
    small = [world.run(gpus(1), id=f"r{number}")[0] for number in range(4)]
    world.submit(gpus(4), id="large")
    started = []
    for number in range(10):
        world.submit(gpus(1), id=f"s{number}")
        begun = launches(world.exited(small.pop(0)))
        started += begun
        for job_id in begun:
            world.started(*world.refs(job_id))
            small += world.refs(job_id)
    assert started[:4] == ["s0", "s1", "s2", "large"]


def test_a_job_overtaken_too_often_is_told_that_it_is_next() -> None:
    world = shared(VirtualCluster("default", 100), overtake_limit=1)
    (first,) = world.run(gpus(2), id="first")
    world.run(gpus(1), id="second")
    world.submit(gpus(4), id="large")
    world.run(gpus(1), id="small")
    world.exited(first)
    (entry,) = queued_jobs(world.core, "default")
    assert (entry.overtaken, entry.reserved) == (1, True)
    assert "2 more jobs have ended" in why(world, "large")
    world.submit(gpus(2), id="later")
    assert "what it needs is free, but kept for jobs that have waited longer or come first." in why(
        world, "later"
    )


def test_jobs_that_come_and_start_at_once_overtake_no_more_often_either() -> None:
    node = [make_node(f"n{number}", gpus={"P100": 2}) for number in range(10)]
    world = World(*node, settings=CoreSettings(overtake_limit=3))
    world.run(gpus(1), id="running")
    world.submit(gpus(2, tasks=10), id="large")
    started = [launches(world.submit(gpus(1), id=f"s{number}")) for number in range(17)]
    assert started == [["s0"], ["s1"], ["s2"], *[[]] * 14]


# -- limits


def test_a_user_holds_no_more_gpus_than_their_quota() -> None:
    world = shared(VirtualCluster("default", 100, gpus_per_user=2))
    (first,) = world.run(gpus(2), id="first")
    assert launches(world.submit(gpus(1), id="second")) == []
    assert (
        "a user may hold 2 × GPU in virtual cluster default; alice holds 2, and the job asks for 1 × GPU."
        in why(world, "second")
    )
    assert launches(world.submit(gpus(1), id="other", user="bert")) == ["other"]
    assert launches(world.submit(make_role(), id="cpu")) == ["cpu"]
    assert launches(world.exited(first)) == ["second"]
    world.submit(gpus(3), id="never")
    assert "Never fits at present: a user may hold 2 × GPU" in why(world, "never")


def test_a_job_is_stopped_when_it_has_run_for_its_time() -> None:
    world = World()
    world.submit(make_role(tasks=2), extras={"maxRunSeconds": 60}, retryCount=-2)
    world.now += 3_600_000  # starting does not count
    refs = world.refs()
    world.started(*refs)
    assert world.tick(59_999) == world.outcome.instructions
    assert world.job().state is State.RUNNING
    assert world.tick(1)[:2] == world.kills(refs)
    world.killed(*refs)
    job = world.job()
    assert (job.state, job.verdict is not None and job.verdict.exit_code) == (State.STOPPED, -7351)
    assert "Stopped after running for its time limit of 60 s" in world.sentences()[-4]
    assert world.told()[-4:] == ["ending", "task-ended", "task-ended", "ended"]
    assert world.disk.job_events[-4].data == {"cause": "timeLimit"}


def test_a_time_limit_outlives_a_restart_and_counts_each_attempt_anew() -> None:
    world = World()
    (first,) = world.run(retryCount=1, extras={"maxRunSeconds": 60})
    world.now += 50_000
    world.exited(first, 1)
    (second,) = world.refs()
    world.started(second)
    world.tick(50_000)
    world.restart()
    world.tick()
    assert world.job().state is State.RUNNING
    world.tick(10_000)
    world.killed(second)
    assert world.job().state is State.STOPPED


def test_a_virtual_cluster_has_a_time_limit_for_jobs_that_name_none_and_one_for_all() -> None:
    clusters = [VirtualCluster("default", 100, default_run_seconds=10, max_run_seconds=100)]
    world = World(virtual_clusters=clusters)
    world.run(id="plain")
    world.run(id="asks", extras={"maxRunSeconds": 50})
    world.tick(10_000)
    assert world.job("plain").sub_state is SubState.ENDING
    assert world.job("asks").sub_state is SubState.RUNNING
    (error,) = limit_errors(world.core, make_spec(extras={"maxRunSeconds": 101}))
    assert error.path == "$.extras.maxRunSeconds"
    assert "may run for 100 s at most" in str(error.message)
    assert limit_errors(world.core, make_spec(extras={"maxRunSeconds": 100})) == []


def test_nothing_of_a_stopped_virtual_cluster_starts_until_it_is_open_again() -> None:
    world = shared()
    world.change_shares(VirtualCluster("default", 50, stopped=True), VirtualCluster("vision", 50))
    assert launches(world.submit(gpus(1))) == []
    assert "an administrator has stopped virtual cluster default." in why(world, "j")
    assert launches(world.change_shares(*HALVES)) == ["j"]


def test_a_job_whose_virtual_cluster_is_gone_says_so() -> None:
    world = shared()
    world.run(gpus(4), id="running")
    world.submit(gpus(1), virtualCluster="vision", extras={"preemptible": False})
    world.change_shares(VirtualCluster("default", 100))
    assert "there is no virtual cluster vision any more." in why(world, "j")


def test_shares_that_grow_let_those_start_that_waited_for_them() -> None:
    world = shared(VirtualCluster("default", 25, 25), VirtualCluster("vision", 75))
    assert launches(world.submit(gpus(2))) == []
    assert launches(world.change_shares(*HALVES)) == ["j"]


# -- a debugged job


def test_a_failed_task_of_a_debugged_job_keeps_its_container_until_the_job_is_stopped() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2), jobEnvs={"isDebug": True})
    world.held(first, 7)
    job, task = world.job(), world.task(first)
    assert (job.state, job.sub_state) == (State.RUNNING, SubState.DEBUG_HELD)
    assert (task.state, task.exit_code) == (State.RUNNING, 7)
    world.exited(second)
    assert world.job().state is State.RUNNING
    assert world.stop() == world.kills([first])
    world.killed(first)
    assert world.job().state is State.STOPPED
    assert (world.task(first).state, world.task(first).exit_code) == (State.FAILED, 7)
    assert world.is_free()


def test_when_the_hold_ends_the_failure_counts() -> None:
    world = World(settings=CoreSettings(debug_hold_seconds=60))
    (task,) = world.run(jobEnvs={"isDebug": True}, retryCount=1)
    world.held(task, 139)
    assert world.disk.job_events[-1].data == {"until": world.now + 60_000}
    world.restart()
    world.tick(59_999)
    assert world.job().sub_state is SubState.DEBUG_HELD
    assert KillTask(task, world.now + 1 + GRACE_MS) in world.tick(1)
    world.killed(task)
    job = world.job()
    # a segmentation fault is never tried again
    assert (job.state, job.verdict is not None and job.verdict.exit_code) == (State.FAILED, 139)


def test_a_hold_of_a_job_with_retries_is_followed_by_another_attempt() -> None:
    world = World(settings=CoreSettings(debug_hold_seconds=60))
    (task,) = world.run(jobEnvs={"isDebug": True}, retryCount=1)
    world.held(task, 1)
    world.tick(60_000)
    assert launches(world.killed(task)) == ["j"]


def test_each_held_task_is_held_for_its_own_time() -> None:
    world = World(settings=CoreSettings(debug_hold_seconds=60))
    first, second = world.run(make_role(tasks=2, min_failed=2), jobEnvs={"isDebug": True})
    world.held(first, 1)
    world.now += 30_000
    world.held(second, 2)
    assert KillTask(first, world.now + 30_000 + GRACE_MS) in world.tick(30_000)
    assert not world.task(second).killing
    world.killed(first)
    assert world.task(first).exit_code == 1
    assert world.job().sub_state is SubState.DEBUG_HELD
    assert KillTask(second, world.now + 30_000 + GRACE_MS) in world.tick(30_000)
    world.killed(second)
    assert world.job().state is State.FAILED


def test_a_hold_that_is_told_again_changes_nothing() -> None:
    world = World()
    (task,) = world.run(jobEnvs={"isDebug": True})
    world.held(task, 7)
    before = world.task(task)
    world.now += 1000
    assert world.held(task, 9) == []
    assert world.task(task) == before


def test_a_task_held_while_others_still_start_shows_when_all_run() -> None:
    world = World()
    world.submit(make_role(tasks=2), jobEnvs={"isDebug": True})
    first, second = world.refs()
    world.started(first)
    world.held(first, 1)
    assert world.job().state is State.WAITING
    world.started(second)
    assert (world.job().state, world.job().sub_state) == (State.RUNNING, SubState.DEBUG_HELD)


def test_a_held_task_that_is_lost_ended_as_its_command_did() -> None:
    world = World()
    (task,) = world.run(jobEnvs={"isDebug": True})
    world.held(task, 3)
    world.ended(task, EndCause.LOST)
    verdict = world.job().verdict
    assert verdict is not None
    assert (world.job().state, verdict.exit_code) == (State.FAILED, 3)
