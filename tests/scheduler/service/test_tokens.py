"""The tokens of jobs: who made them is known, over a restart too, and nobody else makes one."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from pai_scheduler.service.credentials import JobTokens


def test_a_jobs_token_tells_the_job() -> None:
    tokens = JobTokens(b"secret")
    assert tokens.job_of(tokens.token("abc234")) == "abc234"


def test_tokens_stay_valid_over_a_restart_and_their_secret_is_nobodys_business(tmp_path: Path) -> None:
    token = JobTokens.in_folder(tmp_path).token("abc234")
    assert JobTokens.in_folder(tmp_path).job_of(token) == "abc234"
    assert stat.S_IMODE((tmp_path / "job-tokens.key").stat().st_mode) == 0o600


@pytest.mark.parametrize("change", [("abc234", "abc235"), ("paijob", "pai"), ("-", "")])
def test_a_token_that_was_changed_is_nobodys(change: tuple[str, str]) -> None:
    tokens = JobTokens(b"secret")
    assert tokens.job_of(tokens.token("abc234").replace(*change)) is None


@pytest.mark.parametrize("text", ["", "-", "paijob-", "paijob-abc234-", "paijob-abc234-\udc80", "ü"])
def test_what_is_no_token_is_nobodys(text: str) -> None:
    assert JobTokens(b"secret").job_of(text) is None


def test_another_schedulers_token_is_nobodys() -> None:
    assert JobTokens(b"mine").job_of(JobTokens(b"other").token("abc234")) is None
