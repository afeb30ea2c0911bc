"""Rewriting of addresses in what an application's port answers, so that they lead back to it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# What changes between a browser and an application in a task, which is under a prefix and need not know.
#
# It sees a browser on its own machine, at `http://localhost:<port>`. It gets nothing by which the notebook
# server or the Hub know their users. What it says of its own addresses is put under the prefix; that is
# done here for headers, and further down for pages.

Headers = list[tuple[str, str]]

#: The second name of the application's own `_xsrf` cookie, by which it is told from the notebook server's.
XSRF_TWIN = "pai-port-xsrf"
_XSRF = "_xsrf"
#: Cookies of the Hub and of this proxy; those of notebook servers are told by their whole names.
_FOREIGN_COOKIES = ("jupyterhub-", "jupyter-hub-", "__host-jupyterhub", "__secure-jupyterhub", "pai-")
_SERVERS_COOKIE = "username-"

_HOP_BY_HOP = frozenset(
    [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ]
)
_NOT_ASKED = _HOP_BY_HOP | frozenset(
    [
        "host",
        "authorization",
        "cookie",
        "origin",
        "referer",
        "expect",
        "sec-websocket-accept",
        "sec-websocket-extensions",
        "sec-websocket-key",
        "sec-websocket-protocol",
        "sec-websocket-version",
        "forwarded",
        "x-real-ip",
        "x-scheme",
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-port",
        "x-forwarded-proto",
        "x-forwarded-prefix",
        "x-forwarded-server",
        "x-forwarded-context",
        "x-proxycontextpath",
        "x-script-name",
        "content-length",
    ]
)
#: What an application may not say of the whole origin, which is not its own, and what is written anew.
_NOT_ANSWERED = _HOP_BY_HOP | frozenset(
    [
        "clear-site-data",
        "strict-transport-security",
        "public-key-pins",
        "alt-svc",
        "set-cookie",
        "location",
        "content-location",
        "refresh",
        "service-worker-allowed",
        "access-control-allow-origin",
        "access-control-allow-credentials",
    ]
)


@dataclass(frozen=True, slots=True)
class PortPrefix:
    """Address of an application. `prefix`: its path in the browser, without a slash at the end.

    `origin`: the browser's (`https://hub.example`). `absolute`: the application knows its prefix.
    """

    prefix: str
    origin: str
    port: int
    absolute: bool = False

    @property
    def local(self) -> str:
        """Its own origin, as it sees it."""
        return f"http://localhost:{self.port}"

    def outside(self, path: str) -> str:
        """Turn a path of the application's (`/…`) into the browser's."""
        inside_already = path == self.prefix or path.startswith(f"{self.prefix}/")
        return path if self.absolute or inside_already else self.prefix + path


def request_headers(
    place: PortPrefix, headers: Iterable[tuple[str, str]], servers_cookie: str, peer: str
) -> Headers:
    """Choose what an application is told of a request; `servers_cookie`: the notebook server's own."""
    given = list(headers)
    dropped = _NOT_ASKED | _named_hop_by_hop(given)
    kept = [(name, value) for name, value in given if name.lower() not in dropped]
    found = {name.lower(): value for name, value in given}
    cookie = "; ".join(
        filter(None, (own_cookies(place, v, servers_cookie) for n, v in given if n.lower() == "cookie"))
    )
    if cookie:
        kept.append(("Cookie", cookie))
    if "origin" in found:
        kept.append(("Origin", place.local))
    referer = found.get("referer", "")
    outside = place.origin + ("" if place.absolute else place.prefix)
    if referer.startswith(f"{outside}/"):
        kept.append(("Referer", place.local + referer.removeprefix(outside)))
    if "content-length" in found:
        kept.append(("Content-Length", found["content-length"]))
    return [*kept, ("X-Forwarded-For", peer), ("X-Forwarded-Prefix", place.prefix)]


def own_cookies(place: PortPrefix, line: str, servers_cookie: str) -> str:
    """Choose the cookies that are the application's own."""
    pairs = [
        (name.strip(), value.strip()) for name, _, value in (pair.partition("=") for pair in line.split(";"))
    ]
    kept = [
        (name, value)
        for name, value in pairs
        if name != _XSRF and not _is_foreign(place, name, servers_cookie)
    ]
    # the browser has two of this name, one of them ours; the twin says which
    kept += [(_XSRF, value) for name, value in pairs if name == XSRF_TWIN][:1]
    return "; ".join(f"{name}={value}" for name, value in kept)


def request_query(query: str, *, without_token: bool) -> str:
    """Take the notebook server's own token out of a query, which stays as it was written otherwise."""
    if not without_token:
        return query
    return "&".join(pair for pair in query.split("&") if pair.partition("=")[0] != "token")


def response_headers(place: PortPrefix, headers: Iterable[tuple[str, str]], servers_cookie: str) -> Headers:
    """Choose what a browser is told of an answer."""
    given = list(headers)
    dropped = _NOT_ANSWERED | _named_hop_by_hop(given)
    kept = []
    for name, value in given:
        match name.lower():
            case "set-cookie":
                kept += [(name, cookie) for cookie in set_cookies(place, value, servers_cookie)]
            case "location" | "content-location":
                kept.append((name, location(place, value)))
            case "refresh":
                kept.append((name, _refreshed(place, value)))
            case "referrer-policy" if value.strip().lower() == "no-referrer":
                # by their address an application's own pages are told from others'; nobody else sees it
                kept.append((name, "same-origin"))
            case "service-worker-allowed":
                kept.append((name, f"{place.prefix}/"))
            case lower if lower not in dropped:
                kept.append((name, value))
    return kept


def location(place: PortPrefix, value: str) -> str:
    """Turn an address that the application gave, of its own or another's, into the browser's."""
    own = re.match(
        rf"(?:https?:)?//(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1\]):{place.port}(?=[/?#]|\Z)", value
    )
    if own is not None:
        value = value[own.end() :] or "/"
        if not value.startswith("/"):
            value = f"/{value}"
    return place.outside(value) if value.startswith("/") and not value.startswith("//") else value


def set_cookies(place: PortPrefix, line: str, servers_cookie: str) -> list[str]:
    """Keep a cookie of the application's within its prefix; one that would pass for the Hub's is dropped."""
    first, *attributes = [part.strip() for part in line.split(";")]
    name = first.partition("=")[0].strip()
    if not name or _is_foreign(place, name, servers_cookie):
        return []
    kept = []
    for attribute in attributes:
        key, _, value = attribute.partition("=")
        match key.strip().lower():
            case "domain" | "":
                continue
            case "path":
                kept.append(f"Path={_cookie_path(place, value.strip())}")
            case _:
                kept.append(attribute)
    cookies = ["; ".join((first, *kept))]
    if name == _XSRF:
        twin = XSRF_TWIN + first.removeprefix(_XSRF)
        plain = [attribute for attribute in kept if attribute.lower() != "httponly"]
        cookies.append("; ".join((twin, *plain, "HttpOnly")))
    return cookies


def _named_hop_by_hop(headers: Headers) -> frozenset[str]:
    """List what `Connection` names: headers for the next station only."""
    named = ",".join(value for name, value in headers if name.lower() == "connection")
    return frozenset(name.strip().lower() for name in named.split(","))


def _is_foreign(place: PortPrefix, name: str, servers_cookie: str) -> bool:
    """Return whether a cookie is the Hub's, this notebook server's or another's, not the application's."""
    lower = name.lower()
    if lower.startswith(_SERVERS_COOKIE):
        # a Jupyter in the task names its cookie after the host that it sees
        return lower != f"{_SERVERS_COOKIE}localhost-{place.port}"
    return lower.startswith(_FOREIGN_COOKIES) or lower == servers_cookie.lower()


def _cookie_path(place: PortPrefix, path: str) -> str:
    inside = place.outside(path) if path.startswith("/") else f"{place.prefix}/"
    # an application that knows its prefix may not leave it either
    return inside if inside.startswith(f"{place.prefix}/") else f"{place.prefix}/"


def _refreshed(place: PortPrefix, value: str) -> str:
    seconds, separator, url = value.partition("=")
    return f"{seconds}{separator}{location(place, url.strip())}" if separator else value


# Puts the addresses in an application's pages under the prefix at which a browser finds it.


class HtmlRewriter:
    """Puts the addresses in an HTML text under the prefix, piece by piece, as it comes.

    Rewritten are attributes that hold addresses, what inline scripts call base URLs, and in them and in
    styles what is plainly the path of a file. Any other text that begins with `/` stays: it may be anything.
    """

    #: how much of a line without any `>` is kept back
    _LONGEST = 256 * 1024

    def __init__(self, place: PortPrefix) -> None:
        self._place = place
        self._rest = b""
        self._own = re.compile(_OWN_ORIGIN.replace(b"PORT", str(place.port).encode()))

    def feed(self, piece: bytes) -> bytes:
        """Take a piece; return what is ready."""
        text = self._rest + piece
        cut = max(text.rfind(b">"), text.rfind(b"\n")) + 1
        if len(text) - cut > self._LONGEST:
            cut = len(text)
        self._rest = text[cut:]
        return self._rewritten(text[:cut])

    def end(self) -> bytes:
        """Return what was kept back for a piece that never came."""
        rest, self._rest = self._rest, b""
        return self._rewritten(rest)

    def _rewritten(self, text: bytes) -> bytes:
        text = self._own.sub(self._outside_origin, text)
        for pattern in _ADDRESSES:
            text = pattern.sub(self._outside, text)
        return text

    def _outside(self, match: re.Match[bytes]) -> bytes:
        path = match["path"].decode("latin-1")
        begin, end = match.start("path") - match.start(), match.end("path") - match.start()
        return match[0][:begin] + self._place.outside(path).encode("latin-1") + match[0][end:]

    def _outside_origin(self, match: re.Match[bytes]) -> bytes:
        origin = self._place.origin + self._place.prefix
        if match["scheme"].startswith(b"ws"):
            origin = origin.replace("http", "ws", 1)
        address = origin.encode("latin-1")
        # in JSON a slash may be escaped
        return address.replace(b"/", b"\\/") if b"\\" in match[0] else address


#: The application's own origin, as it may write it.
_OWN_ORIGIN = (
    rb"""(?P<scheme>https?|wss?):(?:\\?/){2}(?:localhost|127\.0\.0\.1|0\.0\.0\.0):PORT(?=["'/\\?#\s<]|\Z)"""
)
#: A path from the root; not one of another origin (`//…`).
_PATH = rb"/(?![/\\])"
_ADDRESSES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # <a href="/tree">, <body data-base-url="/">, <form action='/login'>
        rb"""(?<!\S)(?:href|src|action|formaction|poster|manifest|data|data-[\w-]*url)\s*=\s*"""
        rb"""(?P<quote>["'])(?P<path>""" + _PATH + rb"""[^"'<>]*)(?P=quote)""",
        # <link href=/style.css>
        rb"""(?<!\S)(?:href|src|action)=(?P<path>""" + _PATH + rb"""[^\s"'<>]*)""",
        # <meta http-equiv="refresh" content="0; url=/tree">
        rb"""content\s*=\s*["']\s*\d+\s*;\s*url=(?P<path>""" + _PATH + rb"""[^"'<>]*)["']""",
        # {"baseUrl": "/", "fullStaticUrl": "/static/lab"}, require.config({baseUrl: '/static/'})
        rb"""["']?\b(?:base_?url|base_?path|root_?path|full\w+url|ws_?url|public_?path|asset_?prefix"""
        rb"""|requests_pathname_prefix|url_base_pathname)["']?\s*[:=]\s*"""
        rb"""(?P<quote>["'])(?P<path>""" + _PATH + rb"""[^"'\s<>]*)(?P=quote)""",
        # import("/assets/index.js"), url(/img/logo.svg), {"mathjaxUrl": "/static/MathJax.js"}
        rb"""(?<=["'(])(?P<path>"""
        + _PATH
        + rb"""(?:[\w.@~%+-]+/)*[\w.@~%+-]+\.(?:m?js|css|json|map|png|svg|ico"""
        rb"""|jpe?g|gif|webp|woff2?|ttf|wasm|webmanifest)(?:\?[^"'()\s<>]*)?)(?=["')])""",
        # require.config({paths: {custom: '/custom', services: '/static/services'}})
        rb"""(?<=["'(])(?P<path>/(?:static|assets|_next|_app|_nuxt|custom|nbextensions|kernelspecs)(?:/[^"'()\s<>]*)?)(?=["')])""",
    )
)
