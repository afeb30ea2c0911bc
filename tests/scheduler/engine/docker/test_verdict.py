"""How a container's end is judged, from what was seen of it: no Docker is needed for that."""

from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.engine.disk_usage import filled_the_disk
from pai_scheduler.engine.docker.debug_hold import HoldReport
from pai_scheduler.engine.docker.task import UNSEEN_EXIT, Observations, judge, read_time
from pai_scheduler.engine.docker.volumes import LABEL_STORAGE
from pai_scheduler.engine.protocol import EndCause

STARTED, FINISHED = "2026-11-23T10:00:00.5Z", "2026-11-23T10:00:10.5Z"
END = read_time(FINISHED)
NOW = END + 300


def container(code: int, *, oom: bool = False, finished: str = FINISHED) -> dict[str, Any]:
    """Return what Docker tells of a container that ended."""
    return {
        "State": {"ExitCode": code, "OOMKilled": oom, "StartedAt": STARTED, "FinishedAt": finished},
        "Config": {"Labels": {LABEL_STORAGE: "2"}},
        "HostConfig": {},
    }


@pytest.mark.parametrize("code", [0, 1, 137])
def test_a_command_that_ends_by_itself_has_its_own_exit_code(code: int) -> None:
    verdict = judge(Observations(exit_code=code), container(code), NOW)
    assert (verdict.cause, verdict.exit_code, verdict.time) == (EndCause.EXITED, code, END)
    assert verdict.reason is None


def test_a_task_that_seems_to_end_before_it_starts_ends_when_it_starts() -> None:
    early = container(0, finished="2026-11-23T10:00:00.4Z")
    assert judge(Observations(), early, NOW).time == read_time(STARTED)


def test_a_container_that_is_gone_is_lost_unless_its_exit_code_was_seen() -> None:
    lost = judge(Observations(), None, NOW)
    assert (lost.cause, lost.exit_code, lost.time) == (EndCause.LOST, None, NOW)
    assert "removed by somebody else" in str(lost.reason)
    assert judge(Observations(exit_code=3), None, NOW).cause is EndCause.EXITED


def test_an_exit_code_that_nobody_saw_is_no_exit_code() -> None:
    lost = judge(Observations(), container(UNSEEN_EXIT), NOW)
    assert (lost.cause, lost.exit_code) == (EndCause.LOST, None)
    assert "went down" in str(lost.reason)
    own = judge(Observations(exit_code=UNSEEN_EXIT), container(UNSEEN_EXIT), NOW)
    assert (own.cause, own.exit_code) == (EndCause.EXITED, UNSEEN_EXIT)


def test_a_task_is_killed_only_where_it_ended_after_that() -> None:
    killed = judge(Observations(killed_at=END - 1), container(143), NOW)
    assert (killed.cause, killed.exit_code) == (EndCause.KILLED, 143)
    assert judge(Observations(killed_at=END + 1), container(1), NOW).cause is EndCause.EXITED


def test_what_was_signalled_ended_after_that_whatever_the_clock_says() -> None:
    verdict = judge(Observations(signalled=True, killed_at=END + 5000), container(137), NOW)
    assert (verdict.cause, verdict.time) == (EndCause.KILLED, END + 5000)


@pytest.mark.parametrize(("killed_at", "cause"), [(END - 1, EndCause.DISK), (END - 3, EndCause.KILLED)])
def test_the_first_of_a_kill_and_a_full_disk_is_the_cause(killed_at: int, cause: EndCause) -> None:
    seen = Observations(killed_at=killed_at, disk_full_at=END - 2)
    assert judge(seen, container(137), NOW).cause is cause


def test_a_task_that_wrote_too_much_is_told_its_limit() -> None:
    verdict = judge(Observations(disk_full_at=END - 2), container(1), NOW)
    assert (verdict.cause, verdict.exit_code) == (EndCause.DISK, 137)
    assert "more than its 2 GB" in str(verdict.reason)


def test_a_task_that_kept_its_limit_is_told_that_the_disk_was_full() -> None:
    seen = Observations(disk_full_at=END - 2, no_room=True)
    assert str(judge(seen, container(1), NOW).reason) == str(filled_the_disk())


@pytest.mark.parametrize(("heard", "noted"), [(True, False), (False, True)])
def test_memory_ends_a_task_whose_command_failed_by_it(heard: bool, noted: bool) -> None:
    verdict = judge(Observations(oom=heard), container(137, oom=noted), NOW)
    assert (verdict.cause, verdict.exit_code, verdict.process_killed) == (EndCause.OOM, 137, False)


def test_a_command_that_survives_a_kill_for_memory_exits_and_says_so() -> None:
    verdict = judge(Observations(oom=True), container(0), NOW)
    assert (verdict.cause, verdict.exit_code, verdict.process_killed) == (EndCause.EXITED, 0, True)


def test_a_held_task_ended_as_its_command_did_not_as_the_hold() -> None:
    hold = HoldReport(END - 5, EndCause.OOM, 9)
    verdict = judge(Observations(held=hold), container(0), NOW)
    assert (verdict.cause, verdict.exit_code) == (EndCause.OOM, 9)
    # the hold itself may end unseen: the command's end was reported
    unseen = HoldReport(END - 5, EndCause.EXITED, UNSEEN_EXIT)
    assert judge(Observations(held=unseen), container(0), NOW).cause is EndCause.EXITED
