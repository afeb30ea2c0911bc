"""Lets people into tasks, for the SSH gateway: who they are, which task they mean, and what is told of it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from pai_scheduler.core.model import Attempt, Job, State
from pai_scheduler.core.queries import waiting_reason
from pai_scheduler.engine.protocol import Engine, NoSshEndpointError
from pai_scheduler.execution.reader import Reader
from pai_scheduler.execution.writer import Writer
from pai_scheduler.job.messages import Message, msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validate import SpecError
from pai_scheduler.rest.errors import RequestError, forbidden, invalid_parameters
from pai_scheduler.security.principal import Principal
from pai_scheduler.ssh.keys.job_keys import JobKeys, KeyPair
from pai_scheduler.ssh.keys.login_name import LoginName, readings
from pai_scheduler.ssh.keys.ppk import ppk
from pai_scheduler.ssh.keys.public_key import PublicKey, PublicKeyError
from pai_scheduler.ssh.keys.session_token import SessionToken
from pai_scheduler.ssh.keys.signed_link import is_good, sign_link
from pai_scheduler.store.store import Store

from .addresses import SshAddress, ssh_addresses
from .audit import Audit
from .task_choice import choose, named

_log = logging.getLogger(__name__)

#: Characters of the longest login name that is looked at: a user, a job, a role and an index.
_LONGEST_LOGIN = 1000
#: ms for which somebody who logged in by a token need not be looked up again, and for which one may open.
_FRESH_MS, _WEEK_MS = 60_000, 7 * 24 * 3_600_000
#: connections of which the task is remembered, for the note of their end
_MOST_REMEMBERED = 20_000
#: public keys that one user may register
_MOST_KEYS = 50
#: of those who are in, how many are asked about at once: the Hub may have to say whose token it is
_ASKED_AT_ONCE = 8
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


class Users(Protocol):
    """Knows who people are, as `api.auth.Authenticator`; RequestError where nobody can be asked."""

    async def identify(self, token: str) -> Principal | None:
        """Return whose token this is; None for nobody's."""

    async def find(self, name: str) -> Principal | None:
        """Find a user by name; None where there is none."""


@dataclass(frozen=True, slots=True)
class TaskAccess:
    """A task that may be entered: where its SSH server listens, and the keys by which both are known.

    `forward`: the hosts to which it may forward. `notice`: what whoever opens a shell must know.
    `signals`: as the engine has it.
    """

    job: Job
    task: TaskRef
    host: str
    port: int
    identity: KeyPair
    host_key: KeyPair
    forward: Sequence[str]
    notice: Message | None = None
    signals: str | None = None


@dataclass(frozen=True, slots=True)
class HeldLogin:
    """A login that is still open: the name, its sealed session token, and what it was proved by."""

    login: str
    sealed: str
    method: str
    credential: str = field(repr=False)


class SshAuthorization:
    """Decides who comes in. `clock` gives ms since the epoch."""

    def __init__(
        self,
        keys: JobKeys,
        engine: Engine,
        store: Store,
        reader: Reader,
        writer: Writer,
        clock: Callable[[], int],
    ) -> None:
        self.keys = keys
        self._engine = engine
        self._store, self._reader = store, reader
        self._writer = writer
        self._now = clock
        self._audit = Audit(writer.request)
        #: which task was opened with which session token
        self._opened: OrderedDict[str, TaskRef] = OrderedDict()

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
        return None if session_token is None else (session_token, session_token.sealed(self.keys.signature))

    async def open(self, users: Users, login: str, sealed: str) -> TaskAccess:
        """Choose the task that is meant, for somebody who has logged in. RequestError says why not."""
        session_token = self._read(login, sealed)
        if session_token.issued + _WEEK_MS < self._now():
            raise _nobody()
        principal = await self._still(users, session_token)
        core = self._writer.core
        names = [name for name in readings(login) if principal.may_act_for(name.user)]
        jobs = self._jobs_of(names, session_token)
        if session_token.proof == "job" and not jobs:
            raise RequestError(404, "NoJobError", msg("The job of this key has ended."))
        job, task = choose(names, jobs, lambda job: waiting_reason(core, job, self._now()))
        # (the job may be at another attempt once we have waited)
        attempt, ref = job.attempt, task.ref
        try:
            way = await self._engine.ssh_endpoint(ref)
        except NoSshEndpointError as error:
            raise RequestError(409, "NoJobSshInfoError", error.message) from error
        self._remember(sealed, ref)
        notice = None if way.isolated else _no_isolation(job.name)
        identity, host_key = self.keys.identity(job.id), self.keys.host(job.id)
        forward = _forward(attempt)
        return TaskAccess(job, ref, way.host, way.port, identity, host_key, forward, notice, way.signals)

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

    async def note(
        self, login: str, sealed: str, peer: str, event: str, what: Sequence[str], detail: str, seconds: float
    ) -> None:
        """Write down what somebody opened, or that all of it was closed; returns when it is durable.

        RequestError: it is nobody, or cannot be written down just now.
        """
        session_token = self._read(login, sealed)
        task = self._opened.get(sealed) or self._meant(session_token)
        if task is None:
            return
        if event == "opened":
            await self._audit.opened(session_token, task, peer, what, detail, self._now())
        else:
            await self._audit.closed(session_token, task, peer, what, seconds, self._now())
            self._opened.pop(sealed, None)

    def job_name(self, principal: Principal, user: str, name: str) -> str:
        """Return the name of the job that is meant: a server may be called as JupyterHub calls it."""
        if not principal.may_act_for(user):
            return name  # it is not theirs to know which there are
        live = (job for job in self._writer.core.jobs.values() if job.user == user and not job.is_decided)
        job = named(live, name)
        return name if job is None else job.name

    async def ssh_addresses(self, job: Job, name: str | None = None) -> list[SshAddress]:
        """List the running tasks of a job, or the one called `name`, and where they are reached."""
        return await ssh_addresses(self._engine, self._writer.core.jobs.get(job.id, job), name)

    def key(self, job_id: str, form: str, comment: str) -> bytes:
        """Return the key of a job as a file: "openssh", "ppk" or "public"."""
        pair = self.keys.identity(job_id)
        if form == "openssh":
            return pair.private
        return (ppk(pair, comment) if form == "ppk" else f"{pair.public} {comment}\n").encode()

    def key_link(self, job_id: str) -> dict[str, str]:
        """Return the parameters of a link to the key of a job."""
        return sign_link(job_id, self._now(), self.keys.signature)

    def is_key_link(self, job_id: str, expires: str, signature: str) -> bool:
        """Return whether these are such parameters, for this job and of now."""
        return is_good(job_id, expires, signature, self._now(), self.keys.signature)

    async def public_keys(self, principal: Principal, user: str) -> list[tuple[PublicKey, int]]:
        """List the public keys that a user registered, and when (ms since the epoch)."""
        _check(principal, user)
        return await self._reader.read(self._store.public_keys, user)

    async def add_public_key(self, principal: Principal, user: str, line: str) -> tuple[PublicKey, int]:
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

    async def remove_public_key(self, principal: Principal, user: str, fingerprint: str) -> None:
        """Forget a public key, durably: who logged in with it opens nothing more. RequestError: none such."""
        _check(principal, user)
        if not await self._writer.keep(self._store.remove_public_key, user, fingerprint):
            text = msg("User {user} has no public key {fingerprint}.", user=user, fingerprint=fingerprint)
            raise RequestError(404, "NoPublicKeyError", text)
        _log.info("a public key was removed", extra={"user": user, "by": principal.name, "key": fingerprint})

    # -- who ------------------------------------------------------------------------------------------------

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
        theirs = list(self._writer.core.unended(name.user))
        if name.job:
            job = named(theirs, name.job)
            theirs = [] if job is None else [job]
        own = [job for job in theirs if key.is_key(self.keys.identity(job.id).public)]
        return own[0] if own else None

    async def _registered(self, users: Users, user: str, fingerprint: str) -> bool:
        """Return whether a user, who is still there, registered a key."""
        if not await self._reader.read(self._store.has_public_key, user, fingerprint):
            return False
        try:
            return await users.find(user) is not None
        except RequestError:
            return True  # nobody can be asked, and nobody has said that the user is gone

    async def _still(self, users: Users, session_token: SessionToken) -> Principal:
        """Return who this is now; RequestError where it is nobody any more."""
        if session_token.proof == "key" and not await self._registered(
            users, session_token.user, session_token.key
        ):
            raise _nobody()
        if session_token.proof != "token":
            return Principal(session_token.user)
        principal: Principal | None = Principal(session_token.user, session_token.admin)
        if session_token.issued + _FRESH_MS < self._now():
            # (where nobody can be asked, who it was is what we know)
            with suppress(RequestError):
                principal = await users.find(session_token.user)
        if principal is None:
            raise _nobody()
        return principal

    async def _may_stay(self, users: Users, held: HeldLogin) -> bool:
        session_token = self._read(held.login, held.sealed)
        if session_token.proof == "key":
            return await self._registered(users, session_token.user, session_token.key)
        if session_token.proof == "job":
            return await users.find(session_token.user) is not None
        again = await self._by_token(users, held.login, readings(held.login), held.credential)
        return again is not None and again.user == session_token.user

    def _read(self, login: str, sealed: str) -> SessionToken:
        session_token = SessionToken.opened(sealed, self.keys.signature)
        if session_token is None or session_token.login != login:
            raise _nobody()
        return session_token

    # -- which ----------------------------------------------------------------------------------------------

    def _jobs_of(self, names: Sequence[LoginName], session_token: SessionToken) -> list[Job]:
        """List the jobs among which a login name chooses; for a job's key, that job."""
        users = dict.fromkeys(name.user for name in names)
        return [
            job
            for user in users
            for job in self._writer.core.unended(user)
            if session_token.job in ("", job.id)
        ]

    def _remember(self, sealed: str, task: TaskRef) -> None:
        self._opened[sealed] = task
        if len(self._opened) > _MOST_REMEMBERED:
            self._opened.popitem(last=False)

    def _meant(self, session_token: SessionToken) -> TaskRef | None:
        """Find the task again after a restart of ours."""
        principal = Principal(session_token.user, session_token.admin)
        names = [name for name in readings(session_token.login) if principal.may_act_for(name.user)]
        try:
            return choose(names, self._jobs_of(names, session_token), lambda _: None)[1].ref
        except RequestError:
            return None


def _check(principal: Principal, user: str) -> None:
    if not principal.may_act_for(user):
        raise forbidden(msg("Only an administrator may see and change the keys of user {user}.", user=user))


def _no_isolation(job: str) -> Message:
    return msg(
        "Job {job} runs without a container: this is the scheduler's own machine and account.", job=job
    )


def _forward(attempt: Attempt | None) -> list[str]:
    """List the hosts of an attempt: names and addresses of its tasks, and each one's own."""
    tasks = attempt.tasks.values() if attempt is not None else ()
    names = [task.ref.hostname for task in tasks]
    addresses = [task.address for task in tasks if task.address and task.state is State.RUNNING]
    return list(dict.fromkeys([*_LOOPBACK, *names, *addresses]))


def _nobody() -> RequestError:
    return RequestError(401, "UnauthorizedUserError", msg("Nobody is let in with this."))


def _is_text(text: str) -> bool:
    """Return whether a text can be written down anywhere."""
    try:
        return "\0" not in text and bool(text.encode())
    except UnicodeEncodeError:
        return False
