"""Every place in the code that the contributors' pages name is there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.docs.test_blocks import PAGES, ROOT

#: a place as it stands in the text, and where it is, at the page's end: "[`module::function`]: file"
_PLACE = re.compile(r"\[`([^`\n]+)`\](?![:(])")
_STOP = re.compile(r"^\[`[^`\n]+::([\w.]+)`\]: (\S+)$", re.MULTILINE)
#: a file or folder of the repository between backquotes
_PATH = re.compile(
    r"`((?:pai_scheduler|pai_spawner|pai_labextension|hub_config|tests|docs|notebooks)/[\w./-]*)`"
)

STOPS = [
    (page, (page.parent / match[2]).resolve(), match[1])
    for page in PAGES
    for match in _STOP.finditer(page.read_text(encoding="utf-8"))
]
FILES = [(page, match[1]) for page in PAGES for match in _PATH.finditer(page.read_text(encoding="utf-8"))]


@cache
def defined(file: Path) -> frozenset[str]:
    """Return what a Python module defines: functions, classes, constants, and what is in classes."""
    return frozenset(_names(ast.parse(file.read_text(encoding="utf-8")).body, ""))


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
    if file.suffix == ".py":
        return name in defined(file)
    text = file.read_text(encoding="utf-8")
    return all(re.search(rf"\b{re.escape(part)}\b", text) for part in name.split("."))


@pytest.mark.parametrize(
    ("page", "file", "name"), STOPS, ids=lambda value: str(value).removeprefix(str(ROOT))
)
def test_a_function_or_class_that_a_page_names_exists(page: Path, file: Path, name: str) -> None:
    assert file.is_file(), f"{page.name} names {file}"
    assert is_there(file, name), f"{page.name}: {file.relative_to(ROOT)} has no {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_place_in_a_text_is_a_link(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    named = set(_PLACE.findall(text))
    assert named == set(re.findall(r"^\[`([^`\n]+)`\]: ", text, re.MULTILINE))
    if page.name == "walks.md":
        assert len(named) > 50


def test_a_place_that_is_gone_would_be_noticed() -> None:
    assert is_there(Path(__file__), "is_there")
    assert not is_there(Path(__file__), "is_gone")


@pytest.mark.parametrize(("page", "path"), FILES, ids=lambda value: str(value).removeprefix(str(ROOT)))
def test_a_file_of_the_repository_that_a_page_names_exists(page: Path, path: str) -> None:
    # what is made by `make` is not in a clone
    if not path.startswith("pai_labextension/labextension"):
        assert (ROOT / path).exists(), f"{page.name} names {path}"


def test_every_section_of_the_job_contract_that_the_code_cites_is_on_its_page() -> None:
    text = (ROOT / "docs" / "contributors" / "job-contract.md").read_text(encoding="utf-8")
    sections = set(re.findall(r"^## (\d)\. ", text, re.MULTILINE))
    cited = [
        (file, match[1])
        for package in ("pai_scheduler", "pai_labextension", "tests")
        for file in (ROOT / package).rglob("*.py")
        if "node_modules" not in file.parts
        for match in re.finditer(r"job-contract\.md, section (\d)", file.read_text(encoding="utf-8"))
    ]
    assert len(cited) > 10
    assert [(file, section) for file, section in cited if section not in sections] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_to_make_can_be_made(page: Path) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for target in re.findall(r"(?:^|[`;] ?)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert target in targets, f"{page.name}: make {target}"
