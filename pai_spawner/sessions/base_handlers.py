"""What every handler of the service stands on: who asks, what they may do, in which language."""

from __future__ import annotations

import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from jupyterhub.services.auth import HubOAuthenticated
from tornado.web import HTTPError, RequestHandler

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message, choose_locale

from ..messages import msg
from .hub import HubClient, HubError
from .keeper import LONGEST_TEXT, SessionKeeper


@dataclass(frozen=True, slots=True)
class Context:
    """What handlers work with. `prefix`: the path of the service, with a slash at both ends.

    `hub_prefix`: where the Hub's pages begin, with a host in front of it where that is another than ours.
    """

    hub: HubClient
    scheduler: Client
    keeper: SessionKeeper
    prefix: str
    hub_prefix: str


class Refused(HTTPError):
    """A request that is not done, with a sentence."""

    def __init__(self, status: HTTPStatus, message: Message | str) -> None:
        super().__init__(status)
        self.sentence = message


class Handler(HubOAuthenticated, RequestHandler):  # type: ignore[misc]  # jupyterhub has no types
    """Knows who asks: by a token of the Hub's, or by the Hub's login (checked against forged requests)."""

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
            self.nobody()
            return
        if not self.hub_auth.check_scopes(self.hub_scopes, model):
            raise Refused(HTTPStatus.FORBIDDEN, msg("This token or login may not use the sessions service."))
        self._hub_auth_user_cache = model
        self.person = str(model["name"])
        self.is_user = model.get("kind", "user") == "user"
        await self.check()

    def nobody(self) -> None:
        """Refuse who has not said who they are."""
        raise Refused(HTTPStatus.FORBIDDEN, msg("Log in at the Hub, or send one of its tokens."))

    async def check(self) -> None:
        """Check what the person may do here."""

    async def is_administrator(self) -> bool:
        """Return whether the Hub has the person for an administrator."""
        return self.is_user and await self.context.hub.is_administrator(self.person)

    async def must_be_administrator(self) -> None:
        """Refuse everybody else."""
        if not await self.is_administrator():
            raise Refused(
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
            raise Refused(
                HTTPStatus.BAD_REQUEST,
                msg("{name} must be a text of at most {most} characters.", name=name, most=LONGEST_TEXT),
            )
        return text

    def explain(self, status: int, error: BaseException | None) -> str:
        """Return why a request was not done."""
        if isinstance(error, Refused):
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
        self.show_error(status_code, self.explain(status_code, error))

    def show_error(self, status: int, message: str) -> None:
        """Answer a refusal as the scheduler does."""
        code = "".join(word.capitalize() for word in HTTPStatus(status).name.split("_")) + "Error"
        self.finish({"code": code, "message": message})

    def set_default_headers(self) -> None:
        """Keep answers out of caches, and this service's pages out of others' frames."""
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Content-Security-Policy", "frame-ancestors 'none'")

    def body(self) -> dict[str, Any]:
        """Read a JSON object."""
        try:
            body = json.loads(self.request.body or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            raise Refused(HTTPStatus.BAD_REQUEST, msg("The body must be a JSON object."))
        return body
