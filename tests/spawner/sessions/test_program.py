"""The program `pai-sessions`, above all when it cannot start."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_spawner.sessions.program import main


def start(folder: Path, policy: str) -> int:
    file = folder / "sessions.yaml"
    file.write_text(policy)
    arguments = ["--policy", str(file), "--data-dir", str(folder / "data")]
    return main([*arguments, "--scheduler-url", "http://127.0.0.1:9"])


def test_a_policy_that_is_wrong_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert start(tmp_path, "rules: [{idleAfter: soon}]") == 1
    said = capsys.readouterr().err
    assert said.startswith("pai-sessions: The sessions file")
    assert "rules[0].idleAfter" in said


def test_without_a_hub_it_says_who_starts_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JUPYTERHUB_API_TOKEN", raising=False)
    assert start(tmp_path, "rules: []") == 1
    assert capsys.readouterr().err == (
        "pai-sessions: the Hub has to start it; JUPYTERHUB_API_TOKEN is not set.\n"
    )
    assert not (tmp_path / "data").exists()
