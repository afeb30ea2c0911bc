"""REST of `pai-sessions`: its handlers, and its answers as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from jupyterhub.services.auth import HubAuthenticated
from tornado.web import HTTPError, RequestHandler

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.i18n import Message, choose_locale
from pai_scheduler.rest.sessions import SessionInfo, SessionRow

from ..messages import msg
from . import words
from .culler import LONGEST_TEXT, Key, SessionKeeper, Watched
from .hub_client import HubClient, HubError
from .policy import Action

# What every handler of the service stands on: who asks, what they may do, in which language.


@dataclass(frozen=True, slots=True)
class Context:
    """The context of the handlers. `prefix`: the path of the service, with a slash at both ends.

    `console_url`: the address of the console, whose page for administrators was here.
    """

    hub: HubClient
    keeper: SessionKeeper
    prefix: str
    console_url: str


class SessionRefused(HTTPError):
    """A request that is not done, with a sentence."""

    def __init__(self, status: HTTPStatus, message: Message | str) -> None:
        super().__init__(status)
        self.sentence = message


class Handler(HubAuthenticated, RequestHandler):  # type: ignore[misc]  # jupyterhub has no types
    """Knows who asks, by a token of the Hub's: a browser comes by way of the console."""

    def initialize(self, context: Context) -> None:
        """Take what it works with."""
        self.context = context

    async def prepare(self) -> None:
        """Find out who asks; nobody else comes further."""
        self.locale_asked = choose_locale(self.request.headers.get("Accept-Language", ""))
        model = await self.hub_auth.get_user(self, sync=False)
        # what the Hub's own code asks for later, `current_user` among it
        self._hub_auth_user_cache = None
        if model is None:
            raise SessionRefused(HTTPStatus.FORBIDDEN, msg("Send one of the Hub's tokens."))
        if not self.hub_auth.check_scopes(self.hub_scopes, model):
            raise SessionRefused(
                HTTPStatus.FORBIDDEN, msg("This token or login may not use the sessions service.")
            )
        self._hub_auth_user_cache = model
        self.person = str(model["name"])
        self.is_user = model.get("kind", "user") == "user"
        await self.check()

    async def check(self) -> None:
        """Check what the person may do here."""

    async def is_administrator(self) -> bool:
        """Return whether the Hub has the person for an administrator."""
        return self.is_user and await self.context.hub.is_administrator(self.person)

    async def must_be_administrator(self) -> None:
        """Refuse everybody else."""
        if not await self.is_administrator():
            raise SessionRefused(
                HTTPStatus.FORBIDDEN,
                msg("This is for administrators of the Hub. {name} is none.", name=self.person),
            )

    def say(self, message: Message | str) -> str:
        """Put a sentence into the language of the person."""
        return message.in_locale(self.locale_asked) if isinstance(message, Message) else message

    def text(self, name: str, given: Any, *, needed: bool = False) -> str:
        """Read a short text that somebody wrote, as one line."""
        text = " ".join(given.split()) if isinstance(given, str) else None
        if text is None or len(text) > LONGEST_TEXT or (needed and not text):
            raise SessionRefused(
                HTTPStatus.BAD_REQUEST,
                msg("{name} must be a text of at most {most} characters.", name=name, most=LONGEST_TEXT),
            )
        return text

    def explain(self, status: int, error: BaseException | None) -> str:
        """Return why a request was not done."""
        if isinstance(error, SessionRefused):
            return self.say(error.sentence)
        if isinstance(error, ApiError):
            return error.message
        if isinstance(error, UnreachableError):
            return self.say(msg("The scheduler does not answer. Try again in a minute."))
        if isinstance(error, HubError):
            return self.say(msg("The Hub does not answer. Try again in a minute."))
        return HTTPStatus(status).phrase if status in set(HTTPStatus) else str(status)

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Say why a request was not done."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        if isinstance(error, ApiError):
            status_code = error.status
        elif isinstance(error, UnreachableError | HubError):
            status_code = HTTPStatus.BAD_GATEWAY
        self.set_status(status_code)
        # as the scheduler answers a refusal
        code = "".join(word.capitalize() for word in HTTPStatus(status_code).name.split("_")) + "Error"
        self.finish({"code": code, "message": self.explain(status_code, error)})

    def set_default_headers(self) -> None:
        """Keep answers out of caches."""
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    def body(self) -> dict[str, Any]:
        """Read a JSON object."""
        try:
            body = json.loads(self.request.body or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise SessionRefused(HTTPStatus.BAD_REQUEST, msg("The body must be a JSON object."))
        return body


# Writes sessions as JSON, for one reader.


def info(keeper: SessionKeeper, watched: Watched, locale: str, now: datetime) -> SessionInfo:
    """Write what a session's user is told of it."""
    decision, server = watched.decision, watched.server
    warned = decision.action is not Action.KEEP
    why = words.warning(decision, watched.settings, server.started, now).in_locale(locale) if warned else ""
    return {
        "user": server.user,
        "server": server.name,
        "job": server.job,
        "gpus": watched.session.gpus,
        "now": ms(now),
        "startedTime": ms(server.started),
        "warned": warned,
        "cause": None if decision.cause is None else decision.cause.value,
        "endTime": None if decision.end is None else ms(decision.end),
        "idleSince": None if decision.idle_since is None else ms(decision.idle_since),
        "why": why,
        "mayKeep": decision.may_keep,
        "extensionsLeft": decision.extensions_left,
        "messages": list(keeper.records.of(server.key, server.job).messages),
    }


def row(keeper: SessionKeeper, watched: Watched, locale: str, now: datetime) -> SessionRow:
    """Write what an administrator sees of it."""
    usage = keeper.usage.known(watched.server.user, watched.server.job)
    return {**info(keeper, watched, locale, now), "use": usage.latest}


def ms(time: datetime) -> int:
    """Write a time as ms since the epoch."""
    return int(time.timestamp() * 1000)


# The service's API: a session for its user (JupyterLab asks), all of them for administrators.

#: Names of one question: the Hub is asked about each.
_MOST_NAMES = 100
#: `…/api/users/alice/server`, `…/api/users/alice/servers/big`, as the Hub's own API has them.
SESSION_PATH = r"api/users/([^/]+)/server(?:s/([^/]+))?"


class SessionsHandler(Handler):
    """All sessions."""

    async def get(self) -> None:
        """List the person's own; an administrator's list holds everybody's."""
        everybody, keeper = await self.is_administrator(), self.context.keeper
        now = datetime.now(UTC)
        rows = [
            row(keeper, watched, self.locale_asked, now)
            for key, watched in sorted(keeper.sessions.items())
            if everybody or key[0] == self.person
        ]
        self.set_header("Content-Type", "application/json")
        self.finish({"sessions": rows})


class StrangersHandler(Handler):
    """Those among some names that are no users of the Hub any more (administrators)."""

    async def post(self) -> None:
        """List them."""
        await self.must_be_administrator()
        names = self.body().get("names")
        if (
            not isinstance(names, list)
            or len(names) > _MOST_NAMES
            or not all(isinstance(name, str) and name for name in names)
        ):
            raise SessionRefused(
                HTTPStatus.BAD_REQUEST,
                msg("{name} must be a list of at most {most} names.", name="names", most=_MOST_NAMES),
            )
        self.finish({"strangers": sorted(await self.context.hub.strangers(names))})


class _OneHandler(Handler):
    """One session: of its user, and of administrators."""

    async def check(self) -> None:
        """Refuse others, as if there were no such session."""
        user, server = self.path_args
        self.key: Key = (user, server or "")
        if not (self.is_user and self.key[0] == self.person) and not await self.is_administrator():
            raise self.none()

    def none(self) -> SessionRefused:
        """Say that there is no such session."""
        name = "/".join(filter(None, self.key))
        return SessionRefused(HTTPStatus.NOT_FOUND, msg("There is no running session {name}.", name=name))

    def tell(self, watched: Watched | None) -> None:
        """Answer with how the session stands."""
        if watched is None:
            raise self.none()
        self.finish(dict(info(self.context.keeper, watched, self.locale_asked, datetime.now(UTC))))


class SessionHandler(_OneHandler):
    """The state of a session."""

    async def get(self, *_names: str) -> None:
        """Tell; a session that is new is looked at first."""
        keeper = self.context.keeper
        self.tell(keeper.sessions.get(self.key) or await keeper.look_at(self.key))


class KeepSessionHandler(_OneHandler):
    """Puts the end of a session off."""

    async def post(self, *_names: str) -> None:
        """Keep it, where its user may."""
        watched = self.context.keeper.sessions.get(self.key)
        if watched is not None and not watched.decision.may_keep:
            raise SessionRefused(HTTPStatus.CONFLICT, msg("The end of this session cannot be put off."))
        self.tell(await self.context.keeper.keep(self.key))


class EndHandler(_OneHandler):
    """Ends a session (administrators)."""

    async def post(self, *_names: str) -> None:
        """End it, with a reason."""
        await self.must_be_administrator()
        why = self.text("reason", self.body().get("reason", ""))
        if not await self.context.keeper.end(self.key, words.by_administrator(self.person, why)):
            raise self.none()
        self.set_status(HTTPStatus.ACCEPTED)
        self.finish({})


class MessageHandler(_OneHandler):
    """Tells the user of a session something (administrators)."""

    async def post(self, *_names: str) -> None:
        """Leave a message; JupyterLab shows it."""
        await self.must_be_administrator()
        text = self.text("text", self.body().get("text"), needed=True)
        if not self.context.keeper.tell(self.key, self.person, text):
            raise self.none()
        self.set_status(HTTPStatus.ACCEPTED)
        self.finish({})
