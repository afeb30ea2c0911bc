"""What somebody who has logged in is known by afterwards: signed, so nothing of it need be remembered."""

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

#: How it was proved: the key of one job, a key that the user registered, or a token.
Proof = Literal["job", "key", "token"]


@dataclass(frozen=True, slots=True)
class SessionToken:
    """Who logged in as `login`, and how. `job`: the id of the only job that may be opened; empty: any.

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
