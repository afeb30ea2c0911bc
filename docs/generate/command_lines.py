"""The command lines of `pai` and `pai-scheduler`, read out of their parsers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pai_scheduler.client.cli.parser import make_parser as make_pai_parser
from pai_scheduler.server.options import make_parser as make_scheduler_parser

#: Pages about what `pai-scheduler` does instead of running; all others are about the database.
_PAGES = {
    "doctor": "doctor.md",
    "node add": "more-machines.md",
    "node pull": "more-machines.md",
    "simulate": "simulate.md",
    "export-trace": "simulate.md",
}


@dataclass(frozen=True)
class Command:
    """A program or one of its commands; `arguments` are written form and meaning."""

    name: str
    about: str
    usage: str
    arguments: list[tuple[str, str]]

    @property
    def page(self) -> str:
        """Return the page for administrators that has more about a command of the scheduler's."""
        return _PAGES.get(self.name, "backup.md")


def facts(locale: str) -> Mapping[str, Any]:
    """Return what the page about the command lines says in facts."""
    pai, scheduler = make_pai_parser(locale), make_scheduler_parser()
    common = _written(pai)
    commands = [_command(name, parser, without=common) for name, parser in _commands(pai)]
    exit_codes = [line.strip() for line in (pai.epilog or "").splitlines()[1:]]
    return {
        "commands": commands,
        "common": common,
        "exit_codes": [line.split(maxsplit=1) for line in exit_codes],
        "scheduler": _command("pai-scheduler", scheduler, without=[]),
        "scheduler_commands": [_command(name, parser, without=[]) for name, parser in _commands(scheduler)],
    }


def _commands(
    parser: argparse.ArgumentParser, above: str = ""
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Return every command; of one that has actions those (`vc set`), and itself where it may go without."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                below = list(_commands(command, f"{above}{name} "))
                if not below or not _needs_action(command):
                    yield above + name, command
                yield from below


def _needs_action(parser: argparse.ArgumentParser) -> bool:
    return any(
        action.required for action in parser._actions if isinstance(action, argparse._SubParsersAction)
    )


def _command(name: str, parser: argparse.ArgumentParser, *, without: list[tuple[str, str]]) -> Command:
    arguments = [argument for argument in _written(parser) if argument not in without]
    usage = " ".join(_usage(parser, {written for written, _ in without}))
    return Command(name, (parser.description or "").strip(), usage, arguments)


def _written(parser: argparse.ArgumentParser) -> list[tuple[str, str]]:
    """Return every argument as one types it, and what it means."""
    formatter = parser._get_formatter()
    return [
        (_form(action), formatter._expand_help(action))
        for action in parser._actions
        if action.help and not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]


def _form(action: argparse.Action) -> str:
    value = _value(action)
    if not action.option_strings:
        return value
    return ", ".join(action.option_strings) + (f" {value}" if value else "")


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    name = action.metavar or (action.dest if not action.option_strings else action.dest.upper())
    return str(name)


def _usage(parser: argparse.ArgumentParser, common: set[str]) -> Iterator[str]:
    """Write how a command is called; options that every command has are left out."""
    yield parser.prog
    for action in parser._actions:
        if not action.help or isinstance(action, argparse._HelpAction) or _form(action) in common:
            continue
        form = _form(action).rpartition(", ")[2] if action.option_strings else _value(action)
        optional = not action.required if action.option_strings else action.nargs in ("?", "*")
        yield f"[{form}]" if optional else form
