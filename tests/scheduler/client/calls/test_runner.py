"""What runs in the task, without a task: Pythons that differ, cells, and what cannot be read."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.client.calls import runner
from pai_scheduler.client.calls.errors import CallError, NotSendableError
from pai_scheduler.client.calls.job import read_outcome
from pai_scheduler.client.calls.packing import PROGRAM, pack_cell, pack_function


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(runner, "OWN", tmp_path / PROGRAM)
    main = sys.modules["__main__"]
    yield tmp_path
    sys.modules["__main__"] = main


def run(folder: Path, program: bytes, **about: Any) -> Any:
    """Run what was packed; return the value or raise the error."""
    (folder / PROGRAM).write_bytes(program)
    call = {**json.loads(runner.read("call.json")), **about}
    head, body = runner.attempt(call, "0")
    return read_outcome(json.dumps(head).encode() + b"\n" + body, "main-0").get()


def test_pythons_of_different_minor_versions_are_told_before_anything_is_read(folder: Path) -> None:
    program = pack_function(lambda: 1, [((), {})])
    here = ".".join(map(str, sys.version_info[:2]))
    with pytest.raises(CallError, match=rf"The job has Python {here}, but the code was sent by Python 3\.9"):
        run(folder, program, python=[3, 9])


def test_a_cell_of_another_python_runs_as_its_source_is_sent(folder: Path) -> None:
    assert run(folder, pack_cell("y = x + 1", {"x": 1}, ["y"]), python=[3, 9]) == {"y": 2}


def test_a_cell_may_await_and_define_what_it_pickles(folder: Path) -> None:
    source = "import asyncio, pickle\nclass A: pass\nawait asyncio.sleep(0)\nn = len(pickle.dumps(A()))"
    assert run(folder, pack_cell(source, {}, ["n"]))["n"] > 0


def test_the_line_of_a_cell_stands_in_its_traceback(folder: Path) -> None:
    with pytest.raises(ValueError, match="no") as caught:
        run(folder, pack_cell('x = 1\nraise ValueError("no")', {}))
    assert 'File "<cell>", line 2' in str(caught.value.__cause__)
    assert 'raise ValueError("no")' in str(caught.value.__cause__)


def test_a_variable_that_the_cell_does_not_leave_is_named(folder: Path) -> None:
    with pytest.raises(NameError, match="'z' is not defined when the cell has ended"):
        run(folder, pack_cell("x = 1", {}, ["z"]))


def test_an_exception_that_cannot_travel_is_told_in_its_words(folder: Path) -> None:
    class TwoNamesError(Exception):
        def __init__(self, first: str, second: str) -> None:
            super().__init__(f"{first} and {second}")

    def fail() -> None:
        raise TwoNamesError("a", "b")

    with pytest.raises(CallError, match="TwoNamesError"):
        run(folder, pack_function(fail, [((), {})]))


def test_code_that_exits_by_itself_returns_nothing_and_says_so(folder: Path) -> None:
    with pytest.raises(CallError, match=r"has ended by itself \(sys.exit\)"):
        run(folder, pack_cell("import sys; sys.exit()", {}))


def test_what_is_too_large_is_refused_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.client.calls.packing.LARGEST_MB", 0)
    with pytest.raises(NotSendableError, match=r"of 0 MB at most \(values.pkl has the most\)"):
        pack_cell("", {"x": bytes(1000)})


def test_a_problem_is_told_in_the_readers_language() -> None:
    data = json.dumps({"problem": "size", "length": 10**9, "most": 5 * 10**8}).encode() + b"\n"
    with pytest.raises(CallError, match=r"main-0 返回的值为 1.0 GB，上限为 500 MB"):
        read_outcome(data, "main-0", "zh_CN").get()
