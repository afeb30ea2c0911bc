"""The keys of jobs: one to log in with, one by which their tasks' SSH servers are known.

They are not kept: each follows from the job's id and a secret of this scheduler's, so that they are the same
after a restart, and there is nothing to leave behind.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pai_scheduler.data_folder.secret_file import kept_secret

#: pairs that are kept rather than made again
_KEPT = 4096


@dataclass(frozen=True, slots=True)
class KeyPair:
    """An Ed25519 key as OpenSSH writes it: `private` a PEM text, `public` a line `ssh-ed25519 …`."""

    private: bytes = field(repr=False)
    public: str

    @classmethod
    def from_seed(cls, seed: bytes) -> KeyPair:
        """Make the key that 32 bytes stand for."""
        key = Ed25519PrivateKey.from_private_bytes(seed)
        return cls(
            key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
            key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode(),
        )


class JobKeys:
    """Makes the keys of jobs, and other secrets of the way in, from one secret."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        #: they are asked for at every login
        self._pair = lru_cache(_KEPT)(
            lambda purpose, job_id: KeyPair.from_seed(self._derived(purpose, job_id))
        )

    @classmethod
    def in_folder(cls, folder: Path) -> JobKeys:
        """Use the secret kept in a folder (made at first): tasks run on over a restart, with their keys."""
        return cls(kept_secret(folder / "job-keys.key"))

    def identity(self, job_id: str) -> KeyPair:
        """Return the key that opens a job's tasks."""
        return self._pair("identity", job_id)

    def host(self, job_id: str) -> KeyPair:
        """Return the key by which a job's tasks are known; all have the same."""
        return self._pair("host", job_id)

    def gateway_host(self) -> KeyPair:
        """Return the key by which the gateway is known."""
        return KeyPair.from_seed(self._derived("gateway-host"))

    def gateway_token(self) -> str:
        """Return what the gateway proves itself with to the service."""
        return self._derived("gateway-token").hex()

    def signature(self, text: str) -> str:
        """Sign a link."""
        return self._derived("link", text).hex()

    def _derived(self, *purpose: str) -> bytes:
        text = "\0".join(purpose).encode("utf-8", "surrogatepass")
        return hmac.digest(self._secret, text, hashlib.sha256)
