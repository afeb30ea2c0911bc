"""Holds a job JSON against the JSON Schema and says in sentences where it differs.

The schema is JSON Schema, but the few keywords that it uses are implemented here: the jsonschema library
takes a second or more to import (for formats that we do not use), writes the whole offending value into
every message (an exception for enormous numbers or deep nesting), and looks for patterns as Python does,
where `$` matches before a last line break. The tests hold both against each other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from .messages import Message, msg
from .paths import Path, field_name, kind_of, number_text, quoted, shown_name
from .schema import job_schema, resolve


class Difference(NamedTuple):
    """Where a value is not what a keyword of the schema wants; `schema` is the part that has the keyword."""

    path: Path
    keyword: str
    wanted: Any
    value: Any
    schema: Mapping[str, Any]


def schema_errors(config: object) -> Iterator[tuple[Path, Message]]:
    """Find every difference between a job JSON and the schema."""
    for difference in _differences(config, job_schema(), ()):
        yield difference.path, _SENTENCES[difference.keyword](difference)


def _differences(value: Any, schema: Mapping[str, Any], path: Path) -> Iterator[Difference]:
    schema = resolve(schema)
    for keyword, wanted in schema.items():
        if keyword in _LIMITS:
            if _LIMITS[keyword](value, wanted):
                yield Difference(path, keyword, wanted, value, schema)
        elif keyword in _PARTS:
            yield from _PARTS[keyword](value, wanted, schema, path)


# -- keywords that limit the value itself: each tells whether the value breaks it --


def _breaks_type(value: Any, types: str | list[str]) -> bool:
    return not any(_is(value, name) for name in ([types] if isinstance(types, str) else types))


def _is(value: Any, name: str) -> bool:
    match name:
        case "integer":
            return _is(value, "number") and (isinstance(value, int) or value.is_integer())
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case _:
            return isinstance(value, _TYPES[name])


_TYPES = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": dict}


def _breaks_pattern(value: Any, pattern: str) -> bool:
    return isinstance(value, str) and not _compiled(pattern).search(value)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("$", r"\Z"))


_LIMITS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _breaks_type,
    "pattern": _breaks_pattern,
    "not": lambda value, rule: isinstance(value, str) and value in rule["enum"],
    "minimum": lambda value, limit: _is(value, "number") and value < limit,
    "maximum": lambda value, limit: _is(value, "number") and value > limit,
    "minLength": lambda value, limit: isinstance(value, str) and len(value) < limit,
    "maxLength": lambda value, limit: isinstance(value, str) and len(value) > limit,
    "minItems": lambda value, limit: isinstance(value, list) and len(value) < limit,
    "maxItems": lambda value, limit: isinstance(value, list) and len(value) > limit,
    "maxProperties": lambda value, limit: isinstance(value, dict) and len(value) > limit,
}


# -- keywords about the parts of a value --


def _required(value: Any, names: list[str], schema: Mapping[str, Any], path: Path) -> Iterator[Difference]:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                yield Difference((*path, name), "required", names, None, schema)


def _properties(
    value: Any, fields: Mapping[str, Any], _schema: Mapping[str, Any], path: Path
) -> Iterator[Difference]:
    if isinstance(value, dict):
        for name, field in fields.items():
            if name in value:
                yield from _differences(value[name], field, (*path, name))


def _additional_properties(
    value: Any, allowed: Any, schema: Mapping[str, Any], path: Path
) -> Iterator[Difference]:
    known = schema.get("properties", {})
    for name, item in _entries(value, schema):
        if name in known:
            continue
        if allowed is False:
            yield Difference((*path, name), "additionalProperties", allowed, item, schema)
        else:
            yield from _differences(item, allowed, (*path, name))


def _property_names(
    value: Any, rules: Mapping[str, Any], schema: Mapping[str, Any], path: Path
) -> Iterator[Difference]:
    for name, _ in _entries(value, schema):
        if any(_differences(name, rules, ())):
            yield Difference((*path, name), "propertyNames", rules, name, schema)


def _entries(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Give the entries of an object; one that is too large says so, and is not looked through to its end."""
    if isinstance(value, dict):
        most = schema.get("maxProperties")
        for number, (name, item) in enumerate(value.items()):
            if number == most:
                return
            if isinstance(name, str):
                yield name, item


def _items(
    value: Any, item: Mapping[str, Any], schema: Mapping[str, Any], path: Path
) -> Iterator[Difference]:
    if isinstance(value, list):
        for index, entry in enumerate(value[: schema.get("maxItems")]):
            yield from _differences(entry, item, (*path, index))


_PARTS: Mapping[str, Callable[[Any, Any, Mapping[str, Any], Path], Iterator[Difference]]] = {
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "items": _items,
}

#: What the schema may be written with.
KEYWORDS = frozenset(_LIMITS) | frozenset(_PARTS)


# -- sentences: one function for each keyword --


_EXPECTED: dict[str, Callable[[], Message]] = {
    "string": lambda: msg("text"),
    "integer": lambda: msg("a whole number"),
    "integer|null": lambda: msg("a whole number or null"),
    "array": lambda: msg("a list"),
    "object": lambda: msg("an object"),
    "boolean": lambda: msg("true or false"),
    "string|number|boolean|null": lambda: msg("text, a number, true, false or null"),
}


def _wrong_type(found: Difference) -> Message:
    if not found.path:
        return msg("A job must be an object, but this is {actual}.", actual=kind_of(found.value))
    return msg(
        "{field} must be {expected}, but is {actual}.",
        field=field_name(found.path),
        expected=_EXPECTED[found.wanted if isinstance(found.wanted, str) else "|".join(found.wanted)](),
        actual=kind_of(found.value),
    )


def _missing(found: Difference) -> Message:
    return msg("{field} is missing, and it is required.", field=field_name(found.path))


def _unknown(found: Difference) -> Message:
    name = str(found.path[-1])
    if name in _places():
        return msg("{field} does not belong here, but {place}.", field=name, place=_places()[name]())
    nearest = _nearest(name, found.schema["properties"])
    if nearest is None:
        return msg("{field} is no field of a job: remove it.", field=shown_name(name))
    return msg(
        "{field} is no field of a job; did you mean {nearest}?", field=shown_name(name), nearest=nearest
    )


def _nearest(name: str, properties: Mapping[str, Any]) -> str | None:
    # matching takes time that grows with the length, and nobody misspells by a hundred letters
    if len(name) > 64:
        return None
    by_lower = {known.lower(): known for known, schema in properties.items() if not schema.get("deprecated")}
    matches = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.4)
    return by_lower[matches[0]] if matches else None


@cache
def _places() -> Mapping[str, Callable[[], Message]]:
    """Tell of a field where it belongs, for one that was put elsewhere."""
    schema = job_schema()
    places: dict[str, Callable[[], Message]] = {}
    for name in schema["$defs"]["port"]["properties"]:
        places[name] = lambda: msg("to an entry of portList")
    for name in schema["$defs"]["taskRole"]["properties"]:
        places[name] = lambda: msg("to a task role (an entry of taskRoles)")
    for name in schema["properties"]:
        places[name] = lambda: msg("to the job itself, beside jobName")
    # whoever writes "name" beside "image" means jobName
    del places["name"]
    return places


def _bad_env_name(found: Difference) -> Message:
    return msg(
        "{name} cannot be the name of an environment variable: it must not be empty, longer than 1024 "
        "characters, or hold = or NUL.",
        name=quoted(str(found.path[-1])),
    )


def _wrong_characters(found: Difference) -> Message:
    field, value = field_name(found.path), str(found.value)
    if not value.strip():
        return msg("{field} must not be empty.", field=field)
    if found.path[-1] == "image":
        return msg(
            "{field} must not hold spaces or line breaks, but is {value}.", field=field, value=quoted(value)
        )
    return msg(
        "{field} may hold only the letters A–Z and a–z, digits and {allowed}, but is {value}.",
        field=field,
        allowed="- . _ ~" if found.path[-1] == "jobName" else ". _ ~",
        value=quoted(value),
    )


def _dots(found: Difference) -> Message:
    return msg("{field} must not be {value}.", field=field_name(found.path), value=quoted(str(found.value)))


def _too_small(found: Difference) -> Message:
    return msg(
        "{field} must be at least {limit}, but is {value}.",
        field=field_name(found.path),
        limit=found.wanted,
        value=number_text(found.value),
    )


def _too_large(found: Difference) -> Message:
    return msg(
        "{field} must be at most {limit}, but is {value}.",
        field=field_name(found.path),
        limit=found.wanted,
        value=number_text(found.value),
    )


def _empty(found: Difference) -> Message:
    return msg("{field} must not be empty.", field=field_name(found.path))


def _too_long(found: Difference) -> Message:
    return msg(
        "{field} is too long: {length} characters, where {limit} are allowed.",
        field=field_name(found.path),
        length=len(found.value),
        limit=found.wanted,
    )


def _too_many(found: Difference) -> Message:
    return msg(
        "{field} has too many entries: {length}, where {limit} are allowed.",
        field=field_name(found.path),
        length=len(found.value),
        limit=found.wanted,
    )


_SENTENCES: Mapping[str, Callable[[Difference], Message]] = {
    "type": _wrong_type,
    "required": _missing,
    "additionalProperties": _unknown,
    "propertyNames": _bad_env_name,
    "pattern": _wrong_characters,
    "not": _dots,
    "minimum": _too_small,
    "maximum": _too_large,
    "minLength": _empty,
    "maxLength": _too_long,
    "minItems": _empty,
    "maxItems": _too_many,
    "maxProperties": _too_many,
}
