"""The calls of the REST API, read out of its OpenAPI document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pai_scheduler.api.openapi import openapi_document

_METHODS = ("get", "post", "put", "delete")
_SCHEMAS, _RESPONSES = "#/components/schemas/", "#/components/responses/"
#: Defined by the job schema, which has a page of its own.
_JOB = "Job"


@dataclass(frozen=True)
class Answer:
    """What a call may answer: status, its words, and the shape of the body."""

    status: str
    about: str
    body: str


@dataclass(frozen=True)
class Call:
    """One call. `parameters`: name, place, shape, meaning; `refusals`: the statuses of common refusals."""

    method: str
    path: str
    summary: str
    description: str
    anonymous: bool
    parameters: list[tuple[str, str, str, str]]
    body: str
    answers: list[Answer]
    refusals: list[str]


@dataclass(frozen=True)
class Refusal:
    """An answer that many calls have alike."""

    status: str
    codes: str
    about: str


@dataclass(frozen=True)
class Shape:
    """An object of the API: its fields with their shapes and meanings."""

    name: str
    about: str
    fields: list[tuple[str, str, str]]


def facts(_locale: str) -> Mapping[str, Any]:
    """Return what the page about the API says in facts."""
    document = openapi_document()
    calls = list(_calls(document))
    return {
        "about": document["info"]["description"].strip(),
        "token": document["components"]["securitySchemes"]["token"]["description"],
        "subjects": [
            (tag["name"], tag["description"], [call for name, call in calls if name == tag["name"]])
            for tag in document["tags"]
        ],
        "refusals": sorted(set(_refusals(document)), key=lambda refusal: (refusal.status, refusal.codes)),
        "shapes": [
            _shape_of(name, schema)
            for name, schema in document["components"]["schemas"].items()
            if name != _JOB and "properties" in schema
        ],
    }


def _calls(document: Mapping[str, Any]) -> Iterator[tuple[str, Call]]:
    for path, item in document["paths"].items():
        for method in _METHODS:
            if method in item:
                operation = item[method]
                parameters = [*item.get("parameters", []), *operation.get("parameters", [])]
                answers = operation["responses"].items()
                yield (
                    operation["tags"][0],
                    Call(
                        method.upper(),
                        path,
                        operation["summary"],
                        operation.get("description", "").strip(),
                        operation.get("security") == [],
                        [shown for part in parameters if (shown := _parameter(_found(document, part)))],
                        _body(operation.get("requestBody", {})),
                        [_answer(status, answer) for status, answer in answers if "$ref" not in answer],
                        sorted(status for status, answer in answers if "$ref" in answer),
                    ),
                )


def _refusals(document: Mapping[str, Any]) -> Iterator[Refusal]:
    for item in document["paths"].values():
        for method in _METHODS:
            for status, answer in item.get(method, {}).get("responses", {}).items():
                if "$ref" in answer:
                    found = _found(document, answer)
                    yield Refusal(status, _codes(found), found["description"])


def _found(document: Mapping[str, Any], part: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a reference within the document."""
    if "$ref" not in part:
        return part
    found: Any = document
    for step in part["$ref"].removeprefix("#/").split("/"):
        found = found[step]
    return dict(found)


def _parameter(parameter: Mapping[str, Any]) -> tuple[str, str, str, str] | None:
    """Describe a parameter; None where there is nothing to say beyond the address, or for all calls alike."""
    shape = _shape(parameter["schema"])
    if parameter["name"] == "Accept-Language" or (parameter["in"] == "path" and shape == "string"):
        return None
    return parameter["name"], parameter["in"], shape, parameter.get("description", "")


def _body(body: Mapping[str, Any]) -> str:
    return _content(body.get("content", {}))


def _answer(status: str, answer: Mapping[str, Any]) -> Answer:
    codes = _codes(answer)
    return Answer(status, answer["description"], codes or _content(answer.get("content", {})))


def _content(content: Mapping[str, Any]) -> str:
    shapes = {_shape(media["schema"]) if kind.endswith("json") else kind for kind, media in content.items()}
    named = shapes - {"application/x-www-form-urlencoded", "application/yaml"}
    return ", ".join(sorted(named or shapes))


def _codes(answer: Mapping[str, Any]) -> str:
    """Return the code words of a refusal; empty where it is none."""
    schema = answer.get("content", {}).get("application/json", {}).get("schema", {})
    if schema.get("$ref") != f"{_SCHEMAS}Error":
        return ""
    code = schema.get("properties", {}).get("code", {})
    return " ".join(f"`{word}`" for word in code.get("enum", [code["const"]] if "const" in code else []))


def _shape_of(name: str, schema: Mapping[str, Any]) -> Shape:
    required = schema.get("required", ())
    fields = [
        (field, _shape(part) + ("" if field in required else ", not always"), part.get("description", ""))
        for field, part in schema["properties"].items()
    ]
    return Shape(name, schema.get("description", ""), fields)


def _shape(schema: Mapping[str, Any]) -> str:
    """Return in a few words what values a schema takes."""
    match schema:
        case {"$ref": reference}:
            name = reference.removeprefix(_SCHEMAS)
            schema = openapi_document()["components"]["schemas"][name]
            if "properties" not in schema:
                return _shape(schema)  # too small to stand among the shapes
            return "[job](job-json.md)" if name == _JOB else f"[{name}](#{name.lower()})"
        case {"const": value}:
            return _literal(value)
        case {"enum": values}:
            return " or ".join(map(_literal, values))
        case {"anyOf": parts} | {"oneOf": parts}:
            return " or ".join(map(_shape, parts))
        case {"type": "array", **rest}:
            return f"list of {_shape(rest.get('items', {}))}"
        case {"type": "object", "properties": properties}:
            return "{" + ", ".join(f"`{name}`: {_shape(part)}" for name, part in properties.items()) + "}"
        case {"type": "object", "additionalProperties": dict(part)}:
            return f"name → {_shape(part)}"
        case {"type": list(kinds)}:
            return " or ".join(kinds)
        case {"type": str(kind)}:
            return kind
    return "anything"


def _literal(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
