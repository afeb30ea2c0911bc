"""The culler: ends servers whose GPUs nobody uses, after a warning, and remembers what it knows of them."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail
from pai_scheduler.rest.sessions import SessionMessage
from pai_spawner.options import OPENS_FIRST, URL
from pai_spawner.startup import address_of, reach

from ..server_job import ROLE
from . import words
from .hub_client import HubClient, HubError, HubServer, ServerActivity, UsageReader, ask_activity
from .policy import (
    Action,
    Cause,
    Decision,
    Session,
    SessionFacts,
    SessionPolicy,
    SessionRecord,
    SessionSettings,
    decide,
)
from .policy_file import PolicySource

# What is remembered of sessions over a restart: what their users put off, and what they were told.

#: A session's user, and the name of the server (empty: the default one).
Key = tuple[str, str]
#: Messages to one session that are kept.
_MOST_MESSAGES = 20

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The saved state of one session; `job` is that of this start, so that the next begins anew."""

    job: str = ""
    record: SessionRecord = SessionRecord()  # noqa: RUF009 - it cannot be changed
    messages: tuple[SessionMessage, ...] = field(default=())


class Records:
    """Keeps what is remembered, in one small file that is written when something changes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[Key, Remembered] = {}
        try:
            self._known = _read(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError) as error:
            # it holds nothing that cannot be said again: whoever was warned is warned anew
            _log.error("%s cannot be read (%s); it is begun anew", path, error)

    def of(self, key: Key, job: str) -> Remembered:
        """Return what is remembered of the present start of a session."""
        known = self._known.get(key)
        return known if known is not None and known.job == job else Remembered(job)

    def set(self, key: Key, remembered: Remembered) -> None:
        """Remember it; OSError where it cannot be written."""
        before = self._known.get(key)
        if before == remembered or (before is None and remembered == Remembered(remembered.job)):
            return
        self._known[key] = remembered
        self._write()

    def add_message(self, key: Key, job: str, time: int, sender: str, text: str) -> None:
        """Remember what a session's user is to be told."""
        known = self.of(key, job)
        number = max((message["id"] for message in known.messages), default=0) + 1
        message: SessionMessage = {"id": number, "time": time, "sender": sender, "text": text}
        self.set(key, Remembered(job, known.record, (*known.messages, message)[-_MOST_MESSAGES:]))

    def forget_others(self, running: Collection[Key]) -> None:
        """Forget the sessions that do not run any more."""
        gone = self._known.keys() - set(running)
        if gone:
            for key in gone:
                del self._known[key]
            self._write()

    def _write(self) -> None:
        document = [_document(key, remembered) for key, remembered in self._known.items()]
        part = self._path.with_name(self._path.name + ".part")
        with open(part, "w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)


def _document(key: Key, remembered: Remembered) -> dict[str, Any]:
    record = remembered.record
    return {
        "user": key[0],
        "server": key[1],
        "job": remembered.job,
        "kept": record.kept and record.kept.isoformat(),
        "extensions": record.extensions,
        "warned": record.warned and record.warned.isoformat(),
        "messages": list(remembered.messages),
    }


def _read(document: list[dict[str, Any]]) -> dict[Key, Remembered]:
    return {
        (entry["user"], entry["server"]): Remembered(
            entry["job"],
            SessionRecord(_time(entry["kept"]), entry["extensions"], _time(entry["warned"])),
            tuple(entry["messages"]),
        )
        for entry in document
    }


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


# Watches over all sessions: reads what is known of them, decides, warns, and ends them with a reason.

#: Sessions that are asked at the same time.
_AT_ONCE = 16
#: Characters of a message, or of a reason.
LONGEST_TEXT = 400


#: Asks a server at an address what its kernels do, with its own token: what a user runs may keep the token
#: that it is sent, and then has no more than it had. Last: whether it has a service to be asked about.
Ask = Callable[[str, str, bool], Awaitable[ServerActivity | None]]
#: where a server's job has that
_OWN_TOKEN = "JUPYTERHUB_API_TOKEN"  # noqa: S105 - its name


@dataclass(frozen=True, slots=True)
class _Submission:
    """Parameters of a server's job: its time limit in seconds (None: no limit), its token.

    `is_service`: whether a service opens in it instead of JupyterLab.
    """

    max_run_seconds: int | None
    token: str = field(repr=False)
    is_service: bool = False

    def end(self, launched: int | None) -> datetime | None:
        """Return when the scheduler ends the job; `launched`: ms since the epoch."""
        if self.max_run_seconds is None or launched is None:
            return None
        return datetime.fromtimestamp(launched / 1000 + self.max_run_seconds, UTC)


@dataclass(frozen=True, slots=True)
class Watched:
    """A session as it was seen last."""

    server: HubServer
    session: Session
    settings: SessionSettings
    facts: SessionFacts
    decision: Decision


class SessionKeeper:
    """Looks at all sessions again and again. `clock` gives the time, with a zone."""

    def __init__(
        self,
        hub: HubClient,
        scheduler: Client,
        policy: PolicySource,
        records: Records,
        ask: Ask,
        clock: Callable[[], datetime],
    ) -> None:
        self._hub, self._scheduler, self._policy, self._ask = hub, scheduler, policy, ask
        self.records, self._clock = records, clock
        self.usage = UsageReader(scheduler)
        self.sessions: dict[Key, Watched] = {}
        self._submissions: dict[tuple[str, str], _Submission] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Look at them for ever; what goes wrong once is tried again the next time."""
        while True:
            try:
                await self.look()
            except HubError as error:
                _log.warning("sessions cannot be looked at: %s", error)
            except Exception:
                _log.exception("sessions cannot be looked at")
            await asyncio.sleep(self._policy.now.every.total_seconds())

    async def look(self) -> None:
        """Look at all sessions once, and do what is to be done; HubError."""
        policy = self._policy.refresh().policy
        servers = [server for server in await self._hub.servers() if server.ready and server.job]
        keys = {server.key for server in servers}
        self.sessions = {key: watched for key, watched in self.sessions.items() if key in keys}
        self.records.forget_others(keys)
        jobs = {(server.user, server.job) for server in servers}
        self.usage.forget_others(jobs)
        self._submissions = {job: known for job, known in self._submissions.items() if job in jobs}
        done = await asyncio.gather(
            *(self._look_at(server, policy) for server in servers), return_exceptions=True
        )
        for server, error in zip(servers, done, strict=True):
            if isinstance(error, Exception):
                _log.error("the session of %s cannot be looked at", _name(server.key), exc_info=error)

    async def look_at(self, key: Key) -> Watched | None:
        """Look at one session now; None where there is none. HubError."""
        policy = self._policy.refresh().policy
        for server in await self._hub.servers():
            if server.key == key and server.ready and server.job:
                await self._look_at(server, policy)
        return self.sessions.get(key)

    async def keep(self, key: Key) -> Watched | None:
        """Put the end of a session off, where its user may; returns how it stands then."""
        watched = self.sessions.get(key)
        if watched is None or not watched.decision.may_keep:
            return watched
        known = self.records.of(key, watched.server.job)
        record = replace(known.record, warned=None)
        if watched.decision.cause is Cause.LIFETIME:
            record = replace(record, extensions=record.extensions + 1)
        else:
            record = replace(record, kept=self._clock())
        self.records.set(key, replace(known, record=record))
        _log.info("%s keeps the session", _name(key))
        return self._decide(watched.server, watched.session, watched.settings, watched.facts)

    def tell(self, key: Key, sender: str, text: str) -> bool:
        """Leave a message for a session's user; returns whether there is such a session."""
        watched = self.sessions.get(key)
        if watched is None:
            return False
        now = int(self._clock().timestamp() * 1000)
        self.records.add_message(key, watched.server.job, now, sender, text)
        return True

    async def end(self, key: Key, why: Message) -> bool:
        """End a session, and keep with its job why; returns whether there was one.

        The job is stopped first, with the reason, as only the scheduler can keep that; then the Hub is told,
        so that its pages show the session as stopped. HubError, ApiError, UnreachableError.
        """
        watched = self.sessions.get(key)
        if watched is None:
            return False
        server = watched.server
        sentence = why.in_locale(server.locale)
        _log.info("the session of %s (%s) is ended: %s", _name(key), server.job, why)
        try:
            await self._scheduler.stop(server.user, server.job, reason=sentence)
        except ApiError as error:
            if error.status != 404:
                raise
        await self._hub.stop(server.user, server.name)
        # who looks at the list does not wait for the next round
        self.sessions.pop(key, None)
        return True

    async def _look_at(self, server: HubServer, policy: SessionPolicy) -> None:
        async with self._places:
            try:
                detail = await self._scheduler.job(server.user, server.job)
            except UnreachableError:
                return  # what was known of it stays; nothing could be done about it anyway
            except ApiError as error:
                if error.status != 404:
                    raise
                self.sessions.pop(server.key, None)
                return
            if detail["jobStatus"]["subState"] != "RUNNING":
                self.sessions.pop(server.key, None)
                return
            session = session_of(server, detail)
            settings = policy.settings(session, self._clock())
            facts = await self._facts(server, detail, session, settings)
            watched = self._decide(server, session, settings, facts, policy)
        if watched.decision.action is Action.END:
            why = words.reason(watched.decision, settings, server.started, self._clock())
            try:
                await self.end(server.key, why)
            except (HubError, ApiError, UnreachableError) as error:
                _log.warning("%s cannot be ended yet: %s", _name(server.key), error)

    def _decide(
        self,
        server: HubServer,
        session: Session,
        settings: SessionSettings,
        facts: SessionFacts,
        policy: SessionPolicy | None = None,
    ) -> Watched:
        now, known = self._clock(), self.records.of(server.key, server.job)
        local = (policy or self._policy.now.policy).local(now)
        decision = decide(facts, settings, known.record, now, local)
        warned = None if decision.action is Action.KEEP else known.record.warned or now
        self.records.set(server.key, replace(known, record=replace(known.record, warned=warned)))
        watched = Watched(server, session, settings, facts, decision)
        self.sessions[server.key] = watched
        return watched

    async def _facts(
        self, server: HubServer, detail: JobDetail, session: Session, settings: SessionSettings
    ) -> SessionFacts:
        usage = await self.usage.read(server.user, server.job, settings)
        asks_usage = (session.gpus and settings.gpu_below) or settings.cpu_below
        submission = await self._submission(server)
        activity = await self._activity(server, detail, submission) if submission else None
        launched = detail["jobStatus"]["appLaunchedTime"]
        limit = submission.end(launched) if submission else None
        if activity is None or (usage is None and asks_usage):
            return SessionFacts(server.started, known=False, limit=limit)
        return SessionFacts(
            server.started,
            True,
            activity.kernels_busy,
            activity.connections,
            activity.kernel_used,
            activity.terminal_used,
            activity.service_used,
            usage.gpu_used if usage and session.gpus else None,
            usage.cpu_used if usage else None,
            limit,
        )

    async def _submission(self, server: HubServer) -> _Submission | None:
        """Return what the server's job was submitted with, which never changes; None: nobody tells."""
        job = (server.user, server.job)
        if job not in self._submissions:
            try:
                config = await self._scheduler.config(*job)
            except (UnreachableError, ApiError):
                return None
            envs = config.get("jobEnvs") or {}
            self._submissions[job] = _Submission(
                (config.get("extras") or {}).get("maxRunSeconds"),
                str(envs.get(_OWN_TOKEN, "")),
                envs.get(OPENS_FIRST) == URL,
            )
        return self._submissions[job]

    async def _activity(
        self, server: HubServer, detail: JobDetail, submission: _Submission
    ) -> ServerActivity | None:
        address = address_of(detail)
        if address is None:
            return None
        try:
            there = await reach(self._scheduler, server.user, server.job, address)
        except (UnreachableError, ApiError):
            return None
        return await self._ask(
            f"http://{there.ip}:{there.port}{server.path}", submission.token, submission.is_service
        )


def session_of(server: HubServer, detail: JobDetail) -> Session:
    """Return a running server as rules see it; the GPUs that it has are those that its job was given."""
    (task, *_) = detail["taskRoles"][ROLE]["taskStatuses"]
    gpus = task["containerGpus"].bit_count()
    return Session(server.user, server.name, server.groups, gpus, str(server.options.get("profile") or ""))


def asker(http: aiohttp.ClientSession) -> Ask:
    """Return what asks servers over HTTP."""

    async def ask(address: str, token: str, is_service: bool) -> ServerActivity | None:
        return await ask_activity(http, address, token, is_service=is_service)

    return ask


def _name(key: Key) -> str:
    return "/".join(filter(None, key))
