"""The JSON Schema of the job JSON, and a fast match of a job with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import cache, reduce
from importlib import resources
from operator import or_
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

# The JSON Schema of the job JSON: the one definition that validation, forms and documents are made from.


@cache
def job_schema() -> Mapping[str, Any]:
    """Return the schema (draft 2020-12) of job-contract.md, section 1; read once, not to be changed."""
    text = (resources.files(__package__) / "schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def resolve(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a part of the job schema with its `$ref` (always to our own `$defs`) followed."""
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target: Mapping[str, Any] = job_schema()["$defs"][reference.removeprefix("#/$defs/")]
    return {**target, **schema}


# Tells fast whether a job JSON is as the schema wants it, as nearly all that are submitted are.
#
# The schema is made into types of msgspec, which looks at a job in C. `schema_errors` finds what is wrong,
# and takes much longer.

#: What says nothing of which values there may be.
_SAYS_NOTHING = frozenset(
    ("$schema", "$id", "$defs", "$ref", "title", "description", "default", "deprecated")
)


def matches_schema(config: object) -> bool:
    """Return whether a job JSON is known to be as the schema wants it; False: `schema_errors` knows.

    What JSON cannot have, as keys that are no text, is not looked for: `validation` finds it.
    """
    try:
        msgspec.convert(config, _job())
    except (msgspec.ValidationError, RecursionError):
        return False
    return True


@cache
def _job() -> Any:
    return _type_of(job_schema())


def _type_of(schema: Mapping[str, Any]) -> Any:
    """Return the type of the values that a part of the schema wants; ValueError: it says more than a type."""
    parts = {key: value for key, value in resolve(schema).items() if key not in _SAYS_NOTHING}
    if not parts:
        return Any
    kinds = parts.pop("type")
    found = reduce(or_, [_OF[kind](parts) for kind in ([kinds] if isinstance(kinds, str) else kinds)])
    if parts:
        raise ValueError(f"of the schema nothing is made of {sorted(parts)}")
    return found


def _string(parts: dict[str, Any]) -> Any:
    if "enum" in parts:
        return Literal[tuple(parts.pop("enum"))]
    pattern = parts.pop("pattern", None)
    if pattern is not None and pattern.endswith("$"):
        # (to Python it would also be the end before a last line break)
        pattern = rf"{pattern[:-1]}\Z"
    excluded = parts.pop("not", {}).get("enum", ())
    if excluded:
        if not pattern.startswith("^"):
            raise ValueError(f"{pattern} is not a pattern of the whole text")
        pattern = rf"^(?!(?:{'|'.join(map(re.escape, excluded))})\Z){pattern[1:]}"
    least, most = parts.pop("minLength", None), parts.pop("maxLength", None)
    return Annotated[str, Meta(min_length=least, max_length=most, pattern=pattern)]


def _integer(parts: dict[str, Any]) -> Any:
    return Annotated[int, Meta(ge=parts.pop("minimum", None), le=parts.pop("maximum", None))]


def _array(parts: dict[str, Any]) -> Any:
    items: Any = _type_of(parts.pop("items"))
    least, most = parts.pop("minItems", None), parts.pop("maxItems", None)
    return Annotated[list[items], Meta(min_length=least, max_length=most)]


def _object(parts: dict[str, Any]) -> Any:
    others = parts.pop("additionalProperties", True)
    if "properties" not in parts:
        names: Any = _type_of({"type": "string", **parts.pop("propertyNames")})
        values: Any = _type_of(others)
        return Annotated[dict[names, values], Meta(max_length=parts.pop("maxProperties"))]
    if not isinstance(others, bool):
        raise ValueError("of other fields beside some that are named nothing is made")
    required = parts.pop("required", ())
    fields = [
        (name, _type_of(field)) if name in required else (name, _type_of(field), None)
        for name, field in parts.pop("properties").items()
    ]
    # (those without a default come first)
    fields.sort(key=len)
    return msgspec.defstruct("Fields", fields, forbid_unknown_fields=not others)


_OF: Mapping[str, Callable[[dict[str, Any]], Any]] = {
    "string": _string,
    "integer": _integer,
    "number": lambda _: int | float,
    "boolean": lambda _: bool,
    "null": lambda _: None,
    "array": _array,
    "object": _object,
}
