"""Paths in a job JSON (`$.taskRoles[0].name`), and values as a sentence shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from pai_scheduler.i18n import Message, msg

PathPart = str | int
Path = tuple[PathPart, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST = 60


def path_text(path: Iterable[PathPart]) -> str:
    """Write a path: `$.taskRoles[0].name`; names that are no plain words as `$["a b"]`."""
    return "$" + "".join(_part(part) for part in path)


def field_name(path: Path) -> str:
    """Name a field within a sentence: its own name, or `taskRoles[0]` for an item of a list."""
    if not path:
        return "$"
    start = len(path) - 1
    while start > 0 and isinstance(path[start], int):
        start -= 1
    head, *rest = path[start:]
    return shown_name(str(head)) + "".join(_part(part) for part in rest)


def shown_name(name: str) -> str:
    """Return a name as it is, or quoted and shortened where it is no plain word."""
    return name if _PLAIN.fullmatch(name) and len(name) <= _LONGEST else quoted(name)


def quoted(text: str) -> str:
    r"""Return a text in quotes as JSON writes it (a line break is seen as `\n`), shortened for a sentence."""
    cut = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
    return printable(json.dumps(cut, ensure_ascii=False))


def printable(text: str) -> str:
    """Make sure that a text can be encoded: JSON may carry halves of surrogate pairs."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def kind_of(value: object) -> Message | str:
    """Return what a JSON value is: `the text "2"`, `the number 1.5`, `a list` …"""
    if isinstance(value, bool):
        return "true" if value else "false"
    match value:
        case None:
            return "null"
        case str():
            return msg("the text {text}", text=quoted(value))
        case int() | float():
            return msg("the number {number}", number=number_text(value))
        case list():
            return msg("a list")
        case dict():
            return msg("an object")
        case _:
            return msg("no JSON value")


def number_text(number: float) -> str:
    """Write a number; an enormous one only by its size (Python refuses to write thousands of digits)."""
    if isinstance(number, int) and number.bit_length() > 1024:
        return "-1e309…" if number < 0 else "1e309…"
    return json.dumps(number)


def _part(part: PathPart) -> str:
    if isinstance(part, int):
        return f"[{part}]"
    if _PLAIN.fullmatch(part):
        return f".{part}"
    return f"[{printable(json.dumps(part, ensure_ascii=False))}]"
