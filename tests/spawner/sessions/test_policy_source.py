"""The policy's file, read again when it has changed."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from pai_spawner.sessions.policy_file import PolicyError, PolicySource


def write(file: Path, text: str, time: int) -> None:
    file.write_text(text)
    os.utime(file, ns=(time, time))


def test_a_changed_file_is_read_again_and_a_wrong_one_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "sessions.yaml"
    write(file, "rules: [{sessions: 1}]", 1)
    source = PolicySource(file)
    assert source.refresh().policy.rules[0].sets == {"sessions": 1}
    write(file, "rules: [{sessions: 2}]", 2)
    assert source.refresh().policy.rules[0].sets == {"sessions": 2}
    write(file, "rules: [{session: 3}]", 3)
    with caplog.at_level(logging.ERROR):
        assert source.refresh().policy.rules[0].sets == {"sessions": 2}
    assert "Did you mean sessions?" in caplog.text
    file.unlink()
    assert source.refresh().policy.rules[0].sets == {"sessions": 2}


def test_a_file_that_is_wrong_at_first_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="cannot be read"):
        PolicySource(tmp_path / "none.yaml")
