"""The service's API: a session for its user (JupyterLab asks), all of them for administrators."""

from __future__ import annotations

from datetime import UTC, datetime
from http import HTTPStatus

from ..messages import msg
from . import present, words
from .base_handlers import Handler, Refused
from .keeper import Watched
from .records import Key

#: `…/api/users/alice/server`, `…/api/users/alice/servers/big`, as the Hub's own API has them.
SESSION_PATH = r"api/users/([^/]+)/server(?:s/([^/]+))?"


class SessionsHandler(Handler):
    """All sessions."""

    async def get(self) -> None:
        """List the person's own; an administrator's list holds everybody's."""
        everybody, keeper = await self.is_administrator(), self.context.keeper
        now = datetime.now(UTC)
        rows = [
            present.row(keeper, watched, self.locale_asked, now)
            for key, watched in sorted(keeper.sessions.items())
            if everybody or key[0] == self.person
        ]
        self.set_header("Content-Type", "application/json")
        self.finish({"sessions": rows})


class _OneHandler(Handler):
    """One session: of its user, and of administrators."""

    async def check(self) -> None:
        """Refuse others, as if there were no such session."""
        user, server = self.path_args
        self.key: Key = (user, server or "")
        if not (self.is_user and self.key[0] == self.person) and not await self.is_administrator():
            raise self.none()

    def none(self) -> Refused:
        """Say that there is no such session."""
        name = "/".join(filter(None, self.key))
        return Refused(HTTPStatus.NOT_FOUND, msg("There is no running session {name}.", name=name))

    def tell(self, watched: Watched | None) -> None:
        """Answer with how the session stands."""
        if watched is None:
            raise self.none()
        info = present.info(self.context.keeper, watched, self.locale_asked, datetime.now(UTC))
        self.finish(dict(info))


class SessionHandler(_OneHandler):
    """How a session stands."""

    async def get(self, *_names: str) -> None:
        """Tell; a session that is new is looked at first."""
        keeper = self.context.keeper
        self.tell(keeper.sessions.get(self.key) or await keeper.look_at(self.key))


class KeepHandler(_OneHandler):
    """Puts the end of a session off."""

    async def post(self, *_names: str) -> None:
        """Keep it, where its user may."""
        watched = self.context.keeper.sessions.get(self.key)
        if watched is not None and not watched.decision.may_keep:
            raise Refused(HTTPStatus.CONFLICT, msg("The end of this session cannot be put off."))
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
