"""What no job may hold, in whatever field: numbers that are none, broken text, bottomless nesting."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .messages import Message, msg
from .paths import Path, field_name, number_text

#: Levels of lists and objects; a job needs five.
MAX_DEPTH = 64
#: Beyond it, other JSON readers make infinity of a number.
_MAX_BITS = 1023
#: Values in one job, `tmp` apart: far more than any has, few enough to look at each.
MAX_VALUES = 100_000


def malformed(config: object) -> Iterator[tuple[Path, Message]]:
    """Find what cannot be kept or handed on as JSON; `tmp` is dropped and may hold anything."""
    stack: list[tuple[Path, object]] = [((), config)]
    looked_at = 0
    while stack:
        path, value = stack.pop()
        looked_at += 1
        inside = len(value) if isinstance(value, dict | list) else 0
        if looked_at + len(stack) + inside > MAX_VALUES:
            yield (), msg("The job holds more than {limit} values: put data into a file.", limit=MAX_VALUES)
            return
        problem = _problem(path, value)
        if problem is not None:
            yield path, problem
            continue
        if isinstance(value, dict):
            stack.extend(
                (_child(path, key), _item(key, item))
                for key, item in value.items()
                if (*path, key) != ("tmp",)
            )
        elif isinstance(value, list):
            stack.extend(((*path, index), item) for index, item in enumerate(value))


class _BadKey:
    """Stands for a value whose name is wrong, so that the error is found at its path."""


def _child(path: Path, key: object) -> Path:
    if isinstance(key, str):
        return (*path, key)
    # no JSON object has such a name, but YAML has
    return (*path, number_text(key) if isinstance(key, int | float) else type(key).__name__)


def _item(key: object, value: object) -> object:
    return value if isinstance(key, str) and _encodable(key) else _BadKey()


def _problem(path: Path, value: object) -> Message | None:
    match value:
        case _BadKey():
            return msg("The name of the field {field} is not valid text.", field=field_name(path))
        case None | bool():
            return None
        case str():
            if not _encodable(value):
                return msg(
                    "{field} holds half a character (a lone surrogate): write it anew.",
                    field=field_name(path),
                )
            if "\0" in value and path[:1] != ("extras",):
                return msg(
                    "{field} holds a NUL character, which no command or variable can.", field=field_name(path)
                )
        case int():
            if value.bit_length() > _MAX_BITS:
                return msg("{field} is too large a number.", field=field_name(path))
        case float():
            if not math.isfinite(value):
                return msg("{field} is not a finite number (NaN or Infinity).", field=field_name(path))
        case dict() | list():
            if len(path) > MAX_DEPTH:
                return msg(
                    "{field} is nested more than {depth} levels deep.",
                    field=field_name(path),
                    depth=MAX_DEPTH,
                )
        case _:
            return msg("{field} is no JSON value.", field=field_name(path))
    return None


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
