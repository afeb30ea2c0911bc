"""Holds a job JSON against the JSON Schema and says in sentences where it differs.

The keywords are jsonschema's, but their implementations are ours: the library's write the whole
offending value into every message (costly, and an exception for enormous numbers or deep nesting), and
look for patterns as Python does, where `$` matches before a last line break.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sized
from difflib import get_close_matches
from functools import cache
from typing import Any, cast

from jsonschema import Draft202012Validator, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from .messages import Message, msg
from .paths import Path, field_name, kind_of, number_text, quoted, shown_name
from .schema import job_schema, resolve

_Keyword = Callable[[Any, Any, Any, Mapping[str, Any]], Iterator[ValidationError]]


def schema_errors(config: object) -> Iterator[tuple[Path, Message]]:
    """Find every difference between a job JSON and the schema."""
    for error in _validator().iter_errors(cast(Any, config)):
        path: Path = tuple(error.absolute_path)
        yield path, _SENTENCES[str(error.validator)](path, error)


@cache
def _validator() -> Validator:
    our_validator: Any = extend(Draft202012Validator, KEYWORDS)  # type: ignore[no-untyped-call]
    return cast(Validator, our_validator(dict(job_schema())))


# -- keywords: each yields bare errors, the sentences are made below --


def _descend(
    validator: Any, instance: Any, schema: Mapping[str, Any], *path: str | int
) -> Iterator[ValidationError]:
    """Hold a part of the job against its part of the schema.

    The library's own way makes a new validator for every field, for schemas whose references may lead
    anywhere; ours lead to `$defs`, and this takes a third of the time.
    """
    schema = resolve(schema)
    for keyword, argument in schema.items():
        for error in KEYWORDS[keyword](validator, argument, instance, schema) if keyword in KEYWORDS else ():
            if not isinstance(error.validator, str):
                error.validator, error.validator_value = keyword, argument
                error.instance, error.schema = instance, schema
            error.relative_path.extendleft(reversed(path))
            yield error


def _properties(
    validator: Any, fields: Mapping[str, Any], instance: Any, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name, field in fields.items():
            if name in instance:
                yield from _descend(validator, instance[name], field, name)


def _type(validator: Any, types: Any, instance: Any, _schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    wanted = [types] if isinstance(types, str) else types
    if not any(validator.is_type(instance, name) for name in wanted):
        yield ValidationError("")


def _required(
    _validator: Any, names: list[str], instance: Any, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError("", path=(name,))


def _additional_properties(
    validator: Any, allowed: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known = schema.get("properties", {})
    for number, (name, value) in enumerate(instance.items()):
        if number > schema.get("maxProperties", number):
            return
        if name in known or not isinstance(name, str):
            continue
        if allowed is False:
            yield ValidationError("", path=(name,))
        else:
            yield from _descend(validator, value, allowed, name)


def _property_names(
    validator: Any, rules: Any, instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    for number, name in enumerate(instance):
        if number > schema.get("maxProperties", number):
            return
        if isinstance(name, str) and any(_descend(validator, name, rules)):
            yield ValidationError("", path=(name,))


def _items(validator: Any, item: Any, instance: Any, schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        # a list that is too long says so; looking at each of a million items would take minutes
        for index, value in enumerate(instance[: schema.get("maxItems")]):
            yield from _descend(validator, value, item, index)


def _pattern(
    _validator: Any, pattern: str, instance: Any, _schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _compiled(pattern).search(instance):
        yield ValidationError("")


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("$", r"\Z"))


def _not(_validator: Any, rule: Any, instance: Any, _schema: Mapping[str, Any]) -> Iterator[ValidationError]:
    if isinstance(instance, str) and instance in rule["enum"]:
        yield ValidationError("")


def _bound(kind: type | tuple[type, ...], broken: Callable[[Any, Any], bool]) -> _Keyword:
    def keyword(
        _validator: Any, limit: Any, instance: Any, _schema: Mapping[str, Any]
    ) -> Iterator[ValidationError]:
        if isinstance(instance, kind) and not isinstance(instance, bool) and broken(instance, limit):
            yield ValidationError("")

    return keyword


KEYWORDS: dict[str, _Keyword] = {
    "type": _type,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "items": _items,
    "pattern": _pattern,
    "not": _not,
    "minimum": _bound((int, float), lambda value, limit: value < limit),
    "maximum": _bound((int, float), lambda value, limit: value > limit),
    "minLength": _bound(str, lambda value, limit: len(value) < limit),
    "maxLength": _bound(str, lambda value, limit: len(value) > limit),
    "minItems": _bound(list, lambda value, limit: len(value) < limit),
    "maxItems": _bound(list, lambda value, limit: len(value) > limit),
    "maxProperties": _bound(dict, lambda value, limit: len(value) > limit),
}


# -- sentences: one function for each keyword --


_TYPES: dict[str, Callable[[], Message]] = {
    "string": lambda: msg("text"),
    "integer": lambda: msg("a whole number"),
    "integer|null": lambda: msg("a whole number or null"),
    "array": lambda: msg("a list"),
    "object": lambda: msg("an object"),
    "string|number|boolean|null": lambda: msg("text, a number, true, false or null"),
}


def _wrong_type(path: Path, error: ValidationError) -> Message:
    wanted: Any = error.validator_value
    if not path:
        return msg("A job must be an object, but this is {actual}.", actual=kind_of(error.instance))
    return msg(
        "{field} must be {expected}, but is {actual}.",
        field=field_name(path),
        expected=_TYPES[wanted if isinstance(wanted, str) else "|".join(wanted)](),
        actual=kind_of(error.instance),
    )


def _missing(path: Path, _error: ValidationError) -> Message:
    return msg("{field} is missing, and it is required.", field=field_name(path))


def _unknown(path: Path, error: ValidationError) -> Message:
    name = str(path[-1])
    schema: Any = error.schema
    if name in _places():
        return msg("{field} does not belong here, but {place}.", field=name, place=_places()[name]())
    nearest = _nearest(name, schema["properties"])
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


def _bad_env_name(path: Path, _error: ValidationError) -> Message:
    return msg(
        "{name} cannot be the name of an environment variable: it must not be empty, longer than 1024 "
        "characters, or hold = or NUL.",
        name=quoted(str(path[-1])),
    )


def _wrong_characters(path: Path, error: ValidationError) -> Message:
    field, value = field_name(path), str(error.instance)
    if not value.strip():
        return msg("{field} must not be empty.", field=field)
    if path[-1] == "image":
        return msg(
            "{field} must not hold spaces or line breaks, but is {value}.", field=field, value=quoted(value)
        )
    return msg(
        "{field} may hold only the letters A–Z and a–z, digits and {allowed}, but is {value}.",
        field=field,
        allowed="- . _ ~" if path[-1] == "jobName" else ". _ ~",
        value=quoted(value),
    )


def _dots(path: Path, error: ValidationError) -> Message:
    return msg("{field} must not be {value}.", field=field_name(path), value=quoted(str(error.instance)))


def _too_small(path: Path, error: ValidationError) -> Message:
    return msg(
        "{field} must be at least {limit}, but is {value}.",
        field=field_name(path),
        limit=error.validator_value,
        value=number_text(cast(float, error.instance)),
    )


def _too_large(path: Path, error: ValidationError) -> Message:
    return msg(
        "{field} must be at most {limit}, but is {value}.",
        field=field_name(path),
        limit=error.validator_value,
        value=number_text(cast(float, error.instance)),
    )


def _empty(path: Path, _error: ValidationError) -> Message:
    return msg("{field} must not be empty.", field=field_name(path))


def _too_long(path: Path, error: ValidationError) -> Message:
    return msg(
        "{field} is too long: {length} characters, where {limit} are allowed.",
        field=field_name(path),
        length=len(cast(Sized, error.instance)),
        limit=error.validator_value,
    )


def _too_many(path: Path, error: ValidationError) -> Message:
    return msg(
        "{field} has too many entries: {length}, where {limit} are allowed.",
        field=field_name(path),
        length=len(cast(Sized, error.instance)),
        limit=error.validator_value,
    )


_SENTENCES: dict[str, Callable[[Path, ValidationError], Message]] = {
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
