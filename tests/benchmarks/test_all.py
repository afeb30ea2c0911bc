"""The command that runs all benchmarks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from . import __main__ as program
from . import turnover
from .rows import Row, UnavailableError


def test_a_short_run_is_right_and_says_how_it_went(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--short", "--out", str(tmp_path)]) == 0
    assert "| placements, 20 nodes, 200 queued, 4 shapes, gangs of 64 | /s of CPU |" in capfd.readouterr().out
    assert program.read(tmp_path / "turnover.jsonl")


def test_a_wrong_outcome_is_found() -> None:
    run = turnover.Turnover(turnover.Case(nodes=2, queued=5))
    run.fill()
    run.check()
    at, start = run.starts[0]
    run.starts.append((at + 1, start))  # as if the same GPUs had been given again
    with pytest.raises(AssertionError, match=f"was {start.job_id}'s and {start.job_id}'s"):
        run.check()


def test_what_a_suite_cannot_measure_here_is_no_wrong_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows(*, short: bool) -> Iterator[Row]:
        yield Row("short" if short else "long", "ms", (1,))
        raise UnavailableError("it is not installed")

    monkeypatch.setattr(turnover, "rows", rows)
    assert program.main(["--here", "turnover", "--short", "--out", str(tmp_path)]) == program.UNAVAILABLE
    assert "turnover: not measured: it is not installed" in capsys.readouterr().err
    assert [row.measure for row in program.read(tmp_path / "turnover.jsonl")] == ["short"]
