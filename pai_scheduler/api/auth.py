"""Authentication by bearer token, and the file of tokens when we run alone. Cookies are never read."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import logging
import os
import stat
from pathlib import Path
from typing import Any, Protocol

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.json_text import JsonTextError, loads_json
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError

_log = logging.getLogger(__name__)

#: Characters that a token for monitoring must have.
_LEAST_TOKEN = 16


class Authenticator(Protocol):
    """Knows the callers by their tokens."""

    async def identify(self, token: str) -> Principal | None:
        """Return whose token this is; None for nobody's."""

    async def find(self, name: str) -> Principal | None:
        """Find a user by name; None where there is none. RequestError where nobody can be asked."""

    async def find_now(self, name: str) -> Principal | None:
        """Find a user as `find` does, but nothing that was known before counts."""


class TokensError(Exception):
    """The tokens file cannot be used; `message` names the file and the place."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class TokensFile:
    """Reads `{"TOKEN": {"name": "alice", "admin": false, "groups": []}}`, again when the file has changed.

    A change that cannot be read is logged, and what was known before goes on being used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._seen = self._stamp()
        self._callers = read_tokens(path)

    async def identify(self, token: str) -> Principal | None:
        """Return whose token this is."""
        self._reload()
        digest = _digest(token)
        found = None
        # All are compared, and each in constant time: how long it takes says nothing about any token.
        for known, principal in self._callers.items():
            if hmac.compare_digest(known, digest):
                found = principal
        return found

    async def find(self, name: str) -> Principal | None:
        """Find a user by name."""
        self._reload()
        return next((principal for principal in self._callers.values() if principal.name == name), None)

    async def find_now(self, name: str) -> Principal | None:
        """Find a user by name."""
        return await self.find(name)

    def _reload(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._callers = read_tokens(self.path)
        except TokensError as error:
            _log.error("the tokens as they were before stay in use: %s", error)

    def _stamp(self) -> tuple[int, int, int] | None:
        try:
            now = self.path.stat()
        except OSError:
            return None
        return now.st_mtime_ns, now.st_size, now.st_ino


class MonitoringToken:
    """The token that opens `/metrics` and `/readyz` and nothing else, read anew at every use."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> str:
        """Return the token; TokensError where there is none."""
        try:
            token = self._path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else error.reason
            raise TokensError(
                msg("The metrics token file {file} cannot be read: {reason}.", file=self._path, reason=reason)
            ) from None
        if len(token) < _LEAST_TOKEN:
            message = msg(
                "The token in {file} is too short: {least} characters at least.",
                file=self._path,
                least=_LEAST_TOKEN,
            )
            raise TokensError(message)
        return token

    def matches(self, token: str) -> bool:
        """Return whether this is the token."""
        try:
            known = self.read()
        except TokensError as error:
            _log.error("nobody can be let in with the metrics token: %s", error)
            return False
        return hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogatepass"))


def read_tokens(path: Path) -> dict[bytes, Principal]:
    """Read a tokens file into callers by the SHA-256 of their tokens; TokensError where it is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
        if stat.S_IMODE(path.stat().st_mode) & 0o077 and os.name == "posix":
            _log.warning("the tokens in %s can be read by others on this machine: chmod 600 %s", path, path)
        document = loads_json(text)
    except OSError as error:
        raise TokensError(
            msg("The tokens file {file} cannot be read: {reason}.", file=str(path), reason=error.strerror)
        ) from None
    except UnicodeDecodeError:
        raise TokensError(msg("The tokens file {file} is not UTF-8 text.", file=str(path))) from None
    except JsonTextError as error:
        raise TokensError(
            msg(
                "The tokens file {file} is not JSON. Line {line}, column {column}: {reason}",
                file=str(path),
                line=error.line,
                column=error.column,
                reason=error.message,
            )
        ) from None
    if not isinstance(document, dict):
        raise TokensError(_shape(path, msg("the whole file")))
    # A token is never printed: an entry is known by its number.
    return {
        _digest(token): _principal(path, number, token, entry)
        for number, (token, entry) in enumerate(document.items(), start=1)
    }


def _principal(path: Path, number: int, token: str, entry: Any) -> Principal:
    place = msg("entry {number}", number=number)
    if not token.strip() or not isinstance(entry, dict) or entry.keys() - {"name", "admin", "groups"}:
        raise TokensError(_shape(path, place))
    name, admin, groups = entry.get("name"), entry.get("admin", False), entry.get("groups", [])
    well_formed = (
        isinstance(name, str)
        and name
        and isinstance(admin, bool)
        and isinstance(groups, list)
        and all(isinstance(group, str) for group in groups)
    )
    if not well_formed:
        raise TokensError(_shape(path, place))
    return Principal(str(name), admin, tuple(groups))


def _shape(path: Path, place: Message) -> Message:
    return msg(
        "The tokens file {file} is wrong at {place}: it must look like {example}.",
        file=str(path),
        place=place,
        example='{"TOKEN": {"name": "alice", "admin": false, "groups": []}}',
    )


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def unauthorized(message: Message) -> RequestError:
    """Nobody knows who is asking."""
    return RequestError(401, "UnauthorizedUserError", message)


def bearer_token(authorization: str) -> str:
    """Take the token out of an `Authorization` header: `Bearer …`, or `token …` as the Hub's API has it."""
    scheme, _, token = authorization.strip().partition(" ")
    if scheme.lower() not in ("bearer", "token") or not token.strip():
        raise unauthorized(msg("This needs a token. Send it in the header: Authorization: Bearer TOKEN."))
    return token.strip()


def token_or_password(authorization: str) -> str:
    """Take the token out of a header that may also be `Basic …`: then it is the password, whatever the name.

    What reads a netrc file (curl, wget, Python's requests) can send a token only so.
    """
    scheme, _, credentials = authorization.strip().partition(" ")
    if scheme.lower() != "basic":
        return bearer_token(authorization)
    try:
        _, _, token = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        token = ""
    return bearer_token(f"Bearer {token}")
