"""Every link, job, cluster file, command line and quoted sentence in the documentation is right."""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from docs.generate.command_lines import facts as documented_commands
from pai_scheduler.client.cli.parser import make_parser as pai_parser
from pai_scheduler.cluster.definition import parse_definition
from pai_scheduler.job.json_text import loads_jsonc
from pai_scheduler.job.validation import validate
from pai_scheduler.server.options import make_parser as scheduler_parser
from pai_spawner.options import HubLimits
from pai_spawner.profiles import read_profiles
from pai_spawner.sessions.policy_file import parse_policy

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# every page but the templates that some are made from
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *(page for page in sorted(DOCS.rglob("*.md")) if not page.is_relative_to(DOCS / "generate")),
]

_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?:\]\(|^\[[^\]\n]+\]: )([^)\s]+)", re.MULTILINE)
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    language: str
    text: str
    line: int

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(*languages: str) -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            if match[2] in languages:
                content = "\n".join(line.removeprefix(match[1]) for line in match[3].splitlines())
                yield Block(page, match[2], content, text[: match.start()].count("\n") + 1)


def prose(page: Path) -> str:
    """Return a page without its blocks of code."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = (
        re.sub(r"[^\w\- ]", "", title.replace("`", "").lower()) for title in _HEADING.findall(prose(page))
    )
    return frozenset(title.replace(" ", "-") for title in titles)


def test_every_link_leads_somewhere() -> None:
    links = [(page, link) for page in PAGES for link in _LINK.findall(prose(page))]
    assert len(links) > 500
    lost = [(page, link) for page, link in links if not leads_somewhere(page, link)]
    assert [f"{page.relative_to(ROOT)}: {link}" for page, link in lost] == []


def leads_somewhere(page: Path, link: str) -> bool:
    if link.startswith(("http://", "https://")):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def test_every_page_is_reached_from_the_readme() -> None:
    reached, coming = set(), [ROOT / "README.md"]
    while coming:
        page = coming.pop()
        if page in reached or page.suffix != ".md" or not page.is_file():
            continue
        reached.add(page)
        coming += [(page.parent / link.partition("#")[0]).resolve() for link in _LINK.findall(prose(page))]
    assert set(PAGES) <= reached


def test_json_can_be_read_and_a_job_is_valid() -> None:
    assert refused(blocks("json", "jsonc"), use_json) == []


def use_json(text: str) -> None:
    value = loads_jsonc(text)
    if isinstance(value, dict) and "taskRoles" in value:
        assert validate(value) == []


def test_a_cluster_file_a_sessions_file_and_profiles_can_be_used() -> None:
    assert refused(blocks("yaml"), use_yaml) == []


def use_yaml(text: str) -> None:
    value = yaml.safe_load(text)
    if isinstance(value, list):
        assert read_profiles(value, HubLimits({"a": "b"}))
        return
    if value.keys() & {"nodes", "virtualClusters", "defaults"}:
        parse_definition(value)
    if "rules" in value:
        parse_policy(value)


def test_python_can_be_read() -> None:
    assert refused(blocks("python"), ast.parse) == []


def refused(found: Iterable[Block], use: Callable[[str], object]) -> list[str]:
    """Return the blocks that cannot be used, each with why."""
    wrong, count = [], 0
    for count, block in enumerate(found, start=1):  # noqa: B007 - how many there are, in the end
        try:
            use(block.text)
        except Exception as error:  # whatever it is, the others are looked at too
            wrong.append(f"{block}: {error!r}")
    assert count > 10
    return wrong


def test_a_wrong_block_would_be_noticed() -> None:
    page = Path(ROOT / "README.md")
    (json, yaml_file, python) = (
        refused([Block(page, "", text, line) for line in range(11)], use)
        for use, text in (
            (use_json, '{"taskRoles": []}'),
            (use_yaml, "nodes: 1"),
            (ast.parse, "1 +"),
        )
    )
    assert len(json) == len(yaml_file) == len(python) == 11
    assert python[3].startswith("README.md:3: SyntaxError")


def command_lines() -> Iterator[tuple[str, list[str]]]:
    """Return the calls of our programs, with where they stand: from blocks of shell, and from prose."""
    for block in blocks("sh"):
        for line in block.text.replace("\\\n", " ").splitlines():
            for call in calls_in(line):
                yield str(block), call
    commands = documented_commands("en")["commands"]
    for page in PAGES:
        for code in re.findall(r"`([^`\n]+)`", prose(page)):
            # a command's bare name stands for the command
            named = any(f"pai {command.name} ".startswith(f"{code} ") for command in commands)
            if code.startswith(("pai ", "pai-scheduler ")) and "…" not in code and not named:
                # what stands in capitals is to be filled in: a name or a number
                for call in calls_in(re.sub(r"\b[A-Z]+\b", "1", code)):
                    yield str(page.relative_to(ROOT)), call


def calls_in(line: str) -> Iterator[list[str]]:
    """Return the words of each call of `pai` or `pai-scheduler` in a line of shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=";|&")
    lexer.whitespace_split = True
    call: list[str] = []
    for word in [*lexer, ";"]:
        if word in (";", "|", "&", "&&", "||"):
            while call and re.fullmatch(r"[A-Z_]+=.*", call[0]):
                call.pop(0)
            if call and call[0] in ("pai", "pai-scheduler"):
                yield call
            call = []
        else:
            call.append(word)


def test_every_command_line_is_understood() -> None:
    calls = list(command_lines())
    assert len(calls) > 100
    assert [f"{place}: {said}" for place, call in calls if (said := complaint(call))] == []


def complaint(call: list[str]) -> str:
    """Return what a program says to a command line that it does not understand."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            parser_of(call[0]).parse_args(call[1:])
    except SystemExit as leaving:
        return said.getvalue() if leaving.code else ""
    return ""


@cache
def parser_of(program: str) -> argparse.ArgumentParser:
    return pai_parser("en") if program == "pai" else scheduler_parser()


def test_a_wrong_command_line_would_be_noticed() -> None:
    assert list(calls_in("X=1 pai jobs; echo pai | pai logs -f x # comment")) == [
        ["pai", "jobs"],
        ["pai", "logs", "-f", "x"],
    ]
    assert "invalid choice" in complaint(["pai", "get", "x"])
    assert complaint(["pai", "--help"]) == ""
