"""What every handler stands on: who asks, in which language, and how an answer or a refusal is written."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any

from tornado.http1connection import HTTP1Connection
from tornado.web import Finish, HTTPError, RequestHandler

from pai_scheduler.job.messages import Message, choose_locale, msg
from pai_scheduler.job.validate import SpecError
from pai_scheduler.rest.errors import RequestError, invalid_parameters
from pai_scheduler.rest.models import SshGateway
from pai_scheduler.security.throttle import GuessThrottle
from pai_scheduler.service.service import Principal, Service

from .auth import Authenticator, MonitoringToken, bearer_token, unauthorized
from .operations import operations_of
from .present import Presenter
from .streams import Streams
from .transfers import TransferLimit
from .webhdfs.redirect_tickets import RedirectTickets

_log = logging.getLogger(__name__)

_METHODS = ("GET", "POST", "PUT", "DELETE")


#: Who reads without a token where that is allowed: all jobs, as OpenPAI showed them.
_ANYBODY = Principal("", admin=True)


@dataclass(frozen=True, slots=True)
class HandlerContext:
    """What the handlers work with. `prefix`: the path under which we are reached, a slash at both ends.

    `monitoring_token` opens what Prometheus reads, without being anybody's. `openpai_compat`: clients of
    OpenPAI find what they knew where it was, and read it without a token.
    """

    service: Service
    authenticator: Authenticator
    prefix: str = "/"
    monitoring_token: MonitoringToken | None = None
    streams: Streams = field(default_factory=Streams)
    openpai_compat: bool = False
    #: the SSH gateway; None: there is none
    ssh: SshGateway | None = None
    transfers: TransferLimit = field(default_factory=TransferLimit)
    tickets: RedirectTickets = field(default_factory=RedirectTickets)
    throttle: GuessThrottle = field(default_factory=GuessThrottle)


class ApiHandler(RequestHandler):
    """One address of the API. Every call needs a token unless the class says `anonymous`."""

    #: True: answers without a token (job-contract.md, section 4, names which).
    anonymous = False
    #: True: OpenPAI let anybody read it, and so do we for its clients' sake where we are told to.
    public_in_openpai = False
    #: False: how long an answer takes is its reader's business.
    timed = True
    #: How one may say who one is.
    challenge = 'Bearer realm="PAI"'
    #: who asks, once that is known; None where nobody has to say it
    identified: Principal | None = None

    def initialize(self, context: HandlerContext) -> None:
        """Take what tornado hands to each new handler."""
        self.context = context

    @property
    def service(self) -> Service:
        """Return the scheduler."""
        return self.context.service

    @cached_property
    def language(self) -> str:
        """Return the locale in which the caller wants to read ("en", "zh_CN")."""
        return choose_locale(self.request.headers.get("Accept-Language", ""))

    @cached_property
    def presenter(self) -> Presenter:
        """Return what turns the scheduler's objects into this caller's JSON."""
        return Presenter(self.language, self.api_url)

    @property
    def api_url(self) -> str:
        """Return the address of the API as the caller sees it."""
        return f"{self.request.protocol}://{self.request.host}{self.context.prefix}api/v1"

    @property
    def peer(self) -> str:
        """Return the address of who asks; behind the Hub's proxy what that says, and nobody else."""
        connection = self.request.connection
        if self.context.prefix != "/":
            forwarded = self.request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
            return forwarded or str(self.request.remote_ip)
        if isinstance(connection, HTTP1Connection) and (transport := connection.context) is not None:
            return str(getattr(transport, "address", (self.request.remote_ip,))[0])
        return str(self.request.remote_ip)

    def set_default_headers(self) -> None:
        """Set what every answer carries: nothing here may be kept by a cache or guessed to be HTML."""
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    async def prepare(self) -> None:
        """Refuse a wrong method, then find out who asks."""
        if self.request.method not in self.allowed_methods():
            raise self._wrong_method()
        if self._is_old_client():
            self.identified = _ANYBODY
        elif not self.anonymous:
            self.identified = await self.identify()

    @property
    def principal(self) -> Principal:
        """Return who asks; for handlers that nobody reaches without a token."""
        if self.identified is None:
            raise RuntimeError("nobody has said who asks")
        return self.identified

    async def identify(self) -> Principal:
        """Find out who asks; refuses who cannot be known."""
        return await self.identify_token(bearer_token(self.request.headers.get("Authorization", "")))

    async def identify_token(self, token: str) -> Principal:
        """Find out whose token this is; refuses nobody's."""
        principal = await self.context.throttle.check(
            self.peer, "", token, lambda: self.context.authenticator.identify(token)
        )
        if principal is None:
            raise unauthorized(msg("This token is not known, or has expired. Ask for a new one."))
        return principal

    def _is_old_client(self) -> bool:
        """Return whether a client of OpenPAI reads without a token, and may."""
        return (
            self.context.openpai_compat
            and self.public_in_openpai
            and self.request.method == "GET"
            and "Authorization" not in self.request.headers
        )

    @classmethod
    def allowed_methods(cls) -> Sequence[str]:
        """List the methods that this address has."""
        return [
            method
            for method in _METHODS
            if getattr(cls, method.lower()) is not getattr(RequestHandler, method.lower())
        ]

    def answer(self, body: Any, status: int = 200) -> None:
        """Finish with JSON."""
        self.set_status(status)
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        self.finish(to_json(body))

    def in_words(self, message: Message | None) -> str:
        """Put a message into the caller's language; empty where there is none."""
        return message.in_locale(self.language) if message is not None else ""

    def query_text(self, name: str) -> str | None:
        """Read a parameter of the query string; refuses one that is there twice. None: it is not there."""
        values = self.get_query_arguments(name)
        if len(values) > 1:
            raise bad_query(name, msg("{key} is there twice.", key=name))
        return values[0] if values else None

    def query_int(self, name: str, default: int | None = None, *, least: int | None = None) -> int | None:
        """Read a whole number of the query string; refuses anything else."""
        text = self.query_text(name)
        if not text:
            return default
        try:
            value = int(text)
        except ValueError:
            raise bad_query(name, msg("{text} is not a whole number.", text=text)) from None
        if least is not None and value < least:
            raise bad_query(name, msg("{value} is too small: at least {least}.", value=value, least=least))
        return value

    def query_flag(self, name: str) -> bool:
        """Read a yes or no of the query string (`1`, `true`, `0`, `false`); absent: no."""
        text = (self.query_text(name) or "0").lower()
        if text not in ("0", "1", "true", "false"):
            raise bad_query(name, msg("{text} is neither 0 nor 1.", text=text))
        return text in ("1", "true")

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Write a refusal, or that we failed, as the contract's `{"code", "message"}`."""
        error = (kwargs.get("exc_info") or (None, None, None))[1]
        refusal = error if isinstance(error, RequestError) else self._translate_error(status_code, error)
        if refusal.status == 401:
            self.set_header("WWW-Authenticate", self.challenge)
        elif refusal.status == 405:
            self.set_header("Allow", ", ".join(self.allowed_methods()))
        self.answer(self.error_body(refusal), refusal.status)

    def error_body(self, refusal: RequestError) -> dict[str, Any]:
        """Return the JSON of a refusal."""
        body: dict[str, Any] = {"code": refusal.code, "message": self.in_words(refusal.message)}
        if refusal.code == "InvalidParametersError":
            body["errors"] = self.presenter.errors(refusal.errors)
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
        incident = getattr(self, "_incident", "-")
        return RequestError(
            500,
            "UnknownError",
            msg(
                "The scheduler failed at this; its log says why, under {incident}. Nothing else is affected.",
                incident=incident,
            ),
        )


class UnknownPath(ApiHandler):
    """Every address that there is not."""

    anonymous = True

    async def prepare(self) -> None:
        """Refuse."""
        raise RequestError(404, "NoApiError", msg("There is no {path} here.", path=self.request.path))


def to_json(value: Any) -> bytes:
    """Write a value as the API's JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def bad_query(name: str, message: Message) -> RequestError:
    """Return what is wrong with a parameter of the query string."""
    return invalid_parameters(
        msg("The query parameter {name} is wrong: {reason}", name=name, reason=message),
        [SpecError(name, message)],
    )


Route = tuple[str, type[ApiHandler]]


def routes(*handlers: type[ApiHandler]) -> list[Route]:
    """List the addresses of handlers, as their methods declare them."""
    return list(
        dict.fromkeys((one.pattern, handler) for handler in handlers for one in operations_of(handler))
    )
