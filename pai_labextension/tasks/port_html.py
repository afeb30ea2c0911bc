"""Puts the addresses in an application's pages under the prefix at which a browser finds it."""

from __future__ import annotations

import re

from .port_rewriting import PortPrefix


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
