"""Figures of the walks: stops, functions, files and lines that one reads to follow each flow.

`python -m docs.generate.stops` prints them for a page, which is `walks.md` unless another is named.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
_TEMPLATE = Path(__file__).parent / "templates" / "walks.md"
_HEADING = re.compile(r"^(##+) (.+)$", re.MULTILINE)
_STOP = re.compile(r"\[`([\w./-]+)::([\w.]+)`\](?!:)")
#: where paths begin that do not begin in `pai_scheduler`
_PACKAGES = ("pai_labextension/", "pai_spawner/")

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Reference(NamedTuple):
    """A function or class that one opens: its file, and its name there."""

    path: str
    name: str

    @property
    def file(self) -> Path:
        """Return where it is."""
        return ROOT / self.path if self.path.startswith(_PACKAGES) else ROOT / "pai_scheduler" / self.path

    @property
    def is_private(self) -> bool:
        """Return whether it is of its module, or of its class, alone."""
        return any(part.startswith("_") for part in self.name.split(".") if part != "__init__")


class Figures(NamedTuple):
    """What one reads to follow a flow.

    A stop is a function that is called from another file, or the first that is opened in its file; the
    private helpers of a file are read at the stop there, and counted as functions only.
    """

    stops: int
    functions: int
    files: int
    lines: int

    @property
    def lines_per_file(self) -> float:
        """Return how many lines are read in each file that is opened."""
        return self.lines / self.files


def facts(_locale: str) -> Mapping[str, Any]:
    """Return the figures of each section, and a link for each reference."""
    text = _TEMPLATE.read_text(encoding="utf-8")
    named = sorted({reference for references in sections(text).values() for reference in references})
    return {
        "figures": {name: count(references) for name, references in sections(text).items()},
        "links": [(f"{one.path}::{one.name}", f"../../{one.file.relative_to(ROOT)}") for one in named],
    }


def sections(text: str) -> Mapping[str, Sequence[Reference]]:
    """Return the references of each section of a page, in order; those of its subsections are its own too."""
    found: dict[str, list[Reference]] = {}
    above = ""
    headings = list(_HEADING.finditer(text))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        body = text[heading.end() : following.start() if following else len(text)]
        references = [Reference(path, name) for path, name in _STOP.findall(body)]
        above = above if heading[1] == "###" else heading[2]
        for name in dict.fromkeys((above, heading[2])):
            of_it = found.setdefault(name, [])
            of_it += [one for one in dict.fromkeys(references) if one not in of_it]
    return {name: references for name, references in found.items() if references}


def count(references: Sequence[Reference]) -> Figures:
    """Count what a section lists; KeyError where a file defines no such thing."""
    opened: set[str] = set()
    stops = 0
    for reference in references:
        stops += reference.path not in opened or not reference.is_private
        opened.add(reference.path)
    read = (reference for reference in references if reference.file.suffix == ".py")
    return Figures(stops, len(references), len(opened), sum(_lines(one, references) for one in read))


def _lines(reference: Reference, others: Iterable[Reference]) -> int:
    """Return how many lines a function has; a class has those before its methods where these are listed."""
    found = _definitions(reference.file)[reference.name]
    last = found.end_lineno or found.lineno
    if any(other.path == reference.path and other.name.startswith(f"{reference.name}.") for other in others):
        last = next(part for part in found.body if isinstance(part, _Definition)).lineno - 1
    return last - found.lineno + 1


@cache
def _definitions(file: Path) -> Mapping[str, _Definition]:
    return dict(_walk(ast.parse(file.read_text(encoding="utf-8")).body, ""))


def _walk(body: Iterable[ast.stmt], above: str) -> Iterator[tuple[str, _Definition]]:
    for statement in body:
        if isinstance(statement, _Definition):
            yield above + statement.name, statement
        if isinstance(statement, ast.ClassDef):
            yield from _walk(statement.body, f"{above}{statement.name}.")


def main(page: Path = _TEMPLATE) -> None:
    """Print a table of a page's figures."""
    for name, references in sections(page.read_text(encoding="utf-8")).items():
        found = count(references)
        print(
            f"{name:24}{found.stops:4} stops {found.functions:4} functions {found.files:3} files "
            f"{found.lines:5} lines {found.lines_per_file:6.1f} a file"
        )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
