"""`pai-hub doctor` says one thing a line, and its exit code says whether something is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_spawner.doctor.program import main


def test_a_hub_before_its_first_start_is_well(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "configuration.py"
    config.write_text(
        "c = get_config()\nc.Authenticator.allow_all = True\nc.JupyterHub.extra_handlers = []\n"
    )
    assert main(["doctor", "--config", str(config), "--folder", str(tmp_path)]) == 0
    said, logged = capfd.readouterr()
    assert said.startswith(f"The Hub ({config})\n  ok    People log in by PAMAuthenticator.\n")
    assert "  note  The Hub does not run" in said
    assert logged == ""


def test_a_configuration_that_ends_the_start_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "configuration.py"
    config.write_text("raise SystemExit('no folder')")
    assert main(["doctor", "--config", str(config)]) == 1
    assert "  WRONG The configuration cannot be used: no folder\n        → " in capsys.readouterr().out
