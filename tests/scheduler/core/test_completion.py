from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.core.completion import announcements, exit_row, reported_exit, retry_after, stop_verdict
from pai_scheduler.core.events import Ended
from pai_scheduler.core.model import Job, State, SubState, Verdict
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import build_spec
from tests.scheduler.core.world import (
    EndCause,
    LaunchAttempt,
    ReleaseAttempt,
    WakeAt,
    World,
    make_role,
)
from tests.scheduler.making import make_config

REF = TaskRef("j", 0, "main", 0)


@pytest.mark.parametrize(
    ("cause", "code", "reported", "row"),
    [
        (EndCause.EXITED, 0, 0, 0),
        (EndCause.EXITED, 7, 7, 255),
        (EndCause.EXITED, 196, 196, 255),
        (EndCause.EXITED, 139, 139, 139),
        (EndCause.EXITED, 137, 137, 137),
        (EndCause.OOM, 137, 137, 196),
        (EndCause.LAUNCH_FAILED, None, 193, 193),
        (EndCause.PORT_CONFLICT, None, -7103, -7103),
        (EndCause.REFUSED, None, -7300, -7300),
        (EndCause.LOST, None, 154, 154),
        (EndCause.NODE_LOST, None, -7111, -7111),
        (EndCause.KILLED, None, 154, 154),
        (EndCause.KILLED, 143, 143, 143),
    ],
)
def test_people_see_the_real_exit_code_and_the_table_decides(
    cause: EndCause, code: int | None, reported: int, row: int
) -> None:
    event = Ended(REF, 1, cause, code)
    assert exit_row(event) == row
    assert reported_exit(event) == reported


def test_the_first_failure_ends_the_attempt_where_nothing_is_said() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2))
    assert world.exited(first, 1) == world.kills([second])


def test_the_attempt_goes_on_until_so_many_tasks_have_failed() -> None:
    world = World()
    first, second, third = world.run(make_role(tasks=3, min_failed=2))
    assert world.exited(first, 4) == []
    assert world.exited(second, 5) == world.kills([third])
    verdict = world.job().verdict
    assert verdict is not None
    assert (verdict.exit_code, verdict.trigger) == (5, ("main", 1))


def test_failed_tasks_never_fail_a_job_where_null_is_said() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2, min_failed=None))
    world.exited(first, 1)
    world.exited(second, 1)
    job = world.job()
    assert job.state is State.SUCCEEDED
    assert job.verdict is not None
    assert job.verdict.exit_code == 0
    assert str(job.verdict.reason) == "All tasks have completed; 2 of them failed."


def test_all_tasks_must_complete_where_nothing_is_said_of_success() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2))
    assert world.exited(first, 0) == []
    world.exited(second, 0)
    verdict = world.job().verdict
    assert verdict is not None
    assert (verdict.state, str(verdict.reason)) == (State.SUCCEEDED, "All tasks have completed.")


def test_enough_successes_end_the_attempt_at_once_as_succeeded() -> None:
    world = World()
    first, second, third = world.run(make_role(tasks=3, min_succeeded=2))
    assert world.exited(first, 0) == []
    assert world.exited(second, 0) == world.kills([third])
    world.killed(third)
    job = world.job()
    assert job.state is State.SUCCEEDED
    assert (world.task(third).state, world.task(third).exit_code) == (State.STOPPED, -7400)


def test_each_role_has_a_policy_of_its_own() -> None:
    world = World()
    refs = world.run(
        make_role("ps", 2, min_failed=None), make_role("worker", 2, min_failed=2, min_succeeded=1)
    )
    ps0, ps1, worker0, worker1 = refs
    assert world.exited(ps0, 1) == []
    assert world.exited(worker0, 1) == []
    assert world.exited(worker1, 0) == world.kills([ps1])
    world.killed(ps1)
    assert world.job().state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        (0, "1 task of role worker has succeeded."),
        (1, "1 task of role worker has succeeded. 1 task had failed before."),
        (2, "1 task of role worker has succeeded. 2 tasks had failed before."),
    ],
)
def test_a_job_that_has_enough_successes_says_how_many_tasks_had_failed(failed: int, words: str) -> None:
    world = World()
    refs = world.run(
        make_role("ps", 1, min_failed=None), make_role("worker", 3, min_failed=None, min_succeeded=1)
    )
    for ref in refs[:failed]:
        world.exited(ref, 1)
    world.exited(refs[2], 0)
    world.killed(*(ref for ref in refs if not world.task(ref).state.ended))
    verdict = world.job().verdict
    assert verdict is not None
    assert (verdict.state, str(verdict.reason)) == (State.SUCCEEDED, words)


def test_failures_of_one_role_do_not_count_for_another() -> None:
    world = World()
    refs = world.run(make_role("ps", 2, min_failed=2), make_role("worker", 2, min_failed=2))
    assert world.exited(refs[0], 1) == []
    assert world.exited(refs[2], 1) == []
    assert world.exited(refs[3], 1) == world.kills([refs[1]])
    verdict = world.job().verdict
    assert verdict is not None
    assert verdict.trigger == ("worker", 1)


def test_a_failure_counts_before_the_last_tasks_completion() -> None:
    world = World()
    (only,) = world.run(make_role(min_failed=1))
    world.exited(only, 1)
    assert world.job().state is State.FAILED


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        (
            EndCause.OOM,
            "Task main-0 was ended because it used more memory than it asked for: "
            "ask for more (memoryMB), or use less.",
        ),
        (
            EndCause.REFUSED,
            "Task main-0 ended with exit code -7300. It cannot run as it is written, for example because its "
            "image does not exist: change the job.",
        ),
    ],
)
def test_a_failure_is_put_into_words(cause: EndCause, sentence: str) -> None:
    world = World()
    (only,) = world.run()
    world.ended(only, cause, 137 if cause is EndCause.OOM else None)
    verdict = world.job().verdict
    assert verdict is not None
    assert str(verdict.reason) == sentence


# Who is told of a job's end is decided with the end.


FAILED = Verdict(State.FAILED, 3, 3, None, msg("Task main-0 has failed."))
SUCCEEDED = Verdict(State.SUCCEEDED, 0, 0, None, msg("All tasks have completed."))


def ended(verdict: Verdict, notify: Any, *, doomed: bool = False) -> Job:
    spec = build_spec(make_config(name="train", extras={"notify": notify} if notify else {}))
    return Job(
        "id1", "ada", spec, 1000, state=verdict.state, sub_state=SubState.ENDED, completed=2000,
        verdict=verdict, doomed=doomed,
    )  # fmt: skip


BOTH = {"webhook": "https://hooks.lab/", "mail": True}


@pytest.mark.parametrize(
    ("on", "told"),
    [
        (["end"], (True, True, True)),
        (["failure"], (True, False, False)),
        (["end", "failure"], (True, True, True)),
    ],
)
def test_of_failure_only_or_of_every_end(on: list[str], told: tuple[bool, ...]) -> None:
    verdicts = FAILED, SUCCEEDED, stop_verdict("ada")
    assert tuple(bool(announcements(ended(verdict, BOTH | {"on": on}))) for verdict in verdicts) == told


def test_each_way_has_an_announcement_of_its_own_with_what_is_known_of_the_job() -> None:
    webhook, mail = announcements(ended(FAILED, BOTH))
    assert (webhook.channel, webhook.target, webhook.time) == ("webhook", "https://hooks.lab/", 2000)
    assert (mail.channel, mail.target, mail.user) == ("mail", "", "ada")
    assert webhook.document["state"] == "FAILED"
    assert webhook.document["appExitCode"] == 3
    (other,) = announcements(ended(FAILED, {"mail": "bob@lab.example"}))
    assert other.target == "bob@lab.example"


def test_nobody_is_told_who_has_not_asked_or_deletes_the_job() -> None:
    assert announcements(ended(FAILED, None)) == []
    assert announcements(ended(stop_verdict("ada"), BOTH, doomed=True)) == []


DAY_MS = 24 * 60 * 60 * 1000


def fail(world: World, cause: EndCause = EndCause.EXITED, code: int | None = 1) -> list[object]:
    """Let the job's present attempt start and fail."""
    world.started(*world.refs())
    return list(world.ended(world.refs()[0], cause, code))


def again_at_once(attempt: int) -> list[object]:
    return [ReleaseAttempt("j", attempt), LaunchAttempt("j", attempt + 1)]


def test_an_ordinary_failure_is_final_where_no_retry_was_asked_for() -> None:
    world = World()
    world.submit()
    assert fail(world) == [ReleaseAttempt("j", 0)]
    assert world.job().state is State.FAILED


def test_an_ordinary_failure_is_tried_again_until_the_count_is_used_up() -> None:
    world = World()
    world.submit(retryCount=2)
    assert fail(world) == again_at_once(0)
    assert fail(world) == again_at_once(1)
    assert fail(world) == [ReleaseAttempt("j", 2)]
    job = world.job()
    assert (job.state, job.retries.user, job.retries.total) == (State.FAILED, 2, 2)


def test_success_ends_a_job_that_has_retries_left() -> None:
    world = World()
    world.submit(retryCount=5)
    assert fail(world) == again_at_once(0)
    world.started(*world.refs())
    world.exited(world.refs()[0], 0)
    job = world.job()
    assert (job.state, job.retries.total) == (State.SUCCEEDED, 1)


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (EndCause.EXITED, 130),
        (EndCause.EXITED, 137),
        (EndCause.EXITED, 143),
        (EndCause.LOST, None),
        (EndCause.NODE_LOST, None),
        (EndCause.LAUNCH_FAILED, None),
        (EndCause.PORT_CONFLICT, None),
    ],
)
def test_what_is_not_the_jobs_fault_is_tried_again_and_not_counted(cause: EndCause, code: int | None) -> None:
    world = World()
    world.submit()
    assert fail(world, cause, code) == again_at_once(0)
    job = world.job()
    assert (job.state, job.retries.platform, job.retries.user) == (State.WAITING, 1, 0)


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (EndCause.EXITED, 132),
        (EndCause.EXITED, 135),
        (EndCause.EXITED, 136),
        (EndCause.EXITED, 139),
        (EndCause.EXITED, 141),
        (EndCause.OOM, 137),
        (EndCause.REFUSED, None),
    ],
)
def test_what_would_fail_again_is_never_tried_again(cause: EndCause, code: int | None) -> None:
    world = World()
    world.submit(retryCount=-1)
    assert fail(world, cause, code) == [ReleaseAttempt("j", 0)]
    assert world.job().state is State.FAILED


@pytest.mark.parametrize("code", [1, 154, 193, 196, 198, 255, 134])
def test_a_command_that_exits_with_a_number_of_the_platforms_is_ordinary(code: int) -> None:
    world = World()
    world.submit()
    assert fail(world, EndCause.EXITED, code) == [ReleaseAttempt("j", 0)]
    assert world.job().state is State.FAILED
    verdict = world.job().verdict
    assert verdict is not None
    assert verdict.exit_code == code


def test_minus_1_tries_ordinary_failures_again_without_limit_and_ends_with_success() -> None:
    world = World()
    world.submit(retryCount=-1)
    for _ in range(20):
        fail(world)
        world.tick(300_000)
    assert world.job().retries.user == 20
    world.started(*world.refs())
    world.exited(world.refs()[0], 0)
    assert world.job().state is State.SUCCEEDED


@pytest.mark.parametrize(
    ("cause", "code"), [(EndCause.EXITED, 0), (EndCause.EXITED, 139), (EndCause.OOM, 137)]
)
def test_minus_2_tries_again_whatever_happened(cause: EndCause, code: int) -> None:
    world = World()
    world.submit(retryCount=-2)
    assert fail(world, cause, code) == again_at_once(0)
    assert world.attempt(number=0).completed == world.now


def test_the_first_three_are_at_once_then_the_pause_doubles_up_to_five_minutes() -> None:
    world = World()
    world.submit(retryCount=-1)
    pauses = []
    for _ in range(15):
        begin = world.now
        instructions = fail(world)
        wakes = [step.time for step in instructions if isinstance(step, WakeAt)]
        pauses.append(wakes[0] - begin if wakes else 0)
        if wakes:
            assert world.job().sub_state is SubState.RETRY_WAIT
            assert world.job().not_before == wakes[0]
            assert world.tick(pauses[-1] - 1) == [WakeAt(wakes[0])]
            number = world.attempt().number + 1
            assert world.tick(1) == [LaunchAttempt("j", number)]
    seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]
    assert pauses == [0, 0, 0, *(1000 * second for second in seconds)]


def test_an_attempt_that_ran_five_minutes_starts_the_count_again() -> None:
    world = World()
    world.submit(retryCount=-1)
    for _ in range(3):
        fail(world)
    world.started(*world.refs())
    world.now += 300_000
    assert world.exited(world.refs()[0], 1) == again_at_once(3)
    assert fail(world) == again_at_once(4)
    assert fail(world) == again_at_once(5)
    assert any(isinstance(step, WakeAt) for step in fail(world))


def test_the_time_in_the_queue_is_no_running_time() -> None:
    world = World()
    world.submit(retryCount=-1)
    for _ in range(3):
        fail(world)
    world.now += 300_000
    assert any(isinstance(step, WakeAt) for step in fail(world))


def test_the_pause_begins_when_the_attempt_was_decided_but_the_next_waits_for_its_last_task() -> None:
    world = World()
    world.submit(make_role(tasks=2), retryCount=-1)
    for _ in range(3):
        fail(world)
        world.killed(world.refs()[1])
    assert fail(world) == world.kills([world.refs()[1]])
    due = world.now + 1000
    assert world.job().not_before == due
    assert world.tick(5000) == []
    assert world.killed(world.refs()[1]) == [ReleaseAttempt("j", 3), WakeAt(due)]
    assert world.tick() == [LaunchAttempt("j", 4)]


def test_between_attempts_nothing_is_held() -> None:
    world = World()
    world.submit(retryCount=-1)
    for _ in range(4):
        fail(world)
    assert world.job().sub_state is SubState.RETRY_WAIT
    assert world.is_free()


def test_a_job_keeps_its_place_in_the_queue_over_retries() -> None:
    world = World()
    world.submit(make_role(cpus=8), retryCount=1)
    world.submit(make_role(cpus=8), id="next")
    assert fail(world) == again_at_once(0)


def test_every_attempt_is_kept_with_how_it_came_out() -> None:
    world = World()
    world.submit(retryCount=1)
    fail(world, code=3)
    fail(world, code=4)
    verdicts = [world.attempt(number=number).verdict for number in (0, 1)]
    assert [verdict and verdict.exit_code for verdict in verdicts] == [3, 4]


def test_a_job_event_says_until_when_and_why_it_waits() -> None:
    world = World()
    world.submit(retryCount=-1)
    for _ in range(4):
        fail(world)
    assert world.sentences()[-1] == (
        "Task main-0 ended with exit code 1. Its command failed: the end of its log says why. "
        "Trying again in 1 s."
    )


def test_several_sleeping_jobs_wake_each_at_its_time() -> None:
    world = World()
    dues = {}
    for job in ("j", "k"):
        world.submit(id=job, retryCount=-1)
        for _ in range(4):
            world.started(*world.refs(job))
            world.exited(world.refs(job)[0], 1)
        dues[job] = world.job(job).not_before
        world.now += 100
    world.now = dues["j"] or 0
    assert world.tick() == [WakeAt(dues["k"] or 0), LaunchAttempt("j", 4)]
    world.now = dues["k"] or 0
    assert world.tick() == [LaunchAttempt("k", 4)]


def test_a_sleeping_job_sleeps_on_after_a_restart() -> None:
    world = World()
    world.submit(retryCount=-1)
    for _ in range(4):
        fail(world)
    due = world.job().not_before
    assert due is not None
    assert world.restart() == [WakeAt(due)]
    assert world.tick() == [WakeAt(due)]
    assert world.tick(1000) == [LaunchAttempt("j", 4)]


def test_a_conflict_over_resources_is_tried_again_after_a_spread_out_pause_and_not_counted() -> None:
    world = World()
    pauses = set()
    for number in range(20):
        job_id = f"j{number}"
        world.submit(id=job_id)
        job = world.core.jobs[job_id]
        timeout = Verdict(State.FAILED, -7252, -7252, None, msg("No resources in time."))
        another = retry_after(job, timeout, 0)
        assert another is not None
        assert another == retry_after(job, timeout, 0)
        assert another.kind == "resource"
        assert 600_000 <= another.delay_ms < 3_600_000
        pauses.add(another.delay_ms)
    assert len(pauses) > 15
