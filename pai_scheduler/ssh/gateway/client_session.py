"""One client who has logged in, and the scheduler that is asked for the task; throttling of logins."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, cast

import httpx

from pai_scheduler.i18n import Message, msg
from pai_scheduler.rate_limit import GuessThrottle, PerAddressLimit, place

from .protocol import (
    Kind,
    LoginAnswer,
    LoginRequest,
    Note,
    OpenLogin,
    OpenRequest,
    StillAnswer,
    StillRequest,
    TaskTarget,
)
from .session import TaskServerConnection, TaskServerUnreachableError, reach

# Client of the scheduler's `/access/…`: who is that, which task is meant, what is to be noted.


#: Seconds for an answer: whose token it is may have to be asked at the Hub.
_SECONDS = 20.0
_MOST_AT_ONCE = 20
_UNAUTHORIZED = 401
_REFUSALS = range(400, 500)


class UnavailableError(Exception):
    """The service does not answer, or not as it should; the text says how, for the log."""


class ServiceRefusedError(Exception):
    """The service refuses; the text is a sentence for the person."""


class ServiceClient:
    """The questions, over HTTP. UnavailableError where there is no answer."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{url.rstrip('/')}/access/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_SECONDS,
            limits=httpx.Limits(max_connections=_MOST_AT_ONCE, keepalive_expiry=60),
            # whatever proxy the environment names leads elsewhere
            trust_env=False,
        )

    async def login(self, request: LoginRequest) -> LoginAnswer | None:
        """Ask who that is; None: nobody is let in with that."""
        answer = await self._ask("login", request)
        if answer.status_code == _UNAUTHORIZED:
            return None
        if answer.is_success:
            return cast(LoginAnswer, _read(answer))
        raise UnavailableError(f"login: HTTP {answer.status_code}")

    async def open(self, request: OpenRequest) -> TaskTarget:
        """Ask which task is meant, and how to reach it; ServiceRefusedError says why not."""
        answer = await self._ask("open", request)
        if answer.is_success:
            return cast(TaskTarget, _read(answer))
        if answer.status_code in _REFUSALS:
            raise ServiceRefusedError(str(_read(answer).get("message") or f"HTTP {answer.status_code}"))
        raise UnavailableError(f"open: HTTP {answer.status_code}")

    async def note(self, note: Note) -> None:
        """Have something noted. ServiceRefusedError: it never will be."""
        answer = await self._ask("note", note)
        if answer.status_code in _REFUSALS:
            raise ServiceRefusedError(f"note: HTTP {answer.status_code}")
        if not answer.is_success:
            raise UnavailableError(f"note: HTTP {answer.status_code}")

    async def still(self, held: list[OpenLogin]) -> list[int]:
        """Ask who may not stay; return their places in the list."""
        request: StillRequest = {"held": held}
        answer = await self._ask("still", request)
        if not answer.is_success:
            raise UnavailableError(f"still: HTTP {answer.status_code}")
        return cast(StillAnswer, _read(answer))["gone"]

    async def close(self) -> None:
        """Close the HTTP connections."""
        await self._http.aclose()

    async def _ask(self, what: str, body: Any) -> httpx.Response:
        try:
            answer = await self._http.post(what, json=body)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{what}: {type(error).__name__} {error}") from error
        # a 401 without the challenge is about the person, one with it about us
        if answer.status_code == _UNAUTHORIZED and "WWW-Authenticate" in answer.headers:
            raise UnavailableError("another service than the one that started this gateway")
        return answer


def _read(answer: httpx.Response) -> dict[str, Any]:
    try:
        read = answer.json()
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise UnavailableError(f"HTTP {answer.status_code}, and no JSON object")
    return read


# Slows down those who guess at the gateway, and says in the log who was refused: a few lines, then a sum.

#: lines in the log for one address and minute; the rest is counted
_MOST_LINES, _LINES_SECONDS = 5, 60.0
_MOST_REMEMBERED = 20_000
_MOST_OF_NAME = 60

_log = logging.getLogger(__name__)

Credential = tuple[str, str, str]

_T = TypeVar("_T")


def shown(login: str) -> str:
    """Return a login name as it may stand in a log, whatever is in it."""
    text = ascii(login)
    return text if len(text) <= _MOST_OF_NAME else f"{text[:_MOST_OF_NAME]}…"


@dataclass(slots=True)
class _Lines:
    since: float
    count: int = 0


class LoginThrottle:
    """Record of recent login attempts in one gateway process. `now`: seconds, monotonic."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, throttle: GuessThrottle | None = None
    ) -> None:
        self._now = now
        self._throttle = throttle or GuessThrottle(now)
        self._keys = PerAddressLimit()
        self._lines: OrderedDict[str, _Lines] = OrderedDict()

    async def check(
        self, peer: str, credential: Credential, ask: Callable[[], Awaitable[_T | None]]
    ) -> _T | None:
        """Return what `ask` says of a credential (login name, method, key or token); None: it is wrong."""
        login, method, secret = credential
        if method == "password":
            answer = await self._throttle.check(peer, login, secret, ask)
        else:
            # nobody guesses a key, and who has an agent shows many
            answer = await self._keys.within(place(peer), ask)
        if answer is None:
            self.report(peer, f"{method} for {shown(login)}")
        return answer

    def report(self, peer: str, what: str) -> None:
        """Log a login that was refused: a few of each place, then how many."""
        lines = self._lines.setdefault(place(peer), _Lines(self._now()))
        lines.count += 1
        if lines.count <= _MOST_LINES:
            _log.warning("login refused from %s: %s", peer, what)
        while len(self._lines) > _MOST_REMEMBERED:
            self._lines.popitem(last=False)

    def sum_up(self) -> None:
        """Log what was only counted; to be called now and then."""
        now = self._now()
        for where, lines in list(self._lines.items()):
            if now - lines.since >= _LINES_SECONDS:
                del self._lines[where]
                if lines.count > _MOST_LINES:
                    seconds, more = now - lines.since, lines.count - _MOST_LINES
                    _log.warning("%d more logins refused from %s in %.0f s", more, where, seconds)


# Brings the service what is to be noted as job events, in order; nobody waits for it.

#: more than wait while the service is restarted; the oldest are dropped
_MOST = 10_000
#: Seconds between two tries while the service is away, and for the last ones when this process ends.
_AGAIN_SECONDS, _LAST_SECONDS = 2.0, 20.0


class AuditQueue:
    """A queue, and who carries it. `again`: seconds between two tries."""

    def __init__(self, service: ServiceClient, again: float = _AGAIN_SECONDS) -> None:
        self._service = service
        self._again = again
        self._queue: deque[Note] = deque()
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._carrier = asyncio.create_task(self._carry())

    def add(self, note: Note) -> None:
        """Have something noted as soon as may be."""
        if len(self._queue) >= _MOST:
            self._queue.popleft()
            _log.error("the service has been away for too long: what was opened is not noted any more")
        self._queue.append(note)
        self._empty.clear()
        self._news.set()

    async def close(self, seconds: float = _LAST_SECONDS) -> None:
        """Wait for the last ones, so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            _log.error("the service is away: %d notes are lost", len(self._queue))
        self._carrier.cancel()
        await asyncio.gather(self._carrier, return_exceptions=True)

    async def _carry(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._queue:
                note = self._queue[0]
                if await self._delivered(note) and self._queue and self._queue[0] is note:
                    self._queue.popleft()
            self._empty.set()

    async def _delivered(self, note: Note) -> bool:
        try:
            await self._service.note(note)
        except UnavailableError as error:
            _log.debug("%s", error)
            await asyncio.sleep(self._again)
            return False
        except ServiceRefusedError as error:
            _log.warning("not noted: %s", error)
        return True


# One client who has logged in: which task is theirs, the way to it, what they did there.


class TaskUnreachableError(Exception):
    """The task cannot be reached; the text is a sentence for the person."""


@dataclass(frozen=True, slots=True)
class AuthenticatedClient:
    """A client logged in as `login` from address `peer`; `credential`: login name, method, key or token."""

    login: str
    peer: str
    answer: LoginAnswer
    credential: Credential = field(repr=False)


class ClientSession:
    """The session of one client connection in a task."""

    def __init__(
        self, client: AuthenticatedClient, service: ServiceClient, notes: AuditQueue, keepalive: float
    ) -> None:
        self.client = client
        #: as the last session has it
        self.language = "en"
        self.target: TaskTarget | None = None
        #: the connections to the task, by the agent that is lent to all that is opened in them
        self._upstreams: dict[str | None, TaskServerConnection] = {}
        self._service, self._notes = service, notes
        self._keepalive = keepalive
        self._opening = asyncio.Lock()
        self._kinds: list[Kind] = []
        self._since = 0.0
        self._over = self._revoked = False

    async def way(self, agent: str | None = None) -> tuple[TaskServerConnection, TaskTarget]:
        """Return a connection to the task, made when first needed; or TaskUnreachableError.

        `agent`: the path of the agent that the client lends to what is opened.
        """
        async with self._opening:
            if self._revoked:
                raise self._no_way(_revoked())
            upstream = self._upstreams.get(agent)
            if upstream is not None and upstream.usable and self.target is not None:
                return upstream, self.target
            self.target = await self._ask()
            try:
                upstream = await reach(self.target, self._lost, self._keepalive, agent)
            except TaskServerUnreachableError as error:
                _log.warning(
                    "the SSH server of %s of %s cannot be reached: %s",
                    self.target["task"],
                    self.target["job"],
                    error,
                    extra={"user": self.target["user"]},
                )
                raise self._no_way(
                    msg(
                        "The SSH server of {task} cannot be reached. Has the task just ended?",
                        task=self.target["task"],
                    )
                ) from error
            if self._over:
                upstream.finish()
                raise TaskUnreachableError("the client is gone")
            if self._revoked:
                upstream.ssh.abort()
                raise self._no_way(_revoked())
            self._upstreams[agent] = upstream
            return upstream, self.target

    def used(self, kind: Kind, detail: str = "") -> None:
        """Have it noted that something was opened, the first time."""
        if kind in self._kinds or self._over:
            return
        if not self._kinds:
            self._since = time.monotonic()
        self._kinds.append(kind)
        note = self._note("opened", [kind])
        if detail:
            note["detail"] = detail
        self._notes.add(note)
        _log.info("%s opens %s", self._who(), kind, extra=self._about())

    def refused(self, what: str) -> None:
        """Log what was tried and is not allowed."""
        _log.warning("%s: %s", self._who(), what, extra=self._about())

    @property
    def held(self) -> OpenLogin:
        """Return who is in, and by what."""
        login, method, credential = self.client.credential
        return {
            "login": login,
            "session_token": self.client.answer["session_token"],
            "method": "password" if method == "password" else "publickey",
            "credential": credential,
        }

    def revoke(self) -> bool:
        """Close the connections to the task: the key or token was revoked. False: that was known."""
        if self._revoked or self._over:
            return False
        self._revoked = True
        _log.warning("%s: %s was revoked", self._who(), self.client.answer["by"], extra=self._about())
        for upstream in self._upstreams.values():
            upstream.ssh.abort()
        return True

    def end(self) -> None:
        """Close the connections to the task: the client is gone."""
        if self._over:
            return
        self._over = True
        for upstream in self._upstreams.values():
            upstream.finish()
        if self._kinds:
            seconds = time.monotonic() - self._since
            note = self._note("closed", list(self._kinds))
            note["seconds"] = round(seconds, 3)
            self._notes.add(note)
            _log.info("%s is gone after %.0f s", self._who(), seconds, extra=self._about())

    def lost(self) -> str:
        """Return a sentence that says that the connection to the task was lost, or taken away."""
        if self._revoked:
            return _revoked().in_locale(self.language)
        task = self.target["task"] if self.target else "?"
        return msg(
            "The connection to {task} was lost: the task has ended, or its SSH server.", task=task
        ).in_locale(self.language)

    async def _ask(self) -> TaskTarget:
        client = self.client
        try:
            return await self._service.open(
                {
                    "login": client.login,
                    "session_token": client.answer["session_token"],
                    "language": self.language,
                }
            )
        except ServiceRefusedError as error:
            raise TaskUnreachableError(str(error)) from error
        except UnavailableError as error:
            _log.warning("%s", error)
            raise self._no_way(
                msg("The scheduler does not answer just now. What is open stays open; try again in a minute.")
            ) from error

    def _no_way(self, message: Message) -> TaskUnreachableError:
        return TaskUnreachableError(message.in_locale(self.language))

    def _lost(self) -> None:
        if not self._over:
            _log.info("%s: the way to the task is lost", self._who(), extra=self._about())

    def _note(self, event: Literal["opened", "closed"], what: list[Kind]) -> Note:
        client = self.client
        return {
            "session_token": client.answer["session_token"],
            "login": client.login,
            "peer": client.peer,
            "event": event,
            "what": what,
        }

    def _who(self) -> str:
        client = self.client
        return f"{shown(client.answer['user'])} as {shown(client.login)} from {client.peer}"

    def _about(self) -> dict[str, str]:
        target = self.target
        user = self.client.answer["user"]
        return {"user": user, **({"jobName": target["job"], "task": target["task"]} if target else {})}


def _revoked() -> Message:
    return msg("The key or token that you logged in with was revoked: this connection ends.")
