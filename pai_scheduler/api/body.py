"""Request bodies: JSON or JSONC, and url-encoded forms with nested keys, as old clients send them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from tornado.httputil import HTTPServerRequest

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.json_path import path_text, quoted
from pai_scheduler.job.json_text import LONGEST_JSONC, JsonTextError, loads_json, loads_jsonc
from pai_scheduler.job.schema import job_schema, resolve
from pai_scheduler.job.validation import InvalidJobError, SpecError
from pai_scheduler.rest.errors import RequestError, invalid_parameters
from pai_scheduler.rest.models import LONGEST_REASON
from pai_scheduler.store.records import SubmittedText

#: What a text with comments is called, whatever it was sent as: JSONC has no media type of its own
_JSON = "application/json"


def read_body(request: HTTPServerRequest) -> Any:
    """Return the body's JSON value; refuse what cannot be read, naming line and column.

    Comments and trailing commas are accepted: people send their files as they are.
    """
    return _read(request)[0]


def read_job(request: HTTPServerRequest) -> tuple[dict[str, Any], SubmittedText | None]:
    """Return the body's job, and its text where there are comments or trailing commas in it."""
    body, text = _read(request)
    return _as_object(body), text


def _read(request: HTTPServerRequest) -> tuple[Any, SubmittedText | None]:
    encoding = request.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        message = msg("A body in the encoding {encoding} is not read; send it plain.", encoding=encoding)
        raise RequestError(415, "UnsupportedMediaTypeError", message)
    try:
        text = request.body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(
            msg("The body is not UTF-8 text (byte {position}).", position=error.start)
        ) from None
    if not text.strip():
        raise _unreadable(msg("The body is empty; it must be JSON."))
    # curl -d says "form" of whatever it sends
    if _media_type(request) == "application/x-www-form-urlencoded" and not text.lstrip().startswith(
        ("{", "[", "/")
    ):
        try:
            return loads_urlencoded(text), None
        except InvalidJobError as error:
            raise invalid_parameters(msg("The form cannot be read."), error.errors) from None
    try:
        try:
            return loads_json(text), None
        except JsonTextError:
            if len(text) > LONGEST_JSONC:
                raise
            return loads_jsonc(text), SubmittedText(text, _JSON)
    except JsonTextError as error:
        message = msg(
            "The body is not JSON. Line {line}, column {column}: {reason}",
            line=error.line,
            column=error.column,
            reason=error.message,
        )
        raise _unreadable(message) from None


def read_object(request: HTTPServerRequest) -> dict[str, Any]:
    """Return the body's JSON object; refuses any other value."""
    return _as_object(read_body(request))


def _as_object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise _unreadable(msg("The body must be a JSON object: {example}.", example='{"name": "value"}'))
    return body


def read_fields(request: HTTPServerRequest, *names: str) -> dict[str, Any]:
    """Return the body's JSON object, in which these are texts; refuses any other."""
    body = read_object(request)
    for name in names:
        if not isinstance(body.get(name), str):
            raise missing(name)
    return body


def missing(name: str) -> RequestError:
    """Return the refusal of a body that lacks a field."""
    message = msg("{key} is missing.", key=name)
    return invalid_parameters(message, [SpecError(f"$.{name}", message)])


def _unreadable(message: Message) -> RequestError:
    return invalid_parameters(message, [SpecError("$", message)])


def _media_type(request: HTTPServerRequest) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


def read_reason(given: Any) -> str:
    """Read why somebody does something, as one line."""
    if isinstance(given, str) and len(given) <= LONGEST_REASON:
        return " ".join(given.split())
    message = msg("reason must be a text of at most {most} characters.", most=LONGEST_REASON)
    raise invalid_parameters(message, [SpecError("$.reason", message)])


# Reads a job from a url-encoded body with nested keys: `taskRoles[0][cpuNumber]=1`, as jQuery writes it.
#
# Everything is text there: numbers are typed by the job schema, null is the empty text where the schema
# allows null, and empty objects and lists are not there at all.

#: Fields of a body at most.
MAX_FIELDS = 100_000
_MAX_DEPTH = 32
_KEY = re.compile(r"(?P<first>[^\[\]]+)(?P<rest>(?:\[[^\[\]]*\])*)")
_PART = re.compile(r"\[([^\[\]]*)\]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")

_Tree = dict[str, Any]


def loads_urlencoded(body: str) -> dict[str, Any]:
    """Read a job JSON from a url-encoded body; InvalidJobError where its keys make no sense.

    What comes back is to be validated like any other job JSON.
    """
    try:
        pairs = parse_qsl(
            body, keep_blank_values=True, strict_parsing=False, errors="strict", max_num_fields=MAX_FIELDS
        )
    except UnicodeDecodeError:
        raise _invalid("$", msg("The body is not valid UTF-8.")) from None
    except ValueError:
        raise _invalid("$", msg("The body has more than {limit} fields.", limit=MAX_FIELDS)) from None
    tree: _Tree = {}
    for key, value in pairs:
        _put(tree, key, value)
    job: dict[str, Any] = _typed_form_value(tree, job_schema())
    return job


def _put(tree: _Tree, key: str, value: str) -> None:
    match = _KEY.fullmatch(key)
    parts = [match["first"], *_PART.findall(match["rest"])] if match else []
    if not 0 < len(parts) <= _MAX_DEPTH:
        raise _invalid("$", msg("{key} is no field such as taskRoles[0][name].", key=quoted(key)))
    for position, part in enumerate(parts):
        # "list[]=a&list[]=b": each one is the next entry
        part = part or str(len(tree))
        if position == len(parts) - 1:
            if part in tree:
                raise _invalid(path_text(parts), msg("{key} is there twice.", key=quoted(key)))
            tree[part] = value
            return
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise _invalid(path_text(parts), msg("{key} is both a value and an object.", key=quoted(key)))


def _typed_form_value(value: Any, schema: Mapping[str, Any]) -> Any:
    schema = resolve(schema)
    wanted = schema.get("type")
    if isinstance(value, str):
        return _typed_text(value, (wanted,) if isinstance(wanted, str) else wanted or ())
    if _is_list(value) if wanted is None else wanted == "array":
        return _list(value, schema.get("items", {}))
    fields, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
    return {name: _typed_form_value(item, fields.get(name, others)) for name, item in value.items()}


def _typed_text(text: str, types: tuple[str, ...]) -> Any:
    if "integer" in types:
        if text == "" and "null" in types:
            return None
        if _INTEGER.fullmatch(text):
            return int(text)
    return text


def _is_list(tree: _Tree) -> bool:
    """Return whether keys are the numbers of a list; only asked where the schema does not say."""
    return all(key == str(number) for number, key in enumerate(tree))


def _list(tree: _Tree, items: Mapping[str, Any]) -> Any:
    """Make a list in the order of the indices; without any, validation will say that it is no list."""
    if not all(key.isdecimal() and key.isascii() and len(key) < 10 for key in tree):
        return tree
    return [_typed_form_value(tree[key], items) for key in sorted(tree, key=int)]


def _invalid(path: str, message: Message) -> InvalidJobError:
    return InvalidJobError([SpecError(path, message)])
