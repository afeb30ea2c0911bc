"""The base of the API's handlers: the service, who asks, the query string, pages of a list."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from tornado.httputil import HTTPServerRequest

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.principal import AnonymousReader, Principal
from pai_scheduler.rate_limit import GuessThrottle
from pai_scheduler.rest.errors import RequestError, forbidden, invalid_parameters
from pai_scheduler.rest.models import SshGateway
from pai_scheduler.service.service import Service

from .answering import AnsweringHandler
from .auth import Authenticator, MonitoringToken, bearer_token, unauthorized
from .http_server import scheme
from .limits import Streams, TransferLimit
from .operations import LARGEST_PAGE, operations_of
from .presenter import Presenter
from .webhdfs.redirect_tickets import RedirectTickets

# What the handlers of the API stand on: the service, who asks, and what the query string says.


@dataclass(frozen=True, slots=True)
class HandlerContext:
    """Context of the handlers. `prefix`: the path under which we are reached, a slash at both ends.

    `monitoring_token` opens what Prometheus reads, without being anybody's. `openpai_compat`: clients of
    OpenPAI find what they knew where it was, and read it without a token. `console_url`: as of `Presenter`.
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
    console_url: str = ""

    def peer(self, request: HTTPServerRequest) -> str:
        """Return the address of who asks; behind the Hub's proxy what that says, and nobody else."""
        forwarded = ""
        if self.prefix != "/":
            forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        return forwarded or str(request.remote_ip)

    async def holder_of(self, token: str, peer: str) -> Principal:
        """Return whose token this is; refuses nobody's, and slows down who guesses (at address `peer`)."""
        principal = await self.throttle.check(peer, "", token, lambda: self.authenticator.identify(token))
        if principal is None:
            raise unauthorized(msg("This token is not known, or has expired. Ask for a new one."))
        return principal


class ApiHandler(AnsweringHandler):
    """One address of the API. Every call needs a token unless the class says `anonymous`."""

    #: True: answers without a token (job-contract.md, section 4, names which).
    anonymous = False
    #: True: OpenPAI let anybody read it, and so do we for its clients' sake where we are told to.
    public_in_openpai = False

    def initialize(self, context: HandlerContext) -> None:
        """Take what tornado hands to each new handler."""
        self.context = context

    @property
    def service(self) -> Service:
        """Return the scheduler."""
        return self.context.service

    @cached_property
    def presenter(self) -> Presenter:
        """Return what turns the scheduler's objects into this caller's JSON."""
        return Presenter(self.language, self.api_url, self.context.console_url)

    @property
    def api_url(self) -> str:
        """Return the address of the API as the caller sees it."""
        return f"{scheme(self.request)}://{self.request.host}{self.context.prefix}api/v1"

    @property
    def peer(self) -> str:
        """Return the address of who asks."""
        return self.context.peer(self.request)

    def count(self, status: int, seconds: float | None) -> None:
        """Count an answer, and how long it took; None: that is its reader's business."""
        self.service.monitor.answered(type(self).__name__, status, seconds)

    async def prepare(self) -> None:
        """Find out who asks; refuse a wrong method only then."""
        if self._is_old_client():
            self.identified = AnonymousReader()
        elif not self.anonymous:
            self.identified = await self.identify()
        if self.request.method not in self.allowed_methods():
            raise self._wrong_method()

    async def identify(self) -> Principal:
        """Find out who asks; refuses who cannot be known."""
        token = bearer_token(self.request.headers.get("Authorization", ""))
        return await self.context.holder_of(token, self.peer)

    async def asked_user(self, name: str, forbidden_text: Message) -> Principal:
        """Find the user whom a call is about: oneself, or as admin anybody; refuses others, and nobody."""
        if name == self.principal.name:
            return self.principal
        if not self.principal.admin:
            raise forbidden(forbidden_text)
        user = await self.context.authenticator.find(name)
        if user is None:
            raise no_user(name)
        return user

    def _is_old_client(self) -> bool:
        """Return whether a client of OpenPAI reads without a token, and may."""
        return (
            self.context.openpai_compat
            and self.public_in_openpai
            and self.request.method == "GET"
            and "Authorization" not in self.request.headers
        )

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

    def query_flag(self, name: str, *, default: bool = False) -> bool:
        """Read a yes or no of the query string (`1`, `true`, `0`, `false`); absent: `default`."""
        text = (self.query_text(name) or str(int(default))).lower()
        if text not in ("0", "1", "true", "false"):
            raise bad_query(name, msg("{text} is neither 0 nor 1.", text=text))
        return text in ("1", "true")


class UnknownPath(ApiHandler):
    """Every address that there is not."""

    anonymous = True

    async def prepare(self) -> None:
        """Refuse."""
        raise RequestError(404, "NoApiError", msg("There is no {path} here.", path=self.request.path))


def no_user(name: str) -> RequestError:
    """Return that nobody has this name."""
    return RequestError(400, "NoUserError", msg("User {name} is not known.", name=name))


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


# Pages of a list: how many entries, after which one, and the link to the next page.
#
# A cursor is the position of the last entry that was shown, so that a page is found without counting, and
# nothing is shown twice or left out while other entries come and go.

Position = TypeVar("Position")

#: What a database takes as a whole number.
_LARGEST_NUMBER = 2**63


@dataclass(frozen=True, slots=True)
class PageRequest(Generic[Position]):
    """Requested page of a list: `limit` entries (None: all) after a position (None: from the start)."""

    limit: int | None
    after: Position | None


def asked_page(handler: ApiHandler, read: Callable[[Any], Position]) -> PageRequest[Position]:
    """Read `limit` and `after`; `read` makes a position of a cursor's JSON value, or raises ValueError."""
    limit = handler.query_int("limit", least=1)
    if limit is not None and limit > LARGEST_PAGE:
        raise bad_query(
            "limit", msg("{value} is too large: at most {most} a page.", value=limit, most=LARGEST_PAGE)
        )
    text = handler.query_text("after")
    if not text:
        return PageRequest(limit, None)
    try:
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        return PageRequest(limit, read(json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))))
    except (ValueError, RecursionError):
        raise bad_query(
            "after",
            msg("this is no cursor of this list. Take it from the Link header of the page before."),
        ) from None


def link_to_next(request: HTTPServerRequest, position: Any) -> str:
    """Return the Link header of a page that ends at `position`, which is anything that JSON can hold."""
    text = json.dumps(position, separators=(",", ":")).encode()
    cursor = base64.urlsafe_b64encode(text).decode("ascii").rstrip("=")
    asked = [(name, value) for name, value in parse_qsl(request.query) if name != "after"]
    path = quote(request.path, safe="/%~:@!$&'()*+,=")
    query = urlencode([*asked, ("after", cursor)])
    return f'<{scheme(request)}://{request.host}{path}?{query}>; rel="next"'


def whole_number(value: Any) -> int:
    """Return a whole number that a database can hold; ValueError for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= _LARGEST_NUMBER:
        raise ValueError(value)
    return value


def word(value: Any) -> str:
    """Return a text that a database can hold; ValueError for anything else."""
    if not isinstance(value, str) or "\0" in value:
        raise ValueError(value)
    value.encode()  # half a surrogate pair is no text
    return value
