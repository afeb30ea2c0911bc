"""Each page for users is right as it stands: who does what it says, top to bottom, sees what it says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.reader import Reader, matches, plain, steps
from tests.docs.test_blocks import DOCS

USERS = DOCS / "users"


#: Those on which there is something to do.
PAGES = [page for page in sorted(USERS.glob("*.md")) if any(step.is_done for step in steps(page))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
async def test_a_page_holds_what_it_says_for_somebody_who_follows_it(page: Path, reader: Reader) -> None:
    await reader.read(page)


def test_every_chinese_page_has_the_same_blocks() -> None:
    # so what holds for who follows the one page holds for who follows the other
    def blocks(page: Path) -> list[tuple[str, str, str, str | None]]:
        return [(step.language, step.text, step.saved_as, step.shown) for step in steps(page) if step.is_done]

    pages = sorted((USERS / "zh").glob("*.md"))
    assert len(pages) > 3
    assert [page.name for page in pages if blocks(page) != blocks(USERS / page.name)] == []


def test_no_cell_makes_what_is_not_shown() -> None:
    # of several values in a cell a notebook shows the last one only
    cells = [step for page in PAGES for step in steps(page) if step.is_done and step.language == "python"]
    assert cells
    lost = [
        f"{step}: {ast.unparse(line)}"
        for step in cells
        for line in ast.parse(step.text).body[:-1]
        if isinstance(line, ast.Expr) and re.match(r"[A-Z]\w*\(", ast.unparse(line))
    ]
    assert lost == []


async def test_a_page_that_is_wrong_is_noticed(reader: Reader, tmp_path: Path) -> None:
    page, fence = tmp_path / "page.md", "`" * 3
    for language, said, shown, complaint in (
        ("python", "1 / 0", "", "ZeroDivisionError"),
        ("python", "print(1)", "2", "the page says\n2\n\nand it shows\n1\n"),
        ("ipython", "%pai jobs", "", "%pai"),
        ("sh", "false", "", "ends with 1"),
        ("sh", "echo $PAI_JOB_NAME", "demo", "the page says\ndemo\n"),
        ("console", "$ echo 1\n1\n$ echo 2\n3", "", "echo 2\nshows:\n2"),
    ):
        blocks = [(language, said), *([("text", shown)] if shown else [])]
        page.write_text("\n".join(f"{fence}{kind}\n{text}\n{fence}\n" for kind, text in blocks))
        with pytest.raises(AssertionError, match=re.escape(complaint)):
            await reader.read(page)


def test_what_is_shown_is_compared_with_what_the_page_says() -> None:
    shown = "NAME   STATE\r\n\x1b[1mdemo\x1b[0m   RUNNING\r\n10 %\r100 %\r\n"
    assert matches("NAME STATE\ndemo RUNNING\n100 %", plain(shown))
    assert matches("NAME …\n100 %\n", plain(shown))
    assert not matches("NAME STATE", plain(shown))
    assert not matches("NAME …\n10 %", plain(shown))


def test_a_block_is_what_a_reader_takes_it_for(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    fence = "`" * 3
    page.write_text(
        f"Save it as `job.json`:\n\n{fence}json\n{{}}\n{fence}\n\nThen:\n\n{fence}sh\npai jobs\n{fence}\n\n"
        f"{fence}text\nNAME …\n{fence}\n\n"
        f"<!-- reader: an administrator -->\n\n{fence}sh\npai vcs\n{fence}\n"
    )
    found = [(step.language, step.saved_as, step.remark, step.shown) for step in steps(page)]
    assert found == [
        ("json", "job.json", "", None),
        ("sh", "", "", "NAME …\n"),
        ("sh", "", "an administrator", None),
    ]
