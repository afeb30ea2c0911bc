"""The command that runs all benchmarks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.testbed.disk import file_system, journaled_disk
from tests.testbed.fixtures import provide

from . import __main__ as program
from . import turnover
from .rows import Row, UnavailableError


def test_a_short_run_is_right_and_says_how_it_went(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert program.main(["--short", "--out", str(tmp_path)]) == 0
    said = capfd.readouterr().out
    assert "| placements, 20 nodes, 200 queued, 4 shapes, gangs of 64 | /s of CPU |" in said
    assert f"The suites' files are on {file_system(Path(tempfile.gettempdir()))}; Docker's are not." in said
    assert program.read(tmp_path / "turnover.jsonl")


def test_the_disk_of_the_suites_has_a_journal_and_is_gone_afterwards() -> None:
    with ExitStack() as stack:
        folder = provide(lambda: stack.enter_context(journaled_disk()))
        assert file_system(folder) == "ext4 with a journal"
        (folder / "a").write_text("b")
    assert not folder.exists()


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
