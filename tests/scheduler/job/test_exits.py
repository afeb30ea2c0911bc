"""The exit table is OpenPAI's, and the right row decides for a user's command."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from pai_scheduler.job import exit_codes
from pai_scheduler.job.exit_codes import Behavior, exit_spec, exit_table, spec_of_user_exit


def test_the_exit_table_has_every_row() -> None:
    assert len(exit_table()) == 54
    assert exit_table().keys() >= {0, 130, 255, 256, -7100, -7360, -7400, -8000}


def test_a_row_is_read_in_full() -> None:
    spec = exit_spec(196)
    assert spec.behavior is Behavior.NON_TRANSIENT
    assert asdict(spec) == {
        "code": 196,
        "phrase": "CONTAINER_OOM_KILLED_BY_DOCKER",
        "issuer": "PAI_RUNTIME",
        "causer": "USER_CONTAINER",
        "type": "USER_FAILURE",
        "stage": "RUNNING",
        "behavior": "NON_TRANSIENT",
        "reaction": "NEVER_RETRY",
    }


@pytest.mark.parametrize("code", [*range(-20, 257), -7351, -7400, -8000, 3221225477])
def test_an_ordinary_exit_is_unknown_and_a_signal_is_its_own_row(code: int) -> None:
    own = {0, 130, 132, 134, 135, 136, 137, 139, 141, 143}
    expected = code if code in own else -8000 if code < 0 else 255
    assert spec_of_user_exit(code).code == expected


@pytest.mark.parametrize(
    ("code", "behavior"),
    [
        (0, Behavior.UNKNOWN),
        (1, Behavior.UNKNOWN),
        (-1, Behavior.UNKNOWN),
        (134, Behavior.UNKNOWN),
        (193, Behavior.UNKNOWN),
        (196, Behavior.UNKNOWN),
        (198, Behavior.UNKNOWN),
        *[(code, Behavior.NON_TRANSIENT) for code in (132, 135, 136, 139, 141)],
        *[(code, Behavior.TRANSIENT_NORMAL) for code in (130, 137, 143)],
    ],
)
def test_the_contract_says_what_follows_from_a_user_s_exit(code: int, behavior: Behavior) -> None:
    assert spec_of_user_exit(code).behavior is behavior


@pytest.mark.parametrize("code", [0, 1, 137, -1])
def test_memory_that_ran_out_decides_whatever_the_code(code: int) -> None:
    assert spec_of_user_exit(code, oom=True) == exit_spec(exit_codes.OUT_OF_MEMORY)


@pytest.mark.parametrize(
    ("code", "phrase", "behavior"),
    [
        (exit_codes.CONTAINER_START_FAILED, "CONTAINER_DOCKER_RUN_FAILED", Behavior.TRANSIENT_NORMAL),
        (exit_codes.OUT_OF_DISK, "CONTAINER_OOD_KILLED_BY_DISKCLEANER", Behavior.NON_TRANSIENT),
        (exit_codes.NODE_LOST, "CONTAINER_NODE_LOST", Behavior.TRANSIENT_NORMAL),
        (exit_codes.PREEMPTED, "CONTAINER_PREEMPTED", Behavior.TRANSIENT_NORMAL),
        (exit_codes.STOPPED_BY_USER, "APP_STOP_FRAMEWORK_REQUESTED", Behavior.NON_TRANSIENT),
        (exit_codes.STOPPED_ON_COMPLETION, "TASK_STOPPED_ON_APP_COMPLETION", Behavior.NON_TRANSIENT),
    ],
)
def test_the_platform_s_own_findings_have_the_rows_of_the_contract(
    code: int, phrase: str, behavior: Behavior
) -> None:
    assert exit_spec(code).phrase == phrase
    assert exit_spec(code).behavior is behavior


def test_a_code_that_the_table_has_not_is_no_finding() -> None:
    with pytest.raises(KeyError):
        exit_spec(1)
