"""Answers and refusals: headers, language, JSON, the log of our own failures."""

from __future__ import annotations

import json
import logging
import secrets
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from types import TracebackType
from typing import Any

from tornado.http1connection import HTTP1Connection
from tornado.web import Finish, HTTPError, RequestHandler

from pai_scheduler.i18n import Message, choose_locale, msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, invalid_parameters
from pai_scheduler.rest.models import Error

_log = logging.getLogger(__name__)
_access_log = logging.getLogger("pai_scheduler.access")

#: (`json.dumps` makes one for each value)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_METHODS = ("GET", "POST", "PUT", "DELETE")


class AnsweringHandler(RequestHandler):
    """A handler that answers in JSON, in the language of the request."""

    #: False: how long an answer takes is its reader's business.
    timed = True
    #: How one may say who one is.
    challenge = 'Bearer realm="PAI"'
    #: who asks, once that is known; None where nobody has to say it
    identified: Principal | None = None

    @property
    def principal(self) -> Principal:
        """Return who asks; for handlers that nobody reaches without a token."""
        if self.identified is None:
            raise RuntimeError("nobody has said who asks")
        return self.identified

    @cached_property
    def language(self) -> str:
        """Return the locale in which the caller wants to read ("en", "zh_CN")."""
        return choose_locale(self.request.headers.get("Accept-Language", ""))

    def set_default_headers(self) -> None:
        """Set what every answer carries: nothing here may be kept by a cache or guessed to be HTML."""
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    @abstractmethod
    def count(self, status: int, seconds: float | None) -> None:
        """Count an answer, and how long it took; None: that is its reader's business."""

    @classmethod
    @cache
    def allowed_methods(cls) -> Sequence[str]:
        """List the methods that this address has."""
        return tuple(
            method
            for method in _METHODS
            if getattr(cls, method.lower()) is not getattr(RequestHandler, method.lower())
        )

    def answer(self, body: Any, status: int = 200) -> None:
        """Finish with JSON."""
        self.set_status(status)
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        self.finish(to_json(body))

    def in_words(self, message: Message | None) -> str:
        """Put a message into the caller's language; empty where there is none."""
        return message.in_locale(self.language) if message is not None else ""

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write a refusal, or that we failed, as the contract's `{"code", "message"}`."""
        error = (kwargs.get("exc_info") or (None, None, None))[1]
        refusal = error if isinstance(error, RequestError) else self._translate_error(status_code, error)
        if refusal.status == 401:
            self.set_header("WWW-Authenticate", self.challenge)
        elif refusal.status == 405:
            self.set_header("Allow", ", ".join(self.allowed_methods()))
        self.answer(self.error_body(refusal), refusal.status)

    def error_body(self, refusal: RequestError) -> Mapping[str, object]:
        """Return the JSON of a refusal."""
        body: Error = {"code": refusal.code, "message": self.in_words(refusal.message)}
        if refusal.code == "InvalidParametersError":
            body["errors"] = [
                {"path": error.path, "message": self.in_words(error.message)} for error in refusal.errors
            ]
        return body

    def log_exception(
        self, typ: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Log our own failures, with a number that the caller is told; a refusal is the caller's business."""
        if isinstance(value, RequestError | HTTPError | Finish):
            return
        self._incident = secrets.token_hex(4)
        _log.error(
            "%s %s failed (%s)",
            self.request.method,
            self.request.path,
            self._incident,
            exc_info=(typ, value, tb),  # type: ignore[arg-type]
            extra={"user": self.identified.name if self.identified else None},
        )

    def send_error(self, status_code: int = 500, **kwargs: Any) -> None:
        """Answer with an error; break off an answer that has begun, so that nobody takes it for whole."""
        if not self._headers_written:
            super().send_error(status_code, **kwargs)
        elif isinstance(self.request.connection, HTTP1Connection):
            self.request.connection.close()

    def _wrong_method(self) -> RequestError:
        message = msg(
            "{method} is not possible here, only {allowed}.",
            method=self.request.method,
            allowed=", ".join(self.allowed_methods()),
        )
        return RequestError(405, "MethodNotAllowedError", message)

    def _translate_error(self, status: int, error: BaseException | None) -> RequestError:
        if isinstance(error, HTTPError) and error.status_code == 405:
            return self._wrong_method()  # TRACE and the like, refused before `prepare`
        if isinstance(error, HTTPError) and 400 <= error.status_code < 500:
            # tornado's own: a path or query that is not UTF-8, an unreadable form
            return invalid_parameters(
                msg("The request cannot be read: {reason}", reason=error.log_message or status)
            )
        return failure(getattr(self, "_incident", "-"))


def failure(incident: str) -> RequestError:
    """Return what is said where we failed ourselves; `incident` is what the log has it under."""
    return RequestError(
        500,
        "UnknownError",
        msg(
            "The scheduler failed at this; its log says why, under {incident}. Nothing else is affected.",
            incident=incident,
        ),
    )


def to_json(value: Any) -> bytes:
    """Write a value as the API's JSON."""
    return _ENCODER.encode(value).encode("utf-8", "surrogatepass")


def log_request(handler: RequestHandler) -> None:
    """Log what went wrong loudly, what was refused quietly, what worked only on request; count it all."""
    status, took, principal = handler.get_status(), handler.request.request_time(), None
    if isinstance(handler, AnsweringHandler):
        handler.count(status, took if handler.timed else None)
        principal = handler.identified
    level = logging.DEBUG if status < 400 else logging.INFO if status < 500 else logging.ERROR
    if not _access_log.isEnabledFor(level):
        return
    request = handler.request
    about = {
        "method": request.method,
        "path": request.path,
        "status": status,
        "ms": round(1000 * took, 1),
        "user": principal.name if principal else None,
    }
    _access_log.log(level, "request", extra=about)
