"""Who logs in for SSH, by which proof, and whether that is still good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from pai_scheduler.core.model import Job
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.ssh.keys.job_keys import JobKeys
from pai_scheduler.ssh.keys.login_name import LoginName, readings
from pai_scheduler.ssh.keys.public_key import PublicKey, PublicKeyError
from pai_scheduler.ssh.keys.session_token import SessionToken

from .ssh_public_keys import PublicKeys
from .ssh_task_choice import named

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
