"""Request bodies: JSON or JSONC, and url-encoded forms with nested keys, as old clients send them."""

from __future__ import annotations

from typing import Any

from tornado.httputil import HTTPServerRequest

from pai_scheduler.job.jsontext import JsonTextError, loads_json, loads_jsonc
from pai_scheduler.job.messages import Message, msg
from pai_scheduler.job.parse import InvalidJobError
from pai_scheduler.job.urlencoded import loads_urlencoded
from pai_scheduler.job.validate import SpecError
from pai_scheduler.rest.errors import RequestError, invalid_parameters
from pai_scheduler.rest.models import LONGEST_REASON

#: Characters of the longest text that may have comments: reading them takes long, and nobody writes more.
_LONGEST_JSONC = 256 * 1024


def read_body(request: HTTPServerRequest) -> Any:
    """Return the body's JSON value; refuse what cannot be read, naming line and column.

    Comments and trailing commas are accepted: people send their files as they are.
    """
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
            return loads_urlencoded(text)
        except InvalidJobError as error:
            raise invalid_parameters(msg("The form cannot be read."), error.errors) from None
    try:
        return (loads_jsonc if len(text) <= _LONGEST_JSONC else loads_json)(text)
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
    body = read_body(request)
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
