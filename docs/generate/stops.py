"""Figures of the walks: steps, stops, functions, files and lines that one reads to follow each flow.

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
_STEP = re.compile(r"^\d+\. ", re.MULTILINE)
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


class Section(NamedTuple):
    """What a section of a page has: numbered places, and references in their order."""

    steps: int
    references: Sequence[Reference]


class Figures(NamedTuple):
    """What one reads to follow a flow.

    A step is a numbered place, where the flow is handed on. A stop is a public function, or the first one
    that is opened in its file; the private helpers of a file are read at the stop there, and counted as
    functions only.
    """

    steps: int
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
    found = sections(_TEMPLATE.read_text(encoding="utf-8"))
    named = sorted({reference for section in found.values() for reference in section.references})
    return {
        "figures": {name: count(section) for name, section in found.items()},
        "links": [(f"{one.path}::{one.name}", f"../../{one.file.relative_to(ROOT)}") for one in named],
    }


def sections(text: str) -> Mapping[str, Section]:
    """Return the sections of a page that name functions; what a subsection has is its section's too."""
    bodies: dict[str, str] = {}
    above = ""
    headings = list(_HEADING.finditer(text))
    for heading, following in zip(headings, [*headings[1:], None], strict=True):
        above = above if heading[1] == "###" else heading[2]
        for name in {above, heading[2]}:
            body = text[heading.end() : following.start() if following else len(text)]
            bodies[name] = bodies.get(name, "") + body
    found = {
        name: Section(
            len(_STEP.findall(body)), [Reference(*one) for one in dict.fromkeys(_STOP.findall(body))]
        )
        for name, body in bodies.items()
    }
    return {name: section for name, section in found.items() if section.references}


def count(section: Section) -> Figures:
    """Count what a section lists; KeyError where a file defines no such thing."""
    opened: set[str] = set()
    stops, references = 0, section.references
    for reference in references:
        stops += reference.path not in opened or not reference.is_private
        opened.add(reference.path)
    read = (reference for reference in references if reference.file.suffix == ".py")
    lines = sum(_lines(one, references) for one in read)
    return Figures(section.steps, stops, len(references), len(opened), lines)


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
    print(" " * 22, *(f"{name:>10}" for name in Figures._fields), f"{'a file':>8}")
    for name, section in sections(page.read_text(encoding="utf-8")).items():
        found = count(section)
        print(f"{name:22}", *(f"{number:10}" for number in found), f"{found.lines_per_file:8.1f}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
