"""The API as one OpenAPI 3.1 document: what openapi.yaml says, and the job schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.metadata import version
from typing import Any

import yaml

from pai_scheduler.job.schema import job_schema

from .base_handlers import ApiHandler, Route

#: where the job schema's own definitions are found in the document
_JOB = "#/components/schemas/Job/"


@cache
def openapi_document(prefix: str = "/") -> Mapping[str, Any]:
    """Return the document of an API that answers under `prefix` (slash at both ends); not to be changed."""
    document = copy.deepcopy(_written())
    del document["x-shared"]
    document["info"]["version"] = version("pai-for-jupyter")
    document["servers"] = [{"url": f"{prefix}api/v1"}]
    schema = _moved(job_schema())
    # both say which document a reference is relative to, and here that is this one
    del schema["$schema"], schema["$id"]
    document["components"]["schemas"]["Job"] = schema
    return document


class OpenApiYamlHandler(ApiHandler):
    """`/openapi.yaml`: this API, for people and for programs that make clients."""

    anonymous = True

    async def get(self) -> None:
        """Show."""
        self.set_header("Content-Type", "application/yaml; charset=UTF-8")
        self.finish(_as_yaml(self.context.prefix))


class OpenApiJsonHandler(ApiHandler):
    """`/openapi.json`: the same for those who read no YAML."""

    anonymous = True

    async def get(self) -> None:
        """Show."""
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        self.finish(_as_json(self.context.prefix))


@cache
def _written() -> dict[str, Any]:
    text = (resources.files(__package__) / "openapi.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    return document


@cache
def _as_yaml(prefix: str) -> bytes:
    text: str = yaml.dump(
        json.loads(_as_json(prefix)),  # nothing in it is the same object twice, so there are no anchors
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        allow_unicode=True,
        sort_keys=False,
    )
    return text.encode()


@cache
def _as_json(prefix: str) -> bytes:
    return json.dumps(openapi_document(prefix), ensure_ascii=False).encode()


def _moved(schema: Any) -> Any:
    """Copy the job schema, with its references as they are from within the document."""
    if isinstance(schema, Mapping):
        return {
            key: _JOB + value.removeprefix("#/") if key == "$ref" else _moved(value)
            for key, value in schema.items()
        }
    if isinstance(schema, list):
        return [_moved(item) for item in schema]
    return schema


ROUTES: list[Route] = [
    (r"/openapi\.yaml", OpenApiYamlHandler),
    (r"/openapi\.json", OpenApiJsonHandler),
]
