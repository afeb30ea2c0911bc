"""Holds a job JSON against the JSON Schema and says in sentences where it differs.

The jsonschema library does it, with keywords of ours: its own write the whole offending value into every
message (an exception for enormous numbers or deep nesting), look for patterns as Python does, where `$`
matches before a last line break, and make a validator for each value that they look into. The library takes
most of a second to import (for formats that we do not use): import this module when it is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, Protocol

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from pai_scheduler.i18n import Message, msg

from .json_path import Path, field_name, kind_of, number_text, quoted, shown_name
from .schema import job_schema, resolve


class Difference(NamedTuple):
    """Mismatch between a value and a keyword of the schema; `schema` is the part that has the keyword."""

    path: Path
    wanted: Any
    value: Any
    schema: Mapping[str, Any]


def schema_errors(config: object) -> Iterator[tuple[Path, Message]]:
    """Find every difference between a job JSON and the schema."""
    for error in _validator(job_schema()).iter_errors(config):
        path = tuple(error.absolute_path)
        found = Difference(path, error.validator_value, error.instance, error.schema)
        yield path, _SENTENCES[str(error.validator)](found)


# -- keywords that limit the value itself: each tells whether the value breaks it --


def _breaks_type(value: Any, types: str | list[str]) -> bool:
    return not any(_is(value, name) for name in ([types] if isinstance(types, str) else types))


def _is(value: Any, name: str) -> bool:
    return bool(Draft202012Validator.TYPE_CHECKER.is_type(value, name))


def _breaks_pattern(value: Any, pattern: str) -> bool:
    return isinstance(value, str) and not _compiled(pattern).search(value)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("$", r"\Z"))


_LIMITS: Mapping[str, Callable[[Any, Any], bool]] = {
    "type": _breaks_type,
    "pattern": _breaks_pattern,
    "not": lambda value, rule: isinstance(value, str) and value in rule["enum"],
    "enum": lambda value, allowed: isinstance(value, str) and value not in allowed,
    "minimum": lambda value, limit: _is(value, "number") and value < limit,
    "maximum": lambda value, limit: _is(value, "number") and value > limit,
    "minLength": lambda value, limit: isinstance(value, str) and len(value) < limit,
    "maxLength": lambda value, limit: isinstance(value, str) and len(value) > limit,
    "minItems": lambda value, limit: isinstance(value, list) and len(value) < limit,
    "maxItems": lambda value, limit: isinstance(value, list) and len(value) > limit,
    "maxProperties": lambda value, limit: isinstance(value, dict) and len(value) > limit,
}


class _Keyword(Protocol):
    """Callback of the library for a keyword, which requires `wanted` of a value."""

    def __call__(
        self, validator: Any, wanted: Any, value: Any, schema: Mapping[str, Any], /
    ) -> Iterable[ValidationError]: ...


def _limit(breaks: Callable[[Any, Any], bool]) -> _Keyword:
    def keyword(
        _validator: Any, wanted: Any, value: Any, _schema: Mapping[str, Any]
    ) -> Iterable[ValidationError]:
        return (ValidationError(""),) if breaks(value, wanted) else ()

    return keyword


# -- keywords about the parts of a value --


def _required(
    _validator: Any, names: list[str], value: Any, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                yield ValidationError("", path=[name])


def _properties(
    _validator: Any, fields: Mapping[str, Any], value: Any, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(value, dict):
        for name, field in fields.items():
            if name in value:
                yield from _within(name, value[name], field)


def _additional_properties(
    _validator: Any, allowed: Any, value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    known = schema.get("properties", {})
    for name, item in _entries(value, schema):
        if name in known:
            continue
        if allowed is False:
            yield ValidationError("", path=[name])
        else:
            yield from _within(name, item, allowed)


def _property_names(
    _validator: Any, rules: Mapping[str, Any], value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    for name, _ in _entries(value, schema):
        if any(_within(name, name, rules)):
            yield ValidationError("", path=[name])


def _entries(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Return the entries of an object; one that is too large says so, and is not read to its end."""
    if isinstance(value, dict):
        most = schema.get("maxProperties")
        for number, (name, item) in enumerate(value.items()):
            if number == most:
                return
            if isinstance(name, str):
                yield name, item


def _items(
    _validator: Any, item: Mapping[str, Any], value: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(value, list):
        for index, entry in enumerate(value[: schema.get("maxItems")]):
            yield from _within(index, entry, item)


def _within(step: str | int, value: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    """Hold a part of a value against its own part of the schema."""
    for error in _validator(schema).iter_errors(value):
        error.path.appendleft(step)
        yield error


#: What the schema may be written with: for the library's other keywords there are no sentences.
KEYWORDS: Mapping[str, _Keyword] = {
    **{keyword: _limit(breaks) for keyword, breaks in _LIMITS.items()},
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "items": _items,
}
_JobValidator: type[Draft202012Validator] = extend(Draft202012Validator, KEYWORDS)  # type: ignore[no-untyped-call]

#: By the identity of a part of the schema, which never changes: to make one takes longer than to use it.
_validators: dict[int, Draft202012Validator] = {}


def _validator(schema: Mapping[str, Any]) -> Draft202012Validator:
    found = _validators.get(id(schema))
    if found is None:
        whole = {keyword: wanted for keyword, wanted in resolve(schema).items() if keyword != "$ref"}
        found = _validators[id(schema)] = _JobValidator(whole)
    return found


# -- sentences: one function for each keyword --


_EXPECTED: dict[str, Callable[[], Message]] = {
    "string": lambda: msg("text"),
    "integer": lambda: msg("a whole number"),
    "integer|null": lambda: msg("a whole number or null"),
    "array": lambda: msg("a list"),
    "object": lambda: msg("an object"),
    "boolean": lambda: msg("true or false"),
    "boolean|string": lambda: msg("true, false or text"),
    "string|object": lambda: msg("text or an object"),
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
    """Return, by a field's name, where it belongs, for one that was put elsewhere."""
    schema = job_schema()
    places: dict[str, Callable[[], Message]] = {}
    for name in schema["$defs"]["port"]["properties"]:
        places[name] = lambda: msg("to an entry of portList")
    for name in schema["$defs"]["taskRole"]["properties"]:
        places[name] = lambda: msg("to a task role (an entry of taskRoles)")
    for name in schema["properties"]:
        places[name] = lambda: msg("to the job itself, beside jobName")
    # "name" beside "image" is meant to be jobName
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


def _none_of_these(found: Difference) -> Message:
    return msg(
        "{field} must be one of {allowed}, but is {value}.",
        field=field_name(found.path),
        allowed=", ".join(found.wanted),
        value=quoted(str(found.value)),
    )


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
    "enum": _none_of_these,
    "minimum": _too_small,
    "maximum": _too_large,
    "minLength": _empty,
    "maxLength": _too_long,
    "minItems": _empty,
    "maxItems": _too_many,
    "maxProperties": _too_many,
}
