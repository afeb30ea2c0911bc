"""Holds every answer of the API against its OpenAPI document: the status, the headers, the type, the body."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import unquote

import httpx
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from pai_scheduler.api.openapi import openapi_document

_URI = "urn:openapi"
_BASE = re.compile(r"/api/v1(?=/|\Z)")


class UndocumentedError(AssertionError):
    """The service answered what its document does not say."""


async def check_answer(response: httpx.Response) -> None:
    """Compare an answer with the document; a hook for `httpx.AsyncClient(event_hooks={"response": […]})`."""
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    if response.request.url.params.get("as") == "submitted" and response.status_code == 200:
        # somebody's own text, in which there may be comments
        return
    if kind in ("application/json", "application/yaml"):
        await response.aread()
    found = wrong_with(response, kind)
    if found is not None:
        request = response.request
        raise UndocumentedError(f"{request.method} {request.url.path}: {response.status_code}: {found}")


def wrong_with(response: httpx.Response, kind: str) -> str | None:
    """Return what of an answer is not in the document; None where all is, or the API has no such address."""
    raw = response.request.url.raw_path.decode().partition("?")[0]
    base = _BASE.search(raw)
    place = _find(raw[base.end() :] or "/") if base else None
    if place is None:
        return None
    path, operations = place
    operation = operations.get(response.request.method.lower())
    if operation is None:
        return None if response.status_code == 405 else "this method is not documented"
    answers = operation["responses"]
    answer = answers.get(str(response.status_code))
    if answer is None:
        return f"this status is not documented: {response.text if kind == 'application/json' else kind}"
    pointer = (
        f"{_URI}#/paths/{_escape(path)}/{response.request.method.lower()}/responses/{response.status_code}"
    )
    if "$ref" in answer:
        pointer = _URI + answer["$ref"]
        answer = openapi_document()["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    for name, header in answer.get("headers", {}).items():
        if header.get("required") and name not in response.headers:
            return f"the header {name} is missing"
    content = answer.get("content", {})
    if kind not in content:
        return None if not kind and not content else f"the type {kind!r} is not documented"
    if kind not in ("application/json", "application/yaml"):
        return None
    body = json.loads(response.content) if kind == "application/json" else yaml.safe_load(response.text)
    schema = {"$ref": f"{pointer}/content/{_escape(kind)}/schema"}
    return (
        "; ".join(
            f"{error.json_path}: {error.message}"
            for error in Draft202012Validator(schema, registry=_registry()).iter_errors(body)
        )
        or None
    )


@cache
def _registry() -> Registry[Any]:
    resource = DRAFT202012.create_resource(openapi_document())
    return Registry().with_resource(_URI, resource)


@cache
def _patterns() -> list[tuple[re.Pattern[str], str, Mapping[str, Any]]]:
    return [
        (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) + "/?"), path, operations)
        for path, operations in openapi_document()["paths"].items()
    ]


def _find(raw: str) -> tuple[str, Mapping[str, Any]] | None:
    for pattern, path, operations in _patterns():
        if pattern.fullmatch(raw) and _fits(raw, path, operations):
            return path, operations
    return None


def _fits(raw: str, path: str, operations: Mapping[str, Any]) -> bool:
    """Return whether the parts of a path are what their parameters may be, so that it is this address."""
    schemas = {item["name"]: item["schema"] for item in operations.get("parameters", ()) if "name" in item}
    for part, name in zip(raw.strip("/").split("/"), path.strip("/").split("/"), strict=True):
        schema = schemas.get(name.strip("{}"), {}) if name.startswith("{") else {}
        if "enum" in schema and unquote(part) not in schema["enum"]:
            return False
        if schema.get("type") == "integer" and not part.isdigit():
            return False
    return True


def _escape(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
