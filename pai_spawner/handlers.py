"""Handlers that the spawner adds to the Hub: the form's data, and changes of what is free."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from http import HTTPStatus
from typing import Any
from weakref import WeakKeyDictionary

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError
from traitlets import TraitError
from traitlets.config import Config

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import choose_locale

from .clients import client_for
from .messages import msg
from .options import options_from_form, options_schema
from .profiles import InvalidProfiles, read_profiles
from .settings import SpawnerSettings
from .spawner import PAISpawner

# One look-out of the Hub's for changes of the scheduler, for all pages that show what would start.

#: Seconds between two attempts to reach a scheduler that is away.
_TRY_EVERY = 2.0
#: Seconds that somebody new waits for a scheduler that does not answer.
_PATIENCE = 5.0


class ChangeFeed:
    """Waits for changes at a scheduler while anybody listens: one request, however many listen."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: set[asyncio.Event] = set()
        self._following: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Event]:
        """Give what is set at each change from now on, and when the scheduler goes away or comes back."""
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            if self._following is None:
                self._answered.clear()
                self._following = asyncio.create_task(self._follow())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), _PATIENCE)
            yield news
        finally:
            self._listeners.discard(news)
            if not self._listeners and self._following is not None:
                self._following.cancel()
                self._following = None

    async def _follow(self) -> None:
        known: str | None = None
        away = False
        while True:
            try:
                version = await self._client.changes(known)
            except (UnreachableError, ApiError):
                if not away:
                    self._tell()
                away = True
                await asyncio.sleep(_TRY_EVERY)
                continue
            if away or (known is not None and version != known):
                self._tell()
            known, away = version, False
            self._answered.set()

    def _tell(self) -> None:
        for news in self._listeners:
            news.set()


_feeds: WeakKeyDictionary[Client, ChangeFeed] = WeakKeyDictionary()


def change_feed(url: str, token: str) -> ChangeFeed:
    """Return the feed of this address and identity that belongs to the running loop."""
    client = client_for(url, token, "en")
    if client not in _feeds:
        _feeds[client] = ChangeFeed(client)
    return _feeds[client]


# Answers before Start: the Hub's address that the form and programs ask what a server would do.

#: below the Hub's own prefix
PATTERN = r"/api/pai/choosing/([^/]+)(?:/([^/]*))?"


class ChoosingHandler(APIHandler):  # type: ignore[misc]  # jupyterhub has no types
    """`/hub/api/pai/choosing/:user/:server`; for who may start that server. The default one has no name."""

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str, server_name: str | None = None) -> None:
        """Tell what the user may choose, as JSON Schema, and what was chosen last."""
        spawner = self._spawner(user_name, server_name or "")
        offer = spawner.offer
        self._answer(
            {
                "schema": options_schema(offer),
                "profiles": [
                    {
                        "slug": one.slug,
                        "display_name": one.name.in_locale(self._locale),
                        "description": one.description.in_locale(self._locale),
                    }
                    for one in offer.profiles
                    if one.slug
                ],
                "last": dict(spawner.last_options()),
            }
        )

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def post(self, user_name: str, server_name: str | None = None) -> None:
        """Tell what a start with the options in the body would do: `{"options": {…}}`, or a form's fields as
        `{"form": {"name": ["value"]}}`."""
        spawner = self._spawner(user_name, server_name or "")
        answer = await spawner.answer(self._options(), self._locale)
        self._answer(answer.to_json(self._locale))

    def _spawner(self, user_name: str, server_name: str) -> PAISpawner:
        user = self.find_user(user_name)
        # for a server that there is not yet the default one stands: little depends on which it is
        known = user is not None and server_name in user.orm_spawners
        spawner = user and user.spawners[server_name if known else ""]
        if not isinstance(spawner, PAISpawner):
            raise HTTPError(404)
        return spawner

    def _options(self) -> dict[str, Any]:
        body = self.get_json_body()
        match body:
            case {"options": dict() as options} if len(body) == 1:
                return options
            case {"form": dict() as form} if len(body) == 1 and _are_lists(form.values()):
                return options_from_form(form)
        text = msg("The body must look like {example}.", example='{"options": {"cpus": 2}}')
        raise HTTPError(400, text.in_locale(self._locale))

    @property
    def _locale(self) -> str:
        return choose_locale(self.request.headers.get("Accept-Language", ""))

    def _answer(self, answer: dict[str, Any]) -> None:
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(answer, ensure_ascii=False))


def _are_lists(values: Iterable[object]) -> bool:
    return all(isinstance(one, list) for one in values)


# The Hub's address from which an open options form hears that it should ask again.

#: below the Hub's own prefix
CHANGES_PATTERN = r"/api/pai/changes/([^/]+)"
#: Pages of one person that may listen at once.
MOST_STREAMS = 10
#: Seconds between two signs of life, below the idle limits of common proxies; and after which a page has to
#: come again, so that who was logged out hears nothing more.
HEARTBEAT = 15.0
_LONGEST = 600.0
#: Seconds between two changes that are told: the first is told at once, and where they do not cease, pages
#: ask no more often than those do that are told of none.
SHORTEST_PAUSE, LONGEST_PAUSE = 2.0, 8.0

_open: Counter[str] = Counter()


class AvailabilityHandler(APIHandler):  # type: ignore[misc]  # jupyterhub has no types
    """`/hub/api/pai/changes/:user`: server-sent events, for who may start that user's servers.

    They say only that something has changed: what is free, or a queue.
    """

    def initialize(self) -> None:
        """Begin with a reader who is there."""
        super().initialize()
        self._gone = asyncio.Event()

    def get_content_type(self) -> str:
        """Return what it sends."""
        return "text/event-stream"

    def on_connection_close(self) -> None:
        """Note that the reader has left."""
        super().on_connection_close()
        self._gone.set()

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str) -> None:
        """Tell of changes until the reader leaves, ten minutes at most."""
        user = self.find_user(user_name)
        spawner = user and user.spawners[""]
        if not isinstance(spawner, PAISpawner):
            raise HTTPError(404)
        with _counted(self.current_user.name, choose_locale(self.request.headers.get("Accept-Language", ""))):
            self.set_header("Cache-Control", "no-store")
            self.set_header("X-Accel-Buffering", "no")
            async with change_feed(spawner.scheduler_url, spawner.scheduler_token).listening() as news:
                with contextlib.suppress(StreamClosedError, TimeoutError):
                    async with asyncio.timeout(_LONGEST):
                        await self._tell(news)

    async def _tell(self, news: asyncio.Event) -> None:
        await self._send("retry: 2000\n\n")
        pause = SHORTEST_PAUSE
        while not self._gone.is_set():
            if await self._within(news, HEARTBEAT):
                news.clear()
                await self._send("data: changed\n\n")
                # where much happens it is told together
                await self._within(self._gone, pause)
                pause = next_pause(pause, changed=news.is_set())
            else:
                await self._send(": still here\n\n")

    async def _within(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for something to happen, for so long; tell whether it has."""
        gone, happened = asyncio.create_task(self._gone.wait()), asyncio.create_task(event.wait())
        try:
            await asyncio.wait({gone, happened}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            happened.cancel()
        return event.is_set()

    async def _send(self, text: str) -> None:
        self.write(text)
        await self.flush()


def next_pause(pause: float, *, changed: bool) -> float:
    """Return how long to wait after the next change, where something `changed`, or not, in the last pause."""
    return min(2 * pause, LONGEST_PAUSE) if changed else SHORTEST_PAUSE


@contextlib.contextmanager
def _counted(name: str, locale: str) -> Iterator[None]:
    """Count one more page of a person's; refuses one too many."""
    if _open[name] >= MOST_STREAMS:
        text = msg("You have {count} pages open that listen for changes. Close one.", count=MOST_STREAMS)
        raise HTTPError(HTTPStatus.TOO_MANY_REQUESTS, text.in_locale(locale))
    _open[name] += 1
    try:
        yield
    finally:
        _open[name] -= 1
        if not _open[name]:
            del _open[name]


# What the Hub needs beside its spawner class: `prepare_hub(c)`, the last line of `jupyterhub_config.py`.


def prepare_hub(c: Any) -> None:
    """Add the addresses that the form asks, and check the profiles: wrong ones end the Hub's start."""
    own_handlers = [(PATTERN, ChoosingHandler), (CHANGES_PATTERN, AvailabilityHandler)]
    c.JupyterHub.extra_handlers = [*_given(c.JupyterHub, "extra_handlers"), *own_handlers]
    own = {name: c.PAISpawner[name] for name in SpawnerSettings.class_trait_names() if name in c.PAISpawner}
    try:
        settings = SpawnerSettings(config=Config(SpawnerSettings=own))
        read_profiles(settings.profiles, settings.policy)
    except (InvalidProfiles, TraitError) as error:
        raise SystemExit(str(error)) from None


def _given(section: Config, name: str) -> list[Any]:
    return list(section[name]) if name in section else []
