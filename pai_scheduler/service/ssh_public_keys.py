"""The public keys that users register: such a key opens all of that user's tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from pai_scheduler.i18n import msg
from pai_scheduler.job.validation import SpecError
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, forbidden, invalid_parameters
from pai_scheduler.ssh.keys.public_key import PublicKey, PublicKeyError
from pai_scheduler.store.store import Store

from .reader import Reader
from .writer import Writer

_log = logging.getLogger(__name__)

#: public keys that one user may register
_MOST_KEYS = 50


class PublicKeys:
    """The registered keys. `clock` gives ms since the epoch."""

    def __init__(self, store: Store, reader: Reader, writer: Writer, clock: Callable[[], int]) -> None:
        self._store, self._reader, self._writer, self._now = store, reader, writer, clock

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
