"""Login names of the SSH gateway, and signed tokens of those who have logged in."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Literal

from pai_scheduler.i18n import Message, msg

# The name by which one logs in at the SSH gateway: whose task is meant, and which.
#
#     <user>+<job>+<role>-<index>   a task of a job
#     <user>+<job>                  the only task of a job
#     <user>+<server>               a notebook server, by its name in JupyterHub
#     <user>                        the only thing of theirs that runs
#
# No job, role or server has a `+` in its name; a user may. So one name may be read in several ways, and
# which one is meant follows from what there is.

#: between the parts
SEPARATOR = "+"


@dataclass(frozen=True, slots=True)
class LoginName:
    """One reading of a login name. `job`: a job's or a notebook server's name; empty: the only one.

    `task`: `<role>-<index>`; empty: the only one.
    """

    user: str
    job: str = ""
    task: str = ""

    def __str__(self) -> str:
        return SEPARATOR.join(part for part in (self.user, self.job, self.task) if part)


def readings(name: str) -> list[LoginName]:
    """List the ways to read a login name, the most precise one first; none of an empty user."""
    found = []
    for count in (3, 2, 1):
        parts = name.rsplit(SEPARATOR, count - 1)
        if len(parts) == count and all(parts):
            found.append(LoginName(*parts))
    return found


# What somebody who has logged in is known by afterwards: signed, so nothing of it need be remembered.

#: How it was proved: the key of one job, a key that the user registered, or a token.
Proof = Literal["job", "key", "token"]


@dataclass(frozen=True, slots=True)
class SessionToken:
    """A login as `login`, with its proof. `job`: the id of the only job that may be opened; empty: any.

    `key`: the fingerprint of the registered key. `issued` in ms since the epoch.
    """

    login: str
    user: str
    proof: Proof
    issued: int
    admin: bool = False
    job: str = ""
    key: str = ""
    #: two who log in alike are two
    number: str = field(default_factory=lambda: secrets.token_hex(8))

    @property
    def by(self) -> Message:
        """Return how it was proved."""
        if self.proof == "job":
            return msg("the job's key")
        return msg("key {fingerprint}", fingerprint=self.key) if self.proof == "key" else msg("token")

    def sealed(self, sign: Callable[[str], str]) -> str:
        """Return the text that stands for it."""
        text = json.dumps(asdict(self), separators=(",", ":")).encode()
        encoded = base64.urlsafe_b64encode(text).decode()
        return f"{encoded}.{sign(_text(encoded))}"

    @classmethod
    def opened(cls, text: str, sign: Callable[[str], str]) -> SessionToken | None:
        """Read such a text; None where it is none of ours."""
        encoded, _, signature = text.partition(".")
        genuine = sign(_text(encoded)).encode()
        if not hmac.compare_digest(genuine, signature.encode("utf-8", "surrogatepass")):
            return None
        try:
            return cls(**json.loads(base64.urlsafe_b64decode(encoded)))
        except (binascii.Error, ValueError, TypeError):  # an older service's
            return None


def _text(encoded: str) -> str:
    return f"session token {encoded}"
