"""Authentication for SSH: who logs in, by which proof, and which task a login name means."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from pai_scheduler.core.model import Job, State, Task
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, forbidden, invalid_parameters, no_task
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.ssh.login import LoginName, SessionToken, readings
from pai_scheduler.ssh.public_key import PublicKey, PublicKeyError

from .context import ServiceContext

# The public keys that users register: such a key opens all of that user's tasks.

_log = logging.getLogger(__name__)

#: public keys that one user may register
_MOST_KEYS = 50


class PublicKeys:
    """The registered keys."""

    def __init__(self, context: ServiceContext) -> None:
        self._store, self._reader, self._writer = context.store, context.reader, context.writer
        self._now = context.clock

    async def has(self, user: str, fingerprint: str) -> bool:
        """Return whether a user registered a key."""
        return await self._reader.read(self._store.has_public_key, user, fingerprint)

    async def list(self, principal: Principal, user: str) -> Sequence[tuple[PublicKey, int]]:
        """List the public keys that a user registered, and when (ms since the epoch)."""
        _check(principal, user)
        return await self._reader.read(self._store.public_keys, user)

    async def add(self, principal: Principal, user: str, line: str) -> tuple[PublicKey, int]:
        """Register a public key, durably: it opens every task of the user's from now on.

        Gives it and when it was registered first. RequestError: it is none, or there are too many.
        """
        _check(principal, user)
        try:
            key = PublicKey.parse(line)
        except PublicKeyError as error:
            raise invalid_parameters(error.message, [SpecError("$.key", error.message)]) from error
        added = await self._writer.keep(self._store.add_public_key, user, key, self._now(), _MOST_KEYS)
        if added is None:
            text = msg("There may be {most} public keys at most: remove one first.", most=_MOST_KEYS)
            raise RequestError(429, "TooManyKeysError", text)
        _log.info(
            "a public key was registered", extra={"user": user, "by": principal.name, "key": key.fingerprint}
        )
        return key, added

    async def remove(self, principal: Principal, user: str, fingerprint: str) -> None:
        """Forget a public key, durably: who logged in with it opens nothing more. RequestError: none such."""
        _check(principal, user)
        if not await self._writer.keep(self._store.remove_public_key, user, fingerprint):
            text = msg("User {user} has no public key {fingerprint}.", user=user, fingerprint=fingerprint)
            raise RequestError(404, "NoPublicKeyError", text)
        _log.info("a public key was removed", extra={"user": user, "by": principal.name, "key": fingerprint})


def _check(principal: Principal, user: str) -> None:
    if not principal.may_act_for(user):
        raise forbidden(msg("Only an administrator may see and change the keys of user {user}.", user=user))


# Which job and which of its tasks a login name means, among those that the person may see.

#: what the person's default notebook server, which has no name in JupyterHub, is called
DEFAULT_SERVER = "notebook"
#: names that a refusal lists
_MOST_LISTED = 10


def named(jobs: Iterable[Job], name: str) -> Job | None:
    """Find a job by its name or its server's name in JupyterHub; the newest where several have it."""
    found = list(jobs)
    server = "" if name == DEFAULT_SERVER else name
    for fits in (lambda job: job.name == name, lambda job: _server(job) == server):
        if fitting := [job for job in found if fits(job)]:
            return max(fitting, key=lambda job: (job.created, job.order))
    return None


def choose(
    names: Sequence[LoginName], jobs: Iterable[Job], waiting: Callable[[Job], Message | None]
) -> tuple[Job, Task]:
    """Choose among `jobs` the one that a login name means in one of its readings, and the task.

    RequestError: none is meant (404), several are, or it does not run (409). `waiting` says why a job waits.
    """
    live = [job for job in jobs if not job.is_decided]
    refusal = None
    for name in names:
        theirs = [job for job in live if job.user == name.user]
        try:
            job = _job(name, theirs)
        except RequestError as error:
            refusal = refusal or error
        else:
            return job, _task(job, name.task, waiting)
    raise refusal or RequestError(404, "NoJobError", msg("This names no task."))


def running(job: Job) -> list[Task]:
    """List the tasks of a job that can be entered, in the order of its roles."""
    if job.attempt is None or not job.attempt.tasks:
        return []
    return [task for task in job.in_gang_order(job.attempt) if _runs(task)]


def _job(name: LoginName, theirs: Sequence[Job]) -> Job:
    if name.job:
        job = named(theirs, name.job)
        if job is None:
            text = msg(
                "No job {name} of user {user} runs. {there}",
                name=name.job,
                user=name.user,
                there=_there(theirs),
            )
            raise RequestError(404, "NoJobError", text)
        return job
    there = [job for job in theirs if running(job)]
    if not there:
        raise RequestError(404, "NoJobError", msg("No job of user {user} runs.", user=name.user))
    if len(there) > 1:
        text = msg("Several jobs run: log in as one of {names}.", names=_listed(_logins(there)))
        raise RequestError(409, "ConflictJobError", text)
    return there[0]


def _task(job: Job, hostname: str, waiting: Callable[[Job], Message | None]) -> Task:
    if hostname:
        tasks = job.attempt.tasks.values() if job.attempt else ()
        known = {f"{role.name}-{index}" for role in job.spec.task_roles for index in range(role.task_number)}
        if hostname not in known:
            raise no_task(job.spec, hostname)
        for task in tasks:
            if task.ref.hostname == hostname and _runs(task):
                return task
            if task.ref.hostname == hostname and task.state.ended:
                text = msg("Task {task} of job {name} has ended.", task=hostname, name=job.name)
                raise RequestError(409, "ConflictJobError", text)
    there = running(job)
    if hostname or (job.state is State.WAITING and not there):
        reason = waiting(job) or msg("Its tasks are being started.")
        text = msg("Job {name} does not run yet. {reason}", name=job.name, reason=reason)
        raise RequestError(409, "ConflictJobError", text)
    if not there:
        raise RequestError(409, "ConflictJobError", msg("No task of job {name} runs.", name=job.name))
    if len(there) > 1:
        names = _listed(str(LoginName(job.user, job.name, task.ref.hostname)) for task in there)
        text = msg("Job {name} has several tasks: log in as one of {names}.", name=job.name, names=names)
        raise RequestError(409, "ConflictJobError", text)
    return there[0]


def _runs(task: Task) -> bool:
    return task.started is not None and not task.state.ended and not task.killing


def _server(job: Job) -> str | None:
    session = job.spec.extras.get("session")
    name = session.get("server") if isinstance(session, dict) else None
    return name if isinstance(name, str) else None


def _there(jobs: Sequence[Job]) -> Message:
    there = [job for job in jobs if running(job)]
    if not there:
        return msg("There is none.")
    return msg("There are: {names}.", names=_listed(job.name for job in there))


def _logins(jobs: Iterable[Job]) -> list[str]:
    return [str(LoginName(job.user, job.name)) for job in jobs]


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    return ", ".join(found[:_MOST_LISTED]) + (" …" if len(found) > _MOST_LISTED else "")


# Who logs in for SSH, by which proof, and whether that is still good.

#: Characters of the longest login name that is looked at: a user, a job, a role and an index.
_LONGEST_LOGIN = 1000
#: ms for which somebody who logged in by a token need not be looked up again
_FRESH_MS = 60_000
#: of those who are in, how many are asked about at once: the Hub may have to say whose token it is
_ASKED_AT_ONCE = 8


class Users(Protocol):
    """Knows who people are, as `api.auth.Authenticator`; RequestError where nobody can be asked."""

    async def identify(self, token: str) -> Principal | None:
        """Return whose token this is; None for nobody's."""

    async def find(self, name: str) -> Principal | None:
        """Find a user by name; None where there is none."""


@dataclass(frozen=True, slots=True)
class HeldLogin:
    """A login that is still open: the name, its sealed session token, and what it was proved by."""

    login: str
    sealed: str
    method: str
    credential: str = field(repr=False)


class Authentication:
    """Finds out who it is. `unended` lists the jobs of a user that have not ended; `clock` gives ms."""

    def __init__(
        self,
        keys: JobKeys,
        public_keys: PublicKeys,
        unended: Callable[[str], Iterable[Job]],
        clock: Callable[[], int],
    ) -> None:
        self._keys, self._public_keys = keys, public_keys
        self._unended, self._now = unended, clock

    async def login(
        self, users: Users, login: str, method: str, credential: str
    ) -> tuple[SessionToken, str] | None:
        """Return who logs in with a token or a public key, and return the sealed session token; None: nobody.

        The same for a wrong user, job or key, so that nobody learns which there are. That a public key's
        owner is there the gateway has made sure of. RequestError: nobody can be asked just now.
        """
        if len(login) > _LONGEST_LOGIN or not _is_text(login) or not _is_text(credential):
            return None
        names = readings(login)
        if method == "password":
            session_token = await self._by_token(users, login, names, credential)
        else:
            session_token = await self._by_key(users, login, names, credential)
        return None if session_token is None else (session_token, session_token.sealed(self._keys.signature))

    def read_token(self, login: str, sealed: str) -> SessionToken:
        """Open the sealed session token of a login; RequestError where it is not ours, or another login's."""
        session_token = SessionToken.opened(sealed, self._keys.signature)
        if session_token is None or session_token.login != login:
            raise nobody()
        return session_token

    async def still(self, users: Users, session_token: SessionToken) -> Principal:
        """Return who this is now; RequestError where it is nobody any more."""
        if session_token.proof == "key" and not await self._registered(
            users, session_token.user, session_token.key
        ):
            raise nobody()
        if session_token.proof != "token":
            return Principal(session_token.user)
        principal: Principal | None = Principal(session_token.user, session_token.admin)
        if session_token.issued + _FRESH_MS < self._now():
            # (where nobody can be asked, who it was is what we know)
            with suppress(RequestError):
                principal = await users.find(session_token.user)
        if principal is None:
            raise nobody()
        return principal

    async def revoked(self, users: Users, held: Sequence[HeldLogin]) -> list[int]:
        """Return the places of those who may not stay: their key or token is good no more, or they are gone.

        About whom nobody can be asked just now, nobody has said that they are gone.
        """
        asking = asyncio.Semaphore(_ASKED_AT_ONCE)
        away = False

        async def may_stay(one: HeldLogin) -> bool:
            nonlocal away
            async with asking:
                try:
                    return away or await self._may_stay(users, one)
                except RequestError as error:
                    away = away or error.status >= 500
                    return error.status >= 500

        stay = await asyncio.gather(*map(may_stay, held))
        return [place for place, stays in enumerate(stay) if not stays]

    async def _by_token(
        self, users: Users, login: str, names: Sequence[LoginName], token: str
    ) -> SessionToken | None:
        if not token.strip():
            return None
        try:
            principal = await users.identify(token)
        except RequestError as error:
            if error.status >= 500:
                raise
            return None  # a token that is good for something else
        if principal is None or not any(principal.may_act_for(name.user) for name in names):
            return None
        return SessionToken(login, principal.name, "token", self._now(), admin=principal.admin)

    async def _by_key(
        self, users: Users, login: str, names: Sequence[LoginName], line: str
    ) -> SessionToken | None:
        try:
            key = PublicKey.parse(line)
        except PublicKeyError:
            return None
        for name in names:
            if job := self._job_of(name, key):
                return SessionToken(login, job.user, "job", self._now(), job=job.id)
        for name in names:
            if await self._registered(users, name.user, key.fingerprint):
                return SessionToken(login, name.user, "key", self._now(), key=key.fingerprint)
        return None

    def _job_of(self, name: LoginName, key: PublicKey) -> Job | None:
        """Find the job whose own key this is, among those that a login name may mean."""
        theirs = list(self._unended(name.user))
        if name.job:
            job = named(theirs, name.job)
            theirs = [] if job is None else [job]
        own = [job for job in theirs if key.is_key(self._keys.identity(job.id).public)]
        return own[0] if own else None

    async def _registered(self, users: Users, user: str, fingerprint: str) -> bool:
        """Return whether a user, who is still there, registered a key."""
        if not await self._public_keys.has(user, fingerprint):
            return False
        try:
            return await users.find(user) is not None
        except RequestError:
            return True  # nobody can be asked, and nobody has said that the user is gone

    async def _may_stay(self, users: Users, held: HeldLogin) -> bool:
        session_token = self.read_token(held.login, held.sealed)
        if session_token.proof == "key":
            return await self._registered(users, session_token.user, session_token.key)
        if session_token.proof == "job":
            return await users.find(session_token.user) is not None
        again = await self._by_token(users, held.login, readings(held.login), held.credential)
        return again is not None and again.user == session_token.user


def nobody() -> RequestError:
    """Return the refusal of a login: the same for all, so that nobody learns why."""
    return RequestError(401, "UnauthorizedUserError", msg("Nobody is let in with this."))


def _is_text(text: str) -> bool:
    """Return whether a text can be written down anywhere."""
    try:
        return "\0" not in text and bool(text.encode())
    except UnicodeEncodeError:
        return False
