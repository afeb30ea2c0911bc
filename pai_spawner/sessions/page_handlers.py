"""The administrators' page: sessions, jobs, virtual clusters, machines, and what can be done about them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from http import HTTPStatus
from importlib import resources
from typing import Any, ClassVar
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pai_scheduler.i18n import Message

from ..messages import msg
from . import handlers, words
from .handlers import Handler, SessionRefused

#: Jobs, newest first, among which those that run are looked for.
MOST_JOBS = 2000
#: What is said when something was done, by the word in the address that the browser is sent to.
_DONE: Mapping[str, Message] = {
    "end": msg("The session is being ended."),
    "message": msg("The message is left; JupyterLab shows it within half a minute."),
    "stop": msg("The job is being stopped."),
    "share": msg("The shares of the virtual cluster were changed."),
    "close": msg("Nothing new starts on the machine any more; what runs there goes on."),
    "open": msg("Servers and jobs may start on the machine again."),
}


class _PageHandler(Handler):
    """Shows pages; who is not logged in is sent to the Hub's login."""

    def nobody(self) -> None:
        """Send a browser to the login, everything else away."""
        if self.request.method in ("GET", "HEAD"):
            self.redirect(self.get_login_url())
            return
        super().nobody()

    async def check(self) -> None:
        """Let administrators in only."""
        await self.must_be_administrator()

    def show_error(self, status: int, message: str) -> None:
        """Show a refusal as a page."""
        self._show("error.html", status=status, message=message)

    def _show(self, name: str, **values: Any) -> None:
        locale = getattr(self, "locale_asked", "en")

        def translated(template: str, **parts: Any) -> str:
            return msg(template, **parts).in_locale(locale)

        page = _templates().get_template(name)
        self.finish(
            page.render(
                t=translated,
                language=locale.replace("_", "-"),
                prefix=self.context.prefix,
                hub=self.context.hub_prefix,
                **values,
            )
        )


class PageHandler(_PageHandler):
    """Shows all there is."""

    async def get(self) -> None:
        """Show it; `q` leaves those whose user or name has it."""
        if self._finished:  # sent to the login
            return
        scheduler, keeper, now = self.context.scheduler, self.context.keeper, datetime.now(UTC)
        jobs, clusters, nodes = await asyncio.gather(
            scheduler.jobs(limit=MOST_JOBS), scheduler.virtual_clusters(), scheduler.nodes()
        )
        wanted = self.get_query_argument("q", "").strip()
        sessions = [
            handlers.row(keeper, watched, self.locale_asked, now)
            for _, watched in sorted(keeper.sessions.items())
        ]
        of_sessions = {(session["user"], session["job"]) for session in sessions}
        running = [
            job
            for job in jobs
            if job["subState"] != "ENDED" and (job["username"], job["name"]) not in of_sessions
        ]
        shown = [job for job in running if _has(wanted, job["username"], job["name"])]
        # (whoever has a session is a user)
        strangers = await self.context.hub.strangers(
            {job["username"] for job in shown} - {session["user"] for session in sessions}
        )
        done = _DONE.get(self.get_query_argument("done", ""))
        self._show(
            "sessions.html",
            xsrf=self.xsrf_token.decode("ascii"),
            person=self.person,
            wanted=wanted,
            done=self.say(done) if done else "",
            sessions=[one for one in sessions if _has(wanted, one["user"], one["server"], one["job"])],
            jobs=shown,
            strangers=strangers,
            cut_off=len(jobs) >= MOST_JOBS,
            clusters=sorted(clusters.items()),
            nodes=nodes,
            now=handlers.ms(now),
            since=lambda ms: self.say(_since(ms, now)),
            until=lambda ms: self.say(_since(2 * handlers.ms(now) - ms, now)),
            iso=lambda ms: datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds"),
        )


class ActionHandler(_PageHandler):
    """Does what a form of the page asks for, and goes back to it."""

    async def post(self) -> None:
        """Do it."""
        action = self.get_body_argument("action", "")
        do = self._ACTIONS.get(action)
        if do is None:
            raise SessionRefused(HTTPStatus.BAD_REQUEST, msg("There is no action “{name}”.", name=action))
        await do(self)
        query = urlencode({"done": action, "q": self.get_body_argument("q", "")})
        self.redirect(f"{self.context.prefix}?{query}", status=HTTPStatus.SEE_OTHER)

    async def _end(self) -> None:
        key = (self.get_body_argument("user"), self.get_body_argument("server", ""))
        why = self.text("reason", self.get_body_argument("text", ""))
        if not await self.context.keeper.end(key, words.by_administrator(self.person, why)):
            raise self._gone(key)

    async def _message(self) -> None:
        key = (self.get_body_argument("user"), self.get_body_argument("server", ""))
        text = self.text("text", self.get_body_argument("text", ""), needed=True)
        if not self.context.keeper.tell(key, self.person, text):
            raise self._gone(key)

    async def _stop(self) -> None:
        user, job = self.get_body_argument("user"), self.get_body_argument("job")
        why = words.by_administrator(self.person, self.text("reason", self.get_body_argument("text", "")))
        # nobody knows the language of the job's user here
        await self.context.scheduler.stop(user, job, reason=str(why))

    async def _share(self) -> None:
        name = self.get_body_argument("cluster")
        capacity, most = (self._per_cent(field) for field in ("capacity", "maxCapacity"))
        await self.context.scheduler.set_virtual_cluster(name, capacity, max_capacity=most)

    async def _close(self) -> None:
        why = self.text("reason", self.get_body_argument("text", ""), needed=True)
        # the scheduler knows only this service
        await self.context.scheduler.close_node(self.get_body_argument("node"), f"{why} ({self.person})")

    async def _open(self) -> None:
        await self.context.scheduler.open_node(self.get_body_argument("node"))

    def _per_cent(self, field: str) -> float:
        text = self.get_body_argument(field, "")
        try:
            number = float(text)
        except ValueError:
            number = -1.0
        if not 0 <= number <= 100:
            raise SessionRefused(
                HTTPStatus.BAD_REQUEST,
                msg("{name} must be a number from 0 to 100, not “{value}”.", name=field, value=text),
            )
        return number

    def _gone(self, key: tuple[str, str]) -> SessionRefused:
        name = "/".join(filter(None, key))
        return SessionRefused(HTTPStatus.NOT_FOUND, msg("There is no running session {name}.", name=name))

    _ACTIONS: ClassVar[Mapping[str, Callable[[ActionHandler], Awaitable[None]]]] = {
        "end": _end,
        "message": _message,
        "stop": _stop,
        "share": _share,
        "close": _close,
        "open": _open,
    }


def _since(ms: int, now: datetime) -> Message:
    return words.duration(now - datetime.fromtimestamp(ms / 1000, UTC)) if ms else words.duration(timedelta())


def _has(wanted: str, *texts: str) -> bool:
    return any(wanted.casefold() in text.casefold() for text in texts)


@cache
def _templates() -> Environment:
    folder = str(resources.files(__package__).joinpath("templates"))
    return Environment(loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined)
