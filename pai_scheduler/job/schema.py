"""The JSON Schema of the job JSON, of which validation, forms and documents are made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any


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
