"""Each way in which a task can end without doing so by itself has its sentence."""

from __future__ import annotations

import errno

import pytest

from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.process.folder_operations import cause_and_reason
from pai_scheduler.engine.process.task_folder import Failure, TaskRecord


@pytest.mark.parametrize(
    ("record", "cause", "words"),
    [
        ({"cause": "lost"}, EndCause.LOST, "is not known"),
        ({}, EndCause.LOST, "is not known"),
        ({"cause": "oom", "memory_mb": 100}, EndCause.OOM, "more than its 100 MB"),
        ({"cause": "disk", "storage_gb": 5}, EndCause.DISK, "more than its 5 GB"),
        ({"cause": "exited", "dropped": 9}, EndCause.EXITED, "the last 9 bytes"),
        ({"cause": "port-conflict", "failure": {"errno": 8080}}, EndCause.PORT_CONFLICT, "Port 8080"),
    ],
)
def test_an_end_has_its_sentence(record: TaskRecord, cause: EndCause, words: str) -> None:
    found, reason = cause_and_reason(record)
    assert found is cause
    assert words in str(reason)


@pytest.mark.parametrize("cause", ["exited", "killed"])
def test_an_ordinary_end_needs_no_sentence(cause: str) -> None:
    assert cause_and_reason({"cause": cause, "dropped": 0}) == (EndCause(cause), None)


def test_two_things_to_say_are_two_sentences() -> None:
    _, reason = cause_and_reason({"cause": "oom", "memory_mb": 100, "dropped": 9})
    assert "100 MB" in str(reason)
    assert "9 bytes" in str(reason)
    assert reason is not None
    assert "任务使用的内存超过了申请的 100 MB" in reason.in_locale("zh_CN")
    assert "9 字节" in reason.in_locale("zh_CN")


@pytest.mark.parametrize(
    ("failure", "cause", "words"),
    [
        ({"kind": "exec", "errno": errno.E2BIG}, EndCause.REFUSED, "too long"),
        ({"kind": "exec", "errno": errno.EINVAL}, EndCause.REFUSED, "NUL"),
        ({"kind": "exec", "errno": errno.EAGAIN}, EndCause.LAUNCH_FAILED, "temporarily unavailable"),
        ({"kind": "limits", "errno": errno.EACCES, "detail": "/sys/x"}, EndCause.LAUNCH_FAILED, "(/sys/x)"),
        ({"kind": "log", "errno": errno.ENOSPC}, EndCause.LAUNCH_FAILED, "no room"),
        ({"kind": "folder", "errno": errno.EACCES}, EndCause.LAUNCH_FAILED, "Permission denied"),
        ({"kind": "internal", "detail": "Traceback\n  x\nValueError: why"}, EndCause.LAUNCH_FAILED, ": why"),
    ],
)
def test_a_failed_start_has_its_sentence(failure: Failure, cause: EndCause, words: str) -> None:
    found, reason = cause_and_reason({"cause": "launch-failed", "failure": failure})
    assert found is cause
    assert words in str(reason)
    assert "\n" not in str(reason)


def test_a_supervisor_that_failed_says_why() -> None:
    record: TaskRecord = {
        "cause": "lost",
        "failure": {"kind": "internal", "detail": "Traceback\nOSError: broken"},
    }
    assert "OSError: broken" in str(cause_and_reason(record)[1])
