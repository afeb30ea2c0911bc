"""Options of a start: offers on the form, choices among them, the limits of a person's sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from jupyterhub.handlers.pages import SpawnHandler

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message
from pai_spawner.sessions.policy import refusal

from .availability import Supply, supply_of
from .clients import client_for
from .models import OPENS_FIRST, URL, Offer, Options, Profile, ProfileService
from .options import InvalidOptions, parse_options
from .options_form import render_form
from .profiles import offer_to, read_profiles
from .server_job import server_job
from .sessions.policy import Session
from .sessions.policy_file import PolicyError
from .sessions.policy_source import PolicySource
from .settings import SpawnerSettings
from .start_preview import StartPreview, answer_to, limited, refusal_of, unreachable, wrong_options
from .termination import ServerNotStarted

# Whether a server may start beside those that its user, and its user's groups, have already.


def limit_refusal(spawner: Choosing, options: Options) -> Message | None:
    """Return why a server with such options may not start now; None: it may.

    Nothing is waited for in here: until the spawner that asks has a job's name, no other one is let pass.
    """
    if not spawner.sessions_file:
        return None
    try:
        policy = _source(spawner.sessions_file).refresh().policy
    except PolicyError as error:
        return error.message
    session = _session(spawner, options.gpus, options.profile)
    return refusal(policy, session, list(_others(spawner)), datetime.now(UTC))


@cache
def _source(path: str) -> PolicySource:
    return PolicySource(Path(path))


def _others(spawner: Choosing) -> Iterator[Session]:
    """Return the sessions of all users that run, or are being started, in this Hub."""
    everybody = spawner.user.settings.get("users")
    users = list(everybody.values()) if everybody is not None else [spawner.user]
    for user in users:
        for other in user.spawners.values():
            if other is not spawner and other.active and getattr(other, "job_name", ""):
                yield _session(other, other.gpus, str((other.user_options or {}).get("profile") or ""))


def _session(spawner: Choosing, gpus: int, profile: str) -> Session:
    groups = frozenset(group.name for group in spawner.user.groups)
    return Session(spawner.user.name, spawner.name, groups, gpus, profile)


# The choosing half of `PAISpawner`: the form, the answer before Start, and the check of what was chosen.

#: a job that is only asked about has a name that no server's has
_NAME_OF_A_QUESTION = "notebook"


class Choosing(SpawnerSettings):
    """The part of `PAISpawner` up to the submission of its server's job."""

    #: what was chosen and refused, to be shown again; on the user's default server, whose form the Hub shows
    rejected: Mapping[str, Any] | None = None
    #: the language of whoever chooses or starts
    _locale = "en"
    # of JupyterHub's Spawner
    user: Any
    user_options: Any
    orm_spawner: Any
    handler: Any
    name: str
    cmd: list[str]
    ip: str
    log: Any
    get_args: Callable[[], list[str]]

    @cached_property
    def _profiles(self) -> tuple[Profile, ...]:
        return read_profiles(self.profiles, self.policy)

    @property
    def offer(self) -> Offer:
        """Return what this server's user may choose."""
        groups = {group.name for group in self.user.groups}
        return offer_to(self._profiles, groups, self.policy)

    def read_options(self, raw: Mapping[str, Any], locale: str) -> Options:
        """Check what was chosen; raises `ServerNotStarted` in the person's language."""
        try:
            return parse_options(raw, self.offer)
        except InvalidOptions as error:
            self._show_again(raw)
            raise ServerNotStarted(error.in_locale(locale), reason="options") from error

    def last_options(self) -> Mapping[str, Any]:
        """Return what was chosen last time, where that is still possible, or was refused just now."""
        if self.rejected is not None:
            return self.rejected
        stored = self.orm_spawner.user_options if self.orm_spawner else None
        try:
            return parse_options(stored or {}, self.offer).to_json()
        except InvalidOptions:
            return {}

    def job_of(self, name: str, options: Options, env: Mapping[str, str]) -> dict[str, Any]:
        """Return the job that a server with these options is."""
        service = self.service_of(options)
        return server_job(
            name,
            self.name,
            options,
            {**env, OPENS_FIRST: URL} if service else env,
            command=[*self.cmd, *self.get_args(), *(service.arguments(self._locale) if service else ())],
            address=self.ip,
            home=self.home_in_container,
            tutorials=self.tutorials,
            shared_folders=self._shared_folders_of(options),
        )

    def service_of(self, options: Options) -> ProfileService | None:
        """Return what opens in a server with these options instead of JupyterLab."""
        profile = self.offer.find(options.profile)
        return profile.service if profile else None

    def _shared_folders_of(self, options: Options) -> Sequence[str]:
        profile = self.offer.find(options.profile)
        if profile is not None and profile.shared_folders is not None:
            return profile.shared_folders
        return tuple(self.shared_folders)

    async def check_with_scheduler(self, client: Client, config: Mapping[str, Any]) -> None:
        """Refuse a server that the scheduler would refuse, or that would never start."""
        verdict = await client.validate(config, user=self.user.name)
        if (reason := refusal_of(verdict)) is not None:
            self._show_again(self.user_options)
            kind = "options" if verdict["errors"] else "never-fits"
            raise ServerNotStarted(reason, reason=kind)

    def _show_again(self, raw: Mapping[str, Any]) -> None:
        """Keep what was refused for the form that the Hub shows next, which is the default server's."""
        if isinstance(self.handler, SpawnHandler):
            self.user.spawner.rejected = dict(raw)

    async def answer(self, raw: Mapping[str, Any], locale: str) -> StartPreview:
        """Say what a start with these options would do; nothing is started or kept."""
        offer = self.offer
        try:
            options = parse_options(raw, offer)
        except InvalidOptions as error:
            return wrong_options(error.problems)
        if (limit := limit_refusal(self, options)) is not None:
            return limited(options, limit)
        client = self.scheduler(locale)
        try:
            question = self.job_of(_NAME_OF_A_QUESTION, options, {})
            verdict, available = await asyncio.gather(
                client.validate(question, user=self.user.name), client.available(self.user.name)
            )
        except (UnreachableError, ApiError) as error:
            self.log.warning("nobody says whether a server would start: %s", error)
            return unreachable(options)
        return answer_to(options, verdict, available, offer)

    async def form_in(self, locale: str) -> str:
        """Render the form, with what is free now beside every choice."""
        offer, chosen = self.offer, self.last_options()
        self.rejected = None
        supply = await self._supply(locale)
        answer = await self.answer(chosen, locale) if supply is not None and offer.profiles else None
        title = self.orm_spawner.display_name or self.name if self.name and self.orm_spawner else ""
        address = f"{self.user.name}/{self.name}" if self.name else str(self.user.name)
        return render_form(offer, supply, chosen, locale, answer=answer, address=address, server=title)

    async def _supply(self, locale: str) -> Supply | None:
        client = self.scheduler(locale)
        try:
            return supply_of(
                *await asyncio.gather(
                    client.nodes(), client.virtual_clusters(), client.available(self.user.name)
                )
            )
        except (UnreachableError, ApiError) as error:
            self.log.warning("the options form shows no numbers: %s", error)
            return None

    def scheduler(self, locale: str) -> Client:
        """Return the client of the scheduler, in a language."""
        return client_for(self.scheduler_url, self.scheduler_token, locale)
