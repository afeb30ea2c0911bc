"""The schema is sound, says what forms and documents need, and is all that validation knows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from pai_scheduler.job.schema import job_schema, resolve
from pai_scheduler.job.schema_errors import KEYWORDS

ANNOTATIONS = {"$schema", "$id", "$ref", "$defs", "title", "description", "default", "deprecated"}


def fields(schema: dict[str, Any] | Any, path: str = "$") -> Iterator[tuple[str, Any]]:
    """Return every field of a job with its schema as forms see it."""
    for name, field in schema.get("properties", {}).items():
        field = resolve(field)
        yield f"{path}.{name}", field
        yield from fields(resolve(field.get("items", {})), f"{path}.{name}[]")


FIELDS = dict(fields(job_schema()))


def test_it_is_a_valid_draft_2020_12_schema() -> None:
    Draft202012Validator.check_schema(dict(job_schema()))


def test_it_has_every_field_of_the_contract() -> None:
    roles = "name taskNumber cpuNumber memoryMB shmMB gpuNumber storageGB portList command"
    counts = "minFailedTaskCount minSucceededTaskCount"
    job = (
        "jobName image authFile dataDir outputDir codeDir virtualCluster taskRoles gpuType retryCount "
        "jobEnvs extras tmp killAllOnCompletedTaskNumber"
    )
    assert set(FIELDS) == (
        {f"$.{name}" for name in job.split()}
        | {f"$.taskRoles[].{name}" for name in f"{roles} {counts}".split()}
        | {f"$.taskRoles[].portList[].{name}" for name in ("label", "beginAt", "portNumber")}
    )


@pytest.mark.parametrize("path", FIELDS)
def test_every_field_has_a_title_and_a_description(path: str) -> None:
    assert FIELDS[path]["title"]
    assert FIELDS[path]["description"].endswith((".", "~"))


@pytest.mark.parametrize("path", [path for path in FIELDS if "default" in FIELDS[path]])
def test_every_default_is_itself_valid(path: str) -> None:
    whole = {**FIELDS[path], "$defs": job_schema()["$defs"]}
    assert Draft202012Validator(whole).is_valid(FIELDS[path]["default"])


def test_validation_knows_every_keyword_that_the_schema_uses() -> None:
    used: set[str] = set()

    def walk(schema: Any) -> None:
        used.update(schema)
        for part in ("properties", "$defs"):
            for child in schema.get(part, {}).values():
                walk(child)
        for part in ("items", "propertyNames", "additionalProperties"):
            if isinstance(schema.get(part), dict):
                walk(schema[part])

    walk(job_schema())
    assert used - ANNOTATIONS <= set(KEYWORDS)
