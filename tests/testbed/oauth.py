"""An OAuth 2.0 server of the tests' own on loopback: codes for tokens (RFC 6749) with PKCE (RFC 7636)."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import threading
from dataclasses import dataclass, field
from urllib.parse import urlencode

from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler


@dataclass(frozen=True)
class Grant:
    """What somebody has agreed to: who, for which address to come back to, and the challenge of PKCE."""

    name: str
    redirect_uri: str
    challenge: str


@dataclass
class OAuthServer:
    """Knows people with passwords and groups, and one client that may ask it who they are."""

    #: name → password and groups
    people: dict[str, tuple[str, list[str]]]
    redirect_uri: str
    client_id: str = "pai-hub"
    client_secret: str = field(default_factory=lambda: secrets.token_hex(16))
    url: str = ""
    codes: dict[str, Grant] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Serve, in a thread of its own, until `stop`."""
        socket, port = bind_unused_port()
        self.url = f"http://127.0.0.1:{port}"
        self._loop = asyncio.new_event_loop()
        kept = {"oauth": self}

        def run() -> None:
            asyncio.set_event_loop(self._loop)
            app = Application(
                [("/authorize", _Authorize, kept), ("/token", _Token, kept), ("/userinfo", _UserInfo, kept)]
            )
            server = HTTPServer(app)
            server.add_sockets([socket])
            self._loop.run_forever()
            server.stop()
            self._loop.run_until_complete(server.close_all_connections())
            self._loop.close()

        self._thread = threading.Thread(target=run)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


class _Handler(RequestHandler):
    def initialize(self, oauth: OAuthServer) -> None:
        self.oauth = oauth

    def refuse(self, error: str, status: int = 400) -> None:
        self.set_status(status)
        self.finish({"error": error})


class _Authorize(_Handler):
    """Where a browser is sent: a form, whose answer sends it back with a code."""

    def get(self) -> None:
        if self._is_sound():
            self.finish('<form method="post"><input name="username"><input name="password"></form>')

    def post(self) -> None:
        if not self._is_sound():
            return
        name = self.get_body_argument("username")
        password, _ = self.oauth.people.get(name, ("", []))
        if not password or self.get_body_argument("password") != password:
            self.refuse("access_denied", 403)
            return
        code = secrets.token_hex(16)
        back = self.get_query_argument("redirect_uri")
        self.oauth.codes[code] = Grant(name, back, self.get_query_argument("code_challenge"))
        self.redirect(f"{back}?{urlencode({'code': code, 'state': self.get_query_argument('state')})}")

    def _is_sound(self) -> bool:
        # (anything else must not be sent anywhere: RFC 6749, 4.1.2.1)
        wanted = {
            "client_id": self.oauth.client_id,
            "redirect_uri": self.oauth.redirect_uri,
            "response_type": "code",
            "code_challenge_method": "S256",
        }
        wrong = [name for name, value in wanted.items() if self.get_query_argument(name, "") != value]
        if wrong:
            self.refuse(f"invalid_request: {', '.join(wrong)}")
        return not wrong


class _Token(_Handler):
    """A code, once, for a token."""

    def post(self) -> None:
        client = (self.get_body_argument("client_id", ""), self.get_body_argument("client_secret", ""))
        if client != (self.oauth.client_id, self.oauth.client_secret):
            self.refuse("invalid_client", 401)
            return
        grant = self.oauth.codes.pop(self.get_body_argument("code"), None)
        verifier = self.get_body_argument("code_verifier", "")
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        back = self.get_body_argument("redirect_uri", "")
        if grant is None or (grant.redirect_uri, grant.challenge) != (back, digest):
            self.refuse("invalid_grant")
            return
        token = secrets.token_hex(16)
        self.oauth.tokens[token] = grant.name
        self.finish({"access_token": token, "token_type": "Bearer", "scope": "openid profile groups"})


class _UserInfo(_Handler):
    """Who a token stands for."""

    def get(self) -> None:
        scheme, _, token = self.request.headers.get("Authorization", "").partition(" ")
        name = self.oauth.tokens.get(token) if scheme == "Bearer" else None
        if name is None:
            self.refuse("invalid_token", 401)
            return
        self.finish({"sub": name, "preferred_username": name, "groups": self.oauth.people[name][1]})
