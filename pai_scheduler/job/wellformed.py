"""What no job may hold, in whatever field: numbers that are none, broken text, bottomless nesting."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from pai_scheduler.i18n import Message, msg

from .paths import Path, field_name, number_text

#: Levels of lists and objects; a job needs five.
MAX_DEPTH = 64
#: Beyond it, other JSON readers make infinity of a number.
_MAX_BITS = 1023
#: Values in one job, `tmp` apart: far more than any has, few enough to look at each.
MAX_VALUES = 100_000
#: What `_is_plain` looks at: less in each way than what is allowed.
_PLAIN_VALUES, _PLAIN_DEPTH, _PLAIN_NUMBER = 1000, 8, 1 << 63


def malformed(config: object) -> Iterator[tuple[Path, Message]]:
    """Find what cannot be kept or handed on as JSON; `tmp` is dropped and may hold anything."""
    if _is_plain(config, [_PLAIN_VALUES]):
        return
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


def _is_plain(value: object, left: list[int], depth: int = 0) -> bool:
    """Return whether a small value is known to hold nothing wrong, as nearly all that are submitted.

    `left`: how many values may still be looked at.
    """
    left[0] -= 1
    if left[0] < 0:
        return False
    kind = type(value)
    if kind is str:
        return value.isascii() and "\0" not in value  # type: ignore[attr-defined,operator]
    if kind is int:
        return -_PLAIN_NUMBER < value < _PLAIN_NUMBER  # type: ignore[operator]
    if depth > _PLAIN_DEPTH:
        return False
    if kind is dict:
        items: Mapping[object, object] = value  # type: ignore[assignment]
        for key, item in items.items():
            if type(key) is not str or not key.isascii() or not _is_plain(item, left, depth + 1):
                return False
        return True
    if kind is list:
        return all(_is_plain(item, left, depth + 1) for item in value)  # type: ignore[attr-defined]
    return value is None or kind is bool


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
