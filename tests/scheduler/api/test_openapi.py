"""The API's document: valid, complete, served everywhere, and made of the job schema that validates."""

from __future__ import annotations

import re

import httpx
import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from pai_scheduler.api.openapi import openapi_document
from pai_scheduler.api.routes import ROUTES
from pai_scheduler.job.schema import job_schema
from pai_scheduler.rest.models import JobSummary
from tests.scheduler.making import make_config
from tests.testbed.answers import wrong_with
from tests.testbed.scheduler import RunningScheduler

METHODS = ("get", "post", "put", "delete", "patch", "head", "options", "trace")


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(dict(openapi_document("/services/pai/"))).validate()


def _shape(path: str) -> str:
    """Return a path with `{}` for every part that varies."""
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_every_address_and_method_is_in_the_document_and_no_other() -> None:
    served = {
        re.sub(r"\([^)]*\)", "{}", path).replace("\\", "") or "/": set(handler.allowed_methods())
        for path, handler in ROUTES
    }
    documented = {
        _shape(path): {method.upper() for method in operations if method in METHODS}
        for path, operations in openapi_document()["paths"].items()
    }
    assert documented == served


def test_every_parameter_of_a_path_is_described() -> None:
    document = openapi_document()
    for path, operations in document["paths"].items():
        described = set()
        for parameter in operations.get("parameters", ()):
            if "$ref" in parameter:
                parameter = document["components"]["parameters"][parameter["$ref"].rpartition("/")[2]]
            if parameter["in"] == "path":
                described.add(parameter["name"])
        assert described == set(re.findall(r"\{(\w+)\}", path)), path


def test_what_needs_no_token_in_the_document_needs_none() -> None:
    anonymous = {
        re.sub(r"\([^)]*\)", "{}", path).replace("\\", "") or "/"
        for path, handler in ROUTES
        if handler.anonymous
    }
    open_to_all = {
        _shape(path)
        for path, operations in openapi_document()["paths"].items()
        for method in METHODS
        if operations.get(method, {}).get("security") == []
    }
    assert open_to_all == anonymous


def test_the_job_in_it_is_the_schema_that_validates() -> None:
    schema = openapi_document()["components"]["schemas"]["Job"]
    assert schema["properties"].keys() == job_schema()["properties"].keys()
    # its references lead somewhere
    whole = {**openapi_document(), "$ref": "#/components/schemas/Job"}
    good, bad = make_config(), make_config({"name": "a b", "command": "x"})
    assert Draft202012Validator(whole).is_valid(good)
    assert [error.json_path for error in Draft202012Validator(whole).iter_errors(bad)] == [
        "$.taskRoles[0].name"
    ]


def test_an_answer_holds_what_is_declared_and_what_is_sent_may_hold_more() -> None:
    schemas = openapi_document()["components"]["schemas"]
    summary = schemas["JobSummary"]
    assert list(summary["properties"]) == list(JobSummary.__annotations__)
    assert summary["required"] == list(summary["properties"])
    assert summary["additionalProperties"] is False
    assert schemas["JobEvent"]["properties"].keys() - set(schemas["JobEvent"]["required"]) == {"user", "job"}
    assert "additionalProperties" not in schemas["Login"]
    # in the order in which it is declared, with what is said of it
    fits = schemas["Validation"]["properties"]["fits"]
    assert fits["enum"] == ["now", "later", "never"]
    assert schemas["QueueEntry"]["properties"]["overtaken"] == {
        "type": "integer",
        "minimum": 0,
        "description": "How often a job behind it has started before it",
    }


async def test_it_is_served_to_anybody_as_yaml_and_as_json(scheduler: RunningScheduler) -> None:
    async with httpx.AsyncClient(base_url=f"{scheduler.url}/api/v1", trust_env=False) as stranger:
        as_yaml, as_json = await stranger.get("/openapi.yaml"), await stranger.get("/openapi.json")
    assert as_yaml.headers["Content-Type"] == "application/yaml; charset=UTF-8"
    assert yaml.safe_load(as_yaml.text) == as_json.json() == openapi_document()
    assert "&id" not in as_yaml.text


def test_it_names_the_address_under_which_the_api_is_reached() -> None:
    assert openapi_document("/services/pai/")["servers"] == [{"url": "/services/pai/api/v1"}]


@pytest.mark.parametrize(
    ("path", "status", "body", "wrong"),
    [
        ("/api/v1/jobs", 200, [], None),
        ("/services/pai/api/v1/jobs", 200, [], None),
        ("/api/v1/jobs", 200, [{"name": "x"}], "is a required property"),
        ("/api/v1/jobs", 418, {}, "status is not documented"),
        ("/api/v1/jobs", 401, {"code": "UnauthorizedUserError", "message": "x"}, "WWW-Authenticate"),
        ("/api/v1/jobs", 403, {"code": "NoJobError", "message": "x"}, "was expected"),
        ("/api/v1/jobs", 403, {"code": "ForbiddenUserError", "message": "x", "more": 1}, "more"),
        ("/elsewhere", 418, {}, None),
    ],
)
def test_an_answer_that_is_not_documented_is_found(
    path: str, status: int, body: object, wrong: str | None
) -> None:
    request = httpx.Request("GET", f"http://127.0.0.1{path}")
    found = wrong_with(httpx.Response(status, json=body, request=request), "application/json")
    assert (found is None) if wrong is None else (found is not None and wrong in found)
