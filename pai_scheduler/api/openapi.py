"""The API as one OpenAPI 3.1 document, made of what its methods declare, `rest` and the job schema."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import yaml

from pai_scheduler.job.schema import job_schema
from pai_scheduler.rest import models

from .base import ApiHandler
from .operations import Answer, DocumentedRefusal, Header, Model, Operation, Parameter, operations_of
from .routes import ROUTES

_SCHEMAS = "#/components/schemas/"
_DESCRIPTION = """\
Every call needs a bearer token, unless it says that it needs none. Times are milliseconds since the epoch,
memory is in MB. A refusal is `{"code": …, "message": …}`: the code is for programs, the message for people,
in the language of `Accept-Language` (English, Simplified Chinese).

What is not said at each call: an address that there is not is 404 `NoApiError`, a method that an address
does not have 405 `MethodNotAllowedError` with the header `Allow`. A user sees and touches their own jobs,
an administrator everybody's; another user's job is 404 `NoJobError`, whether it exists or not.

Started with `--openpai-compat`, the scheduler answers under `/rest-server/api/v1` and, for files and with a
token, `/webhdfs/api/v1` too, and lets anybody read lists, jobs, their configuration, where their tasks are \
reached, and virtual clusters without a token, as OpenPAI did.

The cluster's files are beside this API, at `/webhdfs/v1` (with the same prefix): Hadoop's
[WebHDFS](https://hadoop.apache.org/docs/stable/hadoop-project-dist/hadoop-hdfs/WebHDFS.html), with its
operations, answers and errors, so that the clients of HDFS work as they are. The token comes as a bearer
token, as the password of Basic authentication or as `delegation=` in the query, and a running job's own \
(`PAI_STORAGE_TOKEN`) counts there
too; `user.name` and `doas` count for nothing. Beside Hadoop's operations there are \
`PUT ?op=COPY&destination=`
(a file, within the storage), `GET ?op=ARCHIVE` (a folder as a zip file), `limit` for `LISTSTATUS_BATCH`, \
`offset` for `APPEND` (refused where the file does not end there; `RetriableException`), and
`data=true`, which has OPEN, CREATE and APPEND answered at once instead of by a redirect.

A body may be JSON or a url-encoded form with nested keys (`taskRoles[0][cpuNumber]=1`). What begins with
`{` or `[` is read as JSON, whatever its Content-Type says.
"""
_TAGS = {
    "jobs": "What is to run",
    "watching": "What happens, and what was written",
    "cluster": "What it runs on",
    "account": "Who is asking",
}
_TOKEN = "A token of the Hub with the scope `access:services!service=pai`, or one of the tokens file."  # noqa: S105
_LANGUAGE = {
    "name": "Accept-Language",
    "in": "header",
    "description": "Language of the messages",
    "schema": {"type": "string"},
    "example": "zh-CN",
}


@cache
def openapi_document(prefix: str = "/") -> Mapping[str, Any]:
    """Return the document of an API that answers under `prefix` (slash at both ends); not to be changed."""
    handlers = dict.fromkeys(handler for _, handler in ROUTES)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "PAI for Jupyter",
            "summary": "Submit and watch jobs on a cluster of GPUs that notebooks and jobs share.",
            "version": version("pai-for-jupyter"),
            "license": {"name": "BSD-3-Clause", "identifier": "BSD-3-Clause"},
            "description": _DESCRIPTION,
        },
        "servers": [{"url": f"{prefix}api/v1"}],
        "security": [{"token": []}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        **_Writer().write(handlers),
    }


@cache
def as_yaml(prefix: str = "/") -> bytes:
    """Return the document as YAML."""
    text: str = yaml.dump(
        json.loads(as_json(prefix)),  # nothing in it is the same object twice, so there are no anchors
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        allow_unicode=True,
        sort_keys=False,
        width=110,
    )
    return text.encode()


@cache
def as_json(prefix: str = "/") -> bytes:
    """Return the document as JSON."""
    return json.dumps(openapi_document(prefix), ensure_ascii=False).encode()


def schemas_of(wanted: Iterable[Model]) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return the JSON Schema of each model, and by name those that they refer to, in the declared order."""
    hints = list(wanted)
    found, named = msgspec.json.schema_components(hints, ref_template=f"{_SCHEMAS}{{name}}")
    declared = {model.__name__: model for hint in hints for model in _models(hint)}
    for name, schema in named.items():
        del schema["title"]
        fields = get_type_hints(declared[name], include_extras=True)
        hints += fields.values()
        for key, order in (("properties", schema["properties"]), ("required", schema.get("required", ()))):
            ordered = [field for field in fields if field in order]
            schema[key] = {field: order[field] for field in ordered} if key == "properties" else ordered
        if not schema["required"]:
            del schema["required"]
    orders = {frozenset(values): list(values) for hint in hints for values in _literals(hint)}
    return [_in_order(schema, orders) for schema in found], _in_order(named, orders)


class _Writer:
    """Writes a document part by part, and collects what its parts refer to."""

    def __init__(self) -> None:
        self.components: dict[str, dict[str, Any]] = {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "description": _TOKEN}},
            "parameters": {"Language": _LANGUAGE},
            "headers": {},
            "responses": {},
            "schemas": {"Job": _moved(job_schema())},
        }
        # what is sent may hold more than is read; an answer holds what is said here
        self._sent: set[str] = set()

    def write(self, handlers: Iterable[type[ApiHandler]]) -> dict[str, Any]:
        paths: dict[str, Any] = {}
        for handler in handlers:
            for one in operations_of(handler):
                shown = paths.setdefault(one.path or "/", self._path(one))
                shown[one.method.lower()] = self._operation(one, anonymous=handler.anonymous)
        schemas = self.components["schemas"]
        for name in schemas.keys() - self._sent - {"Job"}:
            # others refer to an error, and say more of it
            kind = "unevaluatedProperties" if name == "Error" else "additionalProperties"
            schemas[name][kind] = False
        return {"paths": paths, "components": self.components}

    def _path(self, one: Operation) -> dict[str, Any]:
        shared = [{"$ref": "#/components/parameters/Language"}] if one.speaks else []
        parameters = shared + [self._parameter(part) for part in one.parts]
        return {"parameters": parameters} if parameters else {}

    def _operation(self, one: Operation, *, anonymous: bool) -> dict[str, Any]:
        shown: dict[str, Any] = {"operationId": one.name, "tags": [one.tag], "summary": one.summary}
        if one.description:
            shown["description"] = one.description
        if anonymous or one.token_optional:
            shown["security"] = [] if anonymous else [{"token": []}, {}]
        if one.parameters:
            shown["parameters"] = [self._parameter(parameter) for parameter in one.parameters]
        if one.body is not None:
            schema = self._schema(one.body.model, sent=True)
            shown["requestBody"] = {
                "required": True,
                "content": {
                    "application/json": {"schema": schema},
                    "application/x-www-form-urlencoded": {
                        "schema": schema if one.body.form is None else one.body.form
                    },
                },
            }
        answers = {status: self._answer(answer) for status, answer in one.answers.items()}
        refusals = {
            status: self._refusal(refusal)
            for status, refusal in one.all_refusals(anonymous=anonymous).items()
        }
        shown["responses"] = {
            str(status): answer for status, answer in sorted({**refusals, **answers}.items())
        }
        return shown

    def _parameter(self, parameter: Parameter) -> dict[str, Any]:
        schema = self._schema(parameter.model)
        if parameter.default is not None:
            schema["default"] = parameter.default
        shown = {
            "name": parameter.name,
            "in": parameter.place,
            **({"required": True} if parameter.place == "path" else {}),
            "description": parameter.description,
            "schema": schema,
        }
        return self._once("parameters", parameter.shared, shown)

    def _answer(self, answer: Answer) -> dict[str, Any]:
        content = {kind: {"schema": schema} if schema else {} for kind, schema in answer.others.items()}
        if answer.model is not None:
            content = {"application/json": {"schema": self._schema(answer.model)}, **content}
        return self._described(answer.description, answer.headers, content)

    def _refusal(self, refusal: DocumentedRefusal) -> dict[str, Any]:
        codes = list(refusal.codes)
        schema = {
            **self._schema(models.Error),
            "properties": {"code": {"enum": codes} if len(codes) > 1 else {"const": codes[0]}},
            **({"required": ["errors"]} if codes == ["InvalidParametersError"] else {}),
        }
        content = {"application/json": {"schema": schema}}
        shown = self._described(refusal.description, refusal.headers, content)
        return self._once("responses", refusal.shared, shown)

    def _described(
        self, description: str, headers: Mapping[str, Header], content: Mapping[str, Any]
    ) -> dict[str, Any]:
        shown: dict[str, Any] = {"description": description}
        if headers:
            shown["headers"] = {name: self._header(header) for name, header in headers.items()}
        return {**shown, **({"content": content} if content else {})}

    def _header(self, header: Header) -> dict[str, Any]:
        required = {"required": True} if header.required else {}
        shown = {"description": header.description, **required, "schema": header.schema}
        return self._once("headers", header.shared, shown)

    def _schema(self, model: Model, *, sent: bool = False) -> dict[str, Any]:
        if isinstance(model, Mapping):
            return dict(model)
        [schema], named = schemas_of([model])
        self.components["schemas"].update(named)
        if sent:
            self._sent |= named.keys()
        return schema

    def _once(self, kind: str, name: str, shown: dict[str, Any]) -> dict[str, Any]:
        """Put what many have alike into one place, and refer to it."""
        if not name:
            return shown
        self.components[kind][name] = shown
        return {"$ref": f"#/components/{kind}/{name}"}


def _models(hint: Any) -> Iterator[type]:
    """Return the models that a type is made of."""
    if is_typeddict(hint):
        yield hint
    for part in get_type_hints(hint, include_extras=True).values() if is_typeddict(hint) else get_args(hint):
        yield from _models(part)


def _literals(hint: Any) -> Iterator[tuple[Any, ...]]:
    if get_origin(hint) is Literal:
        yield get_args(hint)
    for part in get_args(hint):
        yield from _literals(part)


def _in_order(schema: Any, orders: Mapping[frozenset[Any], list[Any]]) -> Any:
    """Copy a schema, with the values of each choice in the order in which they are declared."""
    if isinstance(schema, Mapping):
        if "prefixItems" in schema:
            # not every program that reads OpenAPI knows that word
            schema = {**schema, "items": {"anyOf": schema["prefixItems"]}}
            del schema["prefixItems"]
        return {
            key: orders.get(frozenset(value), value) if key == "enum" else _in_order(value, orders)
            for key, value in schema.items()
        }
    return [_in_order(item, orders) for item in schema] if isinstance(schema, list) else schema


def _moved(schema: Any) -> Any:
    """Copy the job schema, with its references as they are from within the document."""
    if isinstance(schema, Mapping):
        return {
            key: f"{_SCHEMAS}Job/{value.removeprefix('#/')}" if key == "$ref" else _moved(value)
            for key, value in schema.items()
            # both say which document a reference is relative to, and here that is this one
            if key not in ("$schema", "$id")
        }
    return [_moved(item) for item in schema] if isinstance(schema, list) else schema
