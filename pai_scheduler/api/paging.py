"""Pages of a list: how many entries, after which one, and the link to the next page.

A cursor is the position of the last entry that was shown, so that a page is found without counting, and
nothing is shown twice or left out while other entries come and go.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

from tornado.httputil import HTTPServerRequest

from pai_scheduler.i18n import msg

from .base_handlers import ApiHandler, bad_query
from .operations import LARGEST_PAGE
from .server import scheme

Position = TypeVar("Position")

#: What a database takes as a whole number.
_LARGEST_NUMBER = 2**63


@dataclass(frozen=True, slots=True)
class PageRequest(Generic[Position]):
    """What a caller wants of a list: `limit` entries (None: all) after a position (None: from the start)."""

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
