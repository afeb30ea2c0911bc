from __future__ import annotations

import pytest

from pai_scheduler.core.completion import exit_row, reported_exit
from pai_scheduler.core.events import Ended
from pai_scheduler.core.model import State
from pai_scheduler.job.task import TaskRef
from tests.scheduler.core.world import EndCause, World, make_role

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
