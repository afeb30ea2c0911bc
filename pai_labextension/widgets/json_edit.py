"""Changes one value in a person's JSON text; the rest, comments and layout included, stays as it was."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

Path = tuple[str | int, ...]


class Absent(Enum):
    """Stands for a value that is not there, which is not the same as null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

_STEP = "  "
_GAP = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_LINE_REST = re.compile(r"(?:[ \t]+|/\*[^\r\n]*?\*/)*(?P<line_comment>//[^\r\n]*)?")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}/]+")


@dataclass(slots=True)
class _Element:
    """A member of an object (with its key) or an item of a list."""

    key: str | int
    start: int
    value: _Value
    #: where the comma after it stands, if there is one
    comma: int | None = None


@dataclass(slots=True)
class _Value:
    """A value in the text; `elements` where it is an object or a list."""

    start: int
    end: int = 0
    elements: list[_Element] = field(default_factory=list)

    def find(self, key: str | int) -> _Element | None:
        """Find the member that counts: the last one of that name."""
        return next((element for element in reversed(self.elements) if element.key == key), None)


def edit(text: str, path: Path, value: Any) -> str:
    """Set the value at `path` in a text that parses, or remove it where `value` is `ABSENT`.

    Objects and lists on the way are made; an index just behind a list's end appends to it. Raises KeyError
    where the path leads through something that is neither.
    """
    here = _read(text, _GAP.match(text).end())  # type: ignore[union-attr]  # it always matches, if only nothing
    for depth, key in enumerate(path):
        if text[here.start] not in "{[":
            raise KeyError(path)
        element = here.find(key)
        if element is None:
            return text if value is ABSENT else _insert(text, here, key, _nest(path[depth + 1 :], value))
        if depth == len(path) - 1:
            return _remove(text, here, element) if value is ABSENT else _replace(text, element.value, value)
        here = element.value
    return _replace(text, here, value)


def _nest(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = [value] if isinstance(key, int) else {key: value}
    return value


def _read(text: str, start: int) -> _Value:
    value = _Value(start)
    opening = text[start]
    if opening == '"':
        value.end = _match(_STRING, text, start)
    elif opening in "{[":
        position = _match(_GAP, text, start + 1)
        while text[position] not in "}]":
            position = _read_element(text, position, value, opening == "{")
        value.end = position + 1
    else:
        value.end = _match(_PLAIN, text, start)
    return value


def _read_element(text: str, start: int, parent: _Value, has_key: bool) -> int:
    """Read one element and its comma; give where the next one, or the closing bracket, begins."""
    key: str | int = len(parent.elements)
    position = start
    if has_key:
        position = _match(_STRING, text, start)
        key = json.loads(text[start:position], strict=False)
        position = _match(_GAP, text, _match(_GAP, text, position) + 1)  # over the colon
    element = _Element(key, start, _read(text, position))
    parent.elements.append(element)
    position = _match(_GAP, text, element.value.end)
    if text[position] == ",":
        element.comma = position
        position = _match(_GAP, text, position + 1)
    return position


def _match(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    if match is None:
        raise ValueError(f"not JSON at character {position}")
    return match.end()


def _replace(text: str, old: _Value, value: Any) -> str:
    return text[: old.start] + _write(value, _indent_at(text, old.start)) + text[old.end :]


def _insert(text: str, parent: _Value, key: str | int, value: Any) -> str:
    is_object = text[parent.start] == "{"
    if not is_object and key != len(parent.elements):
        raise KeyError(key)
    label = json.dumps(key, ensure_ascii=False) + ": " if is_object else ""
    outer = _indent_at(text, parent.start)
    if not parent.elements:
        inside = text[parent.start + 1 : parent.end - 1].rstrip()
        line = f"\n{outer}{_STEP}{label}{_write(value, outer + _STEP)}\n{outer}"
        return text[: parent.start + 1] + inside + line + text[parent.end - 1 :]
    first, last = parent.elements[0], parent.elements[-1]
    if last.comma is None:
        end = last.value.end
        text = f"{text[:end]},{text[end:]}"
        last.comma = end
    rest = _LINE_REST.match(text, last.comma + 1)
    own_lines = "\n" in text[parent.start : first.start]
    if rest is None or not (own_lines or rest["line_comment"]):
        position = last.comma + 1
        return f"{text[:position]} {label}{_write(value, outer)}{text[position:]}"
    indent = _indent_at(text, first.start) if own_lines else outer + _STEP
    return f"{text[: rest.end()]}\n{indent}{label}{_write(value, indent)}{text[rest.end() :]}"


def _remove(text: str, parent: _Value, element: _Element) -> str:
    comma = element.comma
    if comma is None:
        position = parent.elements.index(element)
        comma = parent.elements[position - 1].comma if position else None
    cuts = [(element.start, element.value.end)] + ([(comma, comma + 1)] if comma is not None else [])
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    start = element.start - (1 if comma is not None and comma < element.start else 0)
    return _without_blank_line(text, start)


def _without_blank_line(text: str, position: int) -> str:
    begin = text.rfind("\n", 0, position)
    end = text.find("\n", position)
    if begin >= 0 and end >= 0 and not text[begin:end].strip():
        return text[:begin] + text[end:]
    return text


def _write(value: Any, indent: str) -> str:
    return json.dumps(value, indent=len(_STEP), ensure_ascii=False).replace("\n", "\n" + indent)


def _indent_at(text: str, position: int) -> str:
    """Return the white space that the line of `position` begins with."""
    begin = text.rfind("\n", 0, position) + 1
    return text[begin : begin + len(text[begin:position]) - len(text[begin:position].lstrip(" \t"))]
