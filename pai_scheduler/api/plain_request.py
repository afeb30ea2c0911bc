"""Reads the head of a plain HTTP request strictly: what is unusual in any way is left to tornado.

A request is plain where its head is whole, says HTTP/1.1 and the length of its body, is printable ASCII
without folded lines, and holds nothing that asks for more than to read a body and answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

#: Bytes of the largest head that is plain.
_LONGEST_HEAD = 16 * 1024
_END = b"\r\n\r\n"
#: the headers that are kept, as they are asked for
_KEPT = {
    name.lower(): name
    for name in (
        *("Host", "Content-Length", "Content-Type", "Authorization", "Accept-Language", "Connection"),
        "X-Forwarded-For",
    )
}
#: these change what the request means, or what is known of who sends it
_UNUSUAL = frozenset(
    (
        *("transfer-encoding", "content-encoding", "expect", "upgrade", "te", "trailer"),
        *("x-real-ip", "x-scheme", "x-http-method-override"),
    )
)
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_HOST = re.compile(r"[A-Za-z0-9._-]+(:[0-9]{1,5})?")
_LENGTH = re.compile(r"[0-9]{1,7}")


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a plain request: headers by the names of `_KEPT`; both sizes are bytes."""

    path: str
    headers: dict[str, str]
    size: int
    body_size: int
    keeps_open: bool


class Unusual:
    """Stands for the head of a request that is not plain."""


UNUSUAL: Final = Unusual()


def read_head(begun: bytes | bytearray) -> Head | Unusual:
    """Read the head of a request that has begun with these bytes: `METHOD PATH HTTP/1.1` is in them."""
    end = begun.find(_END, 0, _LONGEST_HEAD)
    if end < 0:
        return UNUSUAL
    try:
        start, *lines = begun[:end].decode("ascii").split("\r\n")
    except UnicodeDecodeError:
        return UNUSUAL
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        low = name.lower()
        if not colon or low in _UNUSUAL or not value.isprintable() or _NAME.fullmatch(name) is None:
            return UNUSUAL
        if (kept := _KEPT.get(low)) is not None:
            if kept in headers:
                return UNUSUAL
            headers[kept] = value.strip()
    length, connection = headers.get("Content-Length", ""), headers.get("Connection", "keep-alive").lower()
    if (
        _LENGTH.fullmatch(length) is None
        or _HOST.fullmatch(headers.get("Host", "")) is None
        or connection not in ("keep-alive", "close")
    ):
        return UNUSUAL
    return Head(start.split(" ")[1], headers, end + len(_END), int(length), connection == "keep-alive")
