"""The examples of the page about Python run as they stand, on a real scheduler."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import pai_scheduler.client
from tests.docs.test_blocks import ROOT, blocks
from tests.testbed.scheduler import RunningScheduler

PAGE = ROOT / "docs" / "users" / "python.md"


async def test_every_example_runs_after_the_one_before_it(
    documented: RunningScheduler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("PAI_API_URL", documented.url)
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    monkeypatch.delenv("PAI_JOB_NAME", raising=False)
    monkeypatch.chdir(tmp_path)
    # as in a notebook, whose functions are of no module that a job could import
    names = {"__name__": "__main__"}
    for block in blocks("python"):
        if block.page == PAGE:
            code = compile(block.text, str(block), "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(code, names)  # noqa: S307 - our own page
            if inspect.iscoroutine(result):
                await result
    printed = capsys.readouterr().out
    assert [line for line in printed.splitlines() if line.isdigit()] == ["49", "64", "81", "1", "4", "9"]
    for words in (
        "squaring 7",
        "ZeroDivisionError",
        "SUCCEEDED",
        "hello from from-python",
        "ConflictJobError",
    ):
        assert words in printed
    assert "['numbers.txt']" in printed
    assert (tmp_path / "copy" / "numbers.txt").read_text() == "1 2 3"


@pytest.mark.parametrize("name", pai_scheduler.client.__all__)
def test_every_public_name_is_on_the_page_and_has_a_docstring(name: str) -> None:
    assert f"`{name}`" in PAGE.read_text(encoding="utf-8")
    assert inspect.getdoc(getattr(pai_scheduler.client, name))


def test_the_chinese_page_has_the_same_examples() -> None:
    # so what runs from the one page runs from the other
    def examples(page: Path) -> list[str]:
        return [block.text for kind in ("python", "text") for block in blocks(kind) if block.page == page]

    assert examples(PAGE)
    assert examples(PAGE.parent / "zh" / PAGE.name) == examples(PAGE)
