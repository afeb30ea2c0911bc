"""Every place in the code that the contributors' pages name is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests import sources
from tests.docs.test_blocks import PAGES, ROOT

#: a place as it stands in the text, and where it is, at the page's end: "[`module::function`]: file"
_PLACE = re.compile(r"\[`([^`\n]+)`\](?![:(])")
_STOP = re.compile(r"^\[`[^`\n]+::([\w.]+)`\]: (\S+)$", re.MULTILINE)
_LINKED = re.compile(r"^\[`([^`\n]+)`\]: ", re.MULTILINE)
_MAKE = re.compile(r"(?:^|[`;] ?)make ([a-z-]+)", re.MULTILINE)
#: a file or folder of the repository between backquotes
_PATH = re.compile(
    r"`((?:pai_scheduler|pai_spawner|pai_labextension|hub_config|tests|docs|notebooks)/[\w./-]*)`"
)


@cache
def defined(file: Path) -> frozenset[str]:
    """Return what a Python module defines: functions, classes, constants, and what is in classes."""
    return frozenset(_names(sources.tree(file).body, ""))


def _names(body: list[ast.stmt], before: str) -> list[str]:
    found = []
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append(before + statement.name)
            if isinstance(statement, ast.ClassDef):
                found += _names(statement.body, f"{before}{statement.name}.")
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            found += [before + target.id for target in targets if isinstance(target, ast.Name)]
    return found


def is_there(file: Path, name: str) -> bool:
    """Return whether a file defines a name: a Python module exactly, another one by the word."""
    if not file.is_file():
        return False
    if file.suffix == ".py":
        return name in defined(file)
    text = file.read_text(encoding="utf-8")
    return all(re.search(rf"\b{re.escape(part)}\b", text) for part in name.split("."))


def in_pages(pattern: re.Pattern[str]) -> list[tuple[Path, re.Match[str]]]:
    """Return all that a pattern finds, each with its page."""
    return [(page, match) for page in PAGES for match in pattern.finditer(page.read_text(encoding="utf-8"))]


def test_every_function_or_class_that_a_page_names_exists() -> None:
    stops = [(page, (page.parent / match[2]).resolve(), match[1]) for page, match in in_pages(_STOP)]
    assert len(stops) > 300
    lost = [stop for stop in stops if not is_there(*stop[1:])]
    assert [f"{page.name}: {file} has no {name}" for page, file, name in lost] == []


def test_each_place_in_a_text_is_a_link() -> None:
    named = {(page.name, match[1]) for page, match in in_pages(_PLACE)}
    assert named == {(page.name, match[1]) for page, match in in_pages(_LINKED)}
    assert sum(page == "walks.md" for page, _ in named) > 50


def test_a_place_that_is_gone_would_be_noticed() -> None:
    assert is_there(Path(__file__), "is_there")
    assert not is_there(Path(__file__), "is_gone")
    assert not is_there(Path(__file__).with_name("gone.py"), "is_there")


def test_every_file_of_the_repository_that_a_page_names_exists() -> None:
    named = [(page.name, match[1]) for page, match in in_pages(_PATH)]
    assert len(named) > 100
    # what is made by `make` is not in a clone
    made = "pai_labextension/labextension"
    assert [name for name in named if not name[1].startswith(made) and not (ROOT / name[1]).exists()] == []


def test_every_section_of_the_job_contract_that_the_code_cites_is_on_its_page() -> None:
    text = (ROOT / "docs" / "contributors" / "job-contract.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (\d)\. ", text, re.MULTILINE))
    cited = [
        (file, match[1])
        for package in ("pai_scheduler", "pai_labextension", "tests")
        for file in sources.files(package)
        for match in re.finditer(r"job-contract\.md, section (\d)", sources.text(file))
    ]
    assert len(cited) > 10
    assert [(file, section) for file, section in cited if section not in sections] == []


def test_what_a_page_says_to_make_can_be_made() -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    named = [(page.name, match[1]) for page, match in in_pages(_MAKE)]
    assert named
    assert [(page, target) for page, target in named if target not in targets] == []
