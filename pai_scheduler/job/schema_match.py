"""Tells fast whether a job JSON is as the schema wants it, as nearly all that are submitted are.

`schema_errors` finds what is wrong, and takes ten times as long. The schema is made into functions once. What
they do not know they do not accept: then the other module decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sized
from functools import cache
from typing import Any

from .schema import job_schema, resolve

_Match = Callable[[Any], bool]
#: makes it of what a keyword wants, and the part of the schema that has the keyword
_Keyword = Callable[[Any, Mapping[str, Any]], _Match]

#: what the types are of values as JSON is read; 1.0 is an integer too, which the other module finds
_TYPES: Mapping[str, frozenset[type]] = {
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
    "array": frozenset({list}),
    "object": frozenset({dict}),
}
#: what says nothing about values
_NOTES = frozenset(
    {"$id", "$schema", "$defs", "$ref", "title", "description", "default", "deprecated", "examples"}
)
_NUMBERS = _TYPES["number"]


def matches_schema(config: object) -> bool:
    """Return whether a job JSON is known to be as the schema wants it; False: `schema_errors` knows."""
    return _job()(config)


@cache
def _job() -> _Match:
    return _match(job_schema())


def _match(schema: Mapping[str, Any]) -> _Match:
    """Make the function that holds a value against a part of the schema."""
    schema = resolve(schema)
    keywords = [keyword for keyword in schema if keyword not in _NOTES]
    if not KEYWORDS.keys() >= set(keywords):
        return lambda _value: False
    # a wrong type is found first
    keywords.sort(key=lambda keyword: keyword != "type")
    matches = [KEYWORDS[keyword](schema[keyword], schema) for keyword in keywords]
    if len(matches) == 1:
        return matches[0]

    def match(value: Any) -> bool:
        for one in matches:  # noqa: SIM110 - `all` takes twice as long
            if not one(value):
                return False
        return True

    return match


def _type(names: str | list[str], _schema: Mapping[str, Any]) -> _Match:
    allowed = frozenset[type]().union(
        *(_TYPES[name] for name in ([names] if isinstance(names, str) else names))
    )
    return lambda value: type(value) in allowed


def _pattern(pattern: str, _schema: Mapping[str, Any]) -> _Match:
    # (Python's `$` overlooks a last line break)
    search = re.compile(pattern.replace("$", r"\Z")).search
    return lambda value: type(value) is not str or search(value) is not None


def _not(rule: Mapping[str, Any], _schema: Mapping[str, Any]) -> _Match:
    if rule.keys() != {"enum"}:
        return lambda _value: False
    refused = frozenset(rule["enum"])
    return lambda value: type(value) is not str or value not in refused


def _enum(values: list[str], _schema: Mapping[str, Any]) -> _Match:
    allowed = frozenset(values)
    return lambda value: type(value) is not str or value in allowed


def _minimum(limit: float, _schema: Mapping[str, Any]) -> _Match:
    return lambda value: type(value) not in _NUMBERS or value >= limit


def _maximum(limit: float, _schema: Mapping[str, Any]) -> _Match:
    return lambda value: type(value) not in _NUMBERS or value <= limit


def _least(kind: type[Sized]) -> _Keyword:
    return lambda limit, _schema: lambda value: type(value) is not kind or len(value) >= limit


def _most(kind: type[Sized]) -> _Keyword:
    return lambda limit, _schema: lambda value: type(value) is not kind or len(value) <= limit


def _required(names: list[str], _schema: Mapping[str, Any]) -> _Match:
    wanted = frozenset(names)
    return lambda value: type(value) is not dict or value.keys() >= wanted


def _properties(fields: Mapping[str, Any], schema: Mapping[str, Any]) -> _Match:
    """Hold the entries of an object against their parts of the schema, unknown ones against the rest's."""
    known = {name: _match(field) for name, field in fields.items()}
    allowed = schema.get("additionalProperties", {})
    other = None if allowed is False else _match(allowed) if allowed else _anything

    def match(value: Any) -> bool:
        if type(value) is not dict:
            return True
        for name, item in value.items():
            one = known.get(name, other)
            if one is None or not one(item):
                return False
        return True

    return match


def _additional_properties(allowed: Any, schema: Mapping[str, Any]) -> _Match:
    return _anything if "properties" in schema else _properties({}, {"additionalProperties": allowed})


def _property_names(rules: Mapping[str, Any], _schema: Mapping[str, Any]) -> _Match:
    one = _match(rules)
    return lambda value: type(value) is not dict or all(type(name) is str and one(name) for name in value)


def _items(item: Mapping[str, Any], _schema: Mapping[str, Any]) -> _Match:
    one = _match(item)
    return lambda value: type(value) is not list or all(map(one, value))


def _anything(_value: Any) -> bool:
    return True


#: What a part of the schema may be written with; what else it has makes that nothing is accepted here.
KEYWORDS: Mapping[str, _Keyword] = {
    "type": _type,
    "pattern": _pattern,
    "not": _not,
    "enum": _enum,
    "minimum": _minimum,
    "maximum": _maximum,
    "minLength": _least(str),
    "maxLength": _most(str),
    "minItems": _least(list),
    "maxItems": _most(list),
    "maxProperties": _most(dict),
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional_properties,
    "propertyNames": _property_names,
    "items": _items,
}
