"""Keys of jobs: made, written for OpenSSH and PuTTY, and linked to for some minutes."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)

from pai_scheduler.data_folder.secret_file import kept_secret
from pai_scheduler.job.spec import CONTAINER, folder_name

# What the files of a job's key are called, wherever they are kept.


def key_name(user: str, job: str) -> str:
    """Name the file of a job's private key; the public one's ends in `.pub`."""
    return folder_name(f"{user}~{job}")


def job_folder(user: str, job: str) -> tuple[str, ...]:
    """Return the parts of the path of a job's folder in the storage, which its user reads."""
    return (CONTAINER, folder_name(user), key_name(user, job))


def key_folder(user: str, job: str) -> tuple[str, ...]:
    """Return the parts of the path of the folder of a job's keys in the storage."""
    return (*job_folder(user, job), "ssh", "keyFiles")


# The keys of jobs: one to log in with, one by which their tasks' SSH servers are known.
#
# They are not kept: each follows from the job's id and a secret of this scheduler's, so that they are the
# same after a restart, and there is nothing to leave behind.

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


# A key as PuTTY and WinSCP read it: version 3 of their format, without a passphrase (PuTTY manual, C).

#: Characters of a line of base64.
_WIDTH = 64


def ppk(pair: KeyPair, comment: str) -> str:
    """Write an Ed25519 key as a .ppk file."""
    key = load_ssh_private_key(pair.private, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError("only Ed25519 keys are written so")
    kind, _, encoded = pair.public.partition(" ")
    public = base64.b64decode(encoded)
    private = _string(key.private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption()))
    plain = "".join(letter if letter.isprintable() else "?" for letter in comment)
    signed = b"".join(_string(part) for part in (kind.encode(), b"none", plain.encode(), public, private))
    return "\r\n".join(
        [
            f"PuTTY-User-Key-File-3: {kind}",
            "Encryption: none",
            f"Comment: {plain}",
            *_block("Public", public),
            *_block("Private", private),
            f"Private-MAC: {hmac.digest(b'', signed, hashlib.sha256).hex()}",
            "",
        ]
    )


def _block(name: str, blob: bytes) -> list[str]:
    text = base64.b64encode(blob).decode()
    lines = [text[start : start + _WIDTH] for start in range(0, len(text), _WIDTH)]
    return [f"{name}-Lines: {len(lines)}", *lines]


def _string(text: bytes) -> bytes:
    return len(text).to_bytes(4, "big") + text


# Links by which the key of one job is downloaded without a token, for some minutes.

#: Seconds for which a link is good.
SECONDS = 600


def sign_link(job_id: str, now: int, sign: Callable[[str], str]) -> dict[str, str]:
    """Return the parameters of a link made `now` (ms since the epoch)."""
    expires = str(now // 1000 + SECONDS)
    return {"expires": expires, "signature": sign(_text(job_id, expires))}


def is_good(job_id: str, expires: str, signature: str, now: int, sign: Callable[[str], str]) -> bool:
    """Return whether a link is for this job, ours, and not too old."""
    if not (expires.isascii() and expires.isdecimal()):
        return False
    genuine = sign(_text(job_id, expires)).encode()
    if not hmac.compare_digest(genuine, signature.encode("utf-8", "surrogatepass")):
        return False
    return now // 1000 <= int(expires)


def _text(job_id: str, expires: str) -> str:
    return f"key {job_id} {expires}"
