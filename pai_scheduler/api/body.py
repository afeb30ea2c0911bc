"""Request bodies: JSON or JSONC, and url-encoded forms with nested keys, as old clients send them."""

from __future__ import annotations

from typing import Any

from tornado.httputil import HTTPServerRequest

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.json_text import LONGEST_JSONC, JsonTextError, loads_json, loads_jsonc
from pai_scheduler.job.parse import InvalidJobError, loads_urlencoded
from pai_scheduler.job.validation import SpecError
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
