"""Reads a job from a url-encoded body with nested keys: `taskRoles[0][cpuNumber]=1`, as jQuery writes it.

Everything is text there: numbers are typed by the job schema, null is the empty text where the schema
allows null, and empty objects and lists are not there at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from pai_scheduler.i18n import Message, msg

from .parse import InvalidJobError
from .paths import path_text, quoted
from .schema import job_schema, resolve
from .validate import SpecError

#: Fields of a body at most.
MAX_FIELDS = 100_000
_MAX_DEPTH = 32
_KEY = re.compile(r"(?P<first>[^\[\]]+)(?P<rest>(?:\[[^\[\]]*\])*)")
_PART = re.compile(r"\[([^\[\]]*)\]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")

_Tree = dict[str, Any]


def loads_urlencoded(body: str) -> dict[str, Any]:
    """Read a job JSON from a url-encoded body; InvalidJobError where its keys make no sense.

    What comes back is to be validated like any other job JSON.
    """
    try:
        pairs = parse_qsl(
            body, keep_blank_values=True, strict_parsing=False, errors="strict", max_num_fields=MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise _invalid("$", msg("The body is not valid UTF-8.")) from None
    except ValueError:
        raise _invalid("$", msg("The body has more than {limit} fields.", limit=MAX_FIELDS)) from None
    tree: _Tree = {}
    for key, value in pairs:
        _put(tree, key, value)
    job: dict[str, Any] = _typed(tree, job_schema())
    return job


def _put(tree: _Tree, key: str, value: str) -> None:
    match = _KEY.fullmatch(key)
    parts = [match["first"], *_PART.findall(match["rest"])] if match else []
    if not 0 < len(parts) <= _MAX_DEPTH:
        raise _invalid("$", msg("{key} is no field such as taskRoles[0][name].", key=quoted(key)))
    for position, part in enumerate(parts):
        # "list[]=a&list[]=b": each one is the next entry
        part = part or str(len(tree))
        if position == len(parts) - 1:
            if part in tree:
                raise _invalid(path_text(parts), msg("{key} is there twice.", key=quoted(key)))
            tree[part] = value
            return
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise _invalid(path_text(parts), msg("{key} is both a value and an object.", key=quoted(key)))


def _typed(value: Any, schema: Mapping[str, Any]) -> Any:
    schema = resolve(schema)
    wanted = schema.get("type")
    if isinstance(value, str):
        return _typed_text(value, (wanted,) if isinstance(wanted, str) else wanted or ())
    if _is_list(value) if wanted is None else wanted == "array":
        return _list(value, schema.get("items", {}))
    fields, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
    return {name: _typed(item, fields.get(name, others)) for name, item in value.items()}


def _typed_text(text: str, types: tuple[str, ...]) -> Any:
    if "integer" in types:
        if text == "" and "null" in types:
            return None
        if _INTEGER.fullmatch(text):
            return int(text)
    return text


def _is_list(tree: _Tree) -> bool:
    """Return whether keys are the numbers of a list; only asked where the schema does not say."""
    return all(key == str(number) for number, key in enumerate(tree))


def _list(tree: _Tree, items: Mapping[str, Any]) -> Any:
    """Make a list in the order of the indices; without any, validation will say that it is no list."""
    if not all(key.isdecimal() and key.isascii() and len(key) < 10 for key in tree):
        return tree
    return [_typed(tree[key], items) for key in sorted(tree, key=int)]


def _invalid(path: str, message: Message) -> InvalidJobError:
    return InvalidJobError([SpecError(path, message)])
