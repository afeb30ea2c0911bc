"""Requests of people: the language of the answer, how one is refused, with whose token one asks further."""

from __future__ import annotations

import asyncio
import hmac
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from tornado import web
from tornado.websocket import WebSocketHandler

from pai_scheduler.i18n import Message, choose_locale

#: The job contract's names for what is refused here already.
_CODES = {
    HTTPStatus.BAD_REQUEST: "InvalidParametersError",
    HTTPStatus.UNAUTHORIZED: "UnauthorizedUserError",
    HTTPStatus.FORBIDDEN: "ForbiddenUserError",
    HTTPStatus.NOT_FOUND: "NoApiError",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowedError",
    HTTPStatus.BAD_GATEWAY: "SchedulerUnreachable",
}


class RefusedError(web.HTTPError):
    """A request that is not done, with a sentence in the reader's language; `again`: it may be soon."""

    def __init__(
        self,
        status: int,
        message: Message | str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        again: bool = False,
    ) -> None:
        super().__init__(status)
        self.message, self.again = message, again
        self.headers = headers

    def sentence(self, locale: str) -> str:
        """Return why it is not done."""
        return self.message.in_locale(locale) if isinstance(self.message, Message) else self.message


@dataclass(frozen=True, slots=True)
class Requester:
    """A person and the token of theirs that is asked with; `name` is empty where only the token is known."""

    name: str
    token: str


class PersonHandler(web.RequestHandler):
    """Answers a person, and refuses with `{"code", "message"}`.

    A notebook server has one person, the console many: each request asks here what it needs of its own.
    """

    @property
    @abstractmethod
    def caller_token(self) -> str:
        """Return the person's token for the scheduler; empty: they have none."""

    @property
    def caller(self) -> Requester:
        """Return who asks, and with which token."""
        return Requester("", self.caller_token)

    @abstractmethod
    async def check_permission(self, action: str | None) -> None:
        """Refuse who may not do this."""

    @property
    def locale_asked(self) -> str:
        """Return the language of the request."""
        return choose_locale(self.request.headers.get("Accept-Language", ""))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Return what is wrong as the API does."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        status = HTTPStatus(status_code) if status_code in set(HTTPStatus) else HTTPStatus.BAD_GATEWAY
        # Tornado closes the connection of a request that it has not read through. Unless the Hub's proxy is
        # told, it sends the next request there, and that one fails.
        self.set_header("Connection", "close")
        if isinstance(error, RefusedError):
            message = error.sentence(self.locale_asked)
            for name, value in error.headers.items():
                self.set_header(name, value)
        else:
            message = getattr(error, "log_message", None) or status.phrase
        self.finish_error(status, message, again=isinstance(error, RefusedError) and error.again)

    def finish_error(self, status: HTTPStatus, message: str, *, again: bool) -> None:  # noqa: ARG002
        """Write a refusal; `again`: asking again may help."""
        self.set_header("Content-Type", "application/json")
        self.finish(refusal(status, message))


def refusal(status: int, message: str) -> dict[str, str]:
    """Return the body of a refusal, as the API has it."""
    return {"code": _CODES.get(HTTPStatus(status), "UnknownError"), "message": message}


# WebSockets of a service that everybody's cookies reach: from its own page alone, as long as the login lasts.

#: Seconds until the first message, between two questions whether a login is still there, and for which it is
#: taken to be where nobody answers.
_HELLO_SECONDS, _LOGIN_SECONDS, _UNKNOWN_SECONDS = 5.0, 15.0, 120.0
#: Codes with which a WebSocket is closed: not from our page; the login has ended.
NOT_OURS, LOGIN_EXPIRED = 4403, 4401


class LoginWatch:
    """Asks of each login that holds something open whether it is still there.

    `is_there` is asked with the login's token, once for all that it holds; it raises web.HTTPError where
    nobody can say.
    """

    def __init__(self, is_there: Callable[[str], Awaitable[bool]]) -> None:
        self._is_there = is_there
        self._held: dict[str, list[Callable[[], None]]] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}

    def hold(self, token: str, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `ended` when the login has ended, unless what is returned was called before."""
        held = self._held.setdefault(token, [])
        held.append(ended)
        if token not in self._watching:
            self._watching[token] = asyncio.create_task(self._watch(token))

        def release() -> None:
            with suppress(ValueError):
                held.remove(ended)
            if not held and self._held.get(token) is held:
                del self._held[token]
                self._watching.pop(token).cancel()

        return release

    async def _watch(self, token: str) -> None:
        known = time.monotonic()
        while True:
            await asyncio.sleep(_LOGIN_SECONDS)
            try:
                is_there = await self._is_there(token)
            except web.HTTPError:
                # the Hub is being restarted: that ends nobody's work
                is_there = time.monotonic() - known < _UNKNOWN_SECONDS
            else:
                known = time.monotonic()
            if not is_there:
                break
        del self._watching[token]
        # (who hears of it lets go, which takes them off the list: the next one would be passed over)
        for ended in tuple(self._held.pop(token)):
            ended()


class PersonSocket(WebSocketHandler, PersonHandler):
    """A WebSocket from our own page: its first message is the page's XSRF token.

    Browsers let the pages of any origin open one, with the person's cookies; Tornado compares their `Origin`
    with `Host`, which tells other origins, not other services of this one. `self.settings["logins"]` is the
    `LoginWatch` that closes it when the login has ended (code `LOGIN_EXPIRED`).
    """

    _is_greeted = False
    _late: asyncio.TimerHandle | None = None
    _release: Callable[[], None] | None = None

    @abstractmethod
    def begin(self) -> None:
        """Begin: the page has shown that it is ours."""

    @abstractmethod
    async def receive(self, message: str | bytes) -> None:
        """Take one of the messages that follow."""

    def end(self) -> None:
        """Let go of what `begin` began; also called where it never was."""

    def open(self, *_args: str, **_kwargs: str) -> None:
        """Wait for the first message."""
        loop = asyncio.get_running_loop()
        self._late = loop.call_later(_HELLO_SECONDS, self.close, NOT_OURS, "NoHello")
        logins: LoginWatch = self.settings["logins"]
        self._release = logins.hold(self.caller_token, self._login_ended)

    async def on_message(self, message: str | bytes) -> None:
        """Take the first message as the XSRF token; hand on what follows."""
        if self._is_greeted:
            await self.receive(message)
            return
        said = message.encode("utf-8", "replace") if isinstance(message, str) else message
        if not hmac.compare_digest(said, self.xsrf_token):
            self.close(NOT_OURS, "WrongHello")
            return
        if self._late is not None:
            self._late.cancel()
        self._is_greeted = True
        self.begin()

    def on_close(self) -> None:
        """Let go of everything."""
        if self._late is not None:
            self._late.cancel()
        if self._release is not None:
            self._release()
        self.end()

    def _login_ended(self) -> None:
        self._is_greeted = False  # nothing that still comes is taken
        self.close(LOGIN_EXPIRED, "LoginExpired")
