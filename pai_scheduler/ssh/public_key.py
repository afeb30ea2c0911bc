"""A public key as people paste it: one line of OpenSSH's; no key, or a weak one, is refused in words."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from dataclasses import dataclass
from typing import Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_ssh_public_key

from pai_scheduler.i18n import Message, msg

#: Bits of the shortest RSA key that is taken.
_LEAST_RSA_BITS = 2048
#: Characters of the longest line, and of the comment that is kept of it.
_LONGEST, _LONGEST_COMMENT = 16_384, 200
#: The kinds that are taken; a security key's cannot be checked here beyond its shape.
_PLAIN = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521")
_SECURITY_KEYS = ("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com")


class PublicKeyError(ValueError):
    """A text is no public key that may be used; `message` says why, and what to paste."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of a kind that is taken: `blob` is what the line has in base64."""

    type: str
    blob: bytes
    comment: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `ssh-ed25519 AAAA… comment`; PublicKeyError."""
        line = _one_line(text)
        kind, _, rest = line.partition(" ")
        encoded, _, comment = rest.strip().partition(" ")
        if kind == "ssh-dss":
            raise PublicKeyError(msg("A DSA key is too weak. Make another: {command}", command=_MAKE))
        if kind not in _PLAIN + _SECURITY_KEYS:
            raise PublicKeyError(_strange(line))
        try:
            blob = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise PublicKeyError(_cut()) from None
        if _name_in(blob) != kind:
            raise PublicKeyError(_cut())
        if kind in _PLAIN:
            _check(kind, encoded)
        elif not _has_whole_fields(blob, 4 if "ecdsa" in kind else 3):
            raise PublicKeyError(_cut())
        kept = "".join(letter for letter in comment.strip() if letter.isprintable())
        return cls(kind, blob, kept[:_LONGEST_COMMENT])

    @property
    def fingerprint(self) -> str:
        """Return what `ssh-keygen -l` says: `SHA256:…`."""
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode().rstrip("=")
        return f"SHA256:{digest}"

    def is_key(self, line: str) -> bool:
        """Return, in constant time, whether a line `ssh-ed25519 AAAA…` without a comment is this key."""
        return hmac.compare_digest(self._line.encode(), line.encode())

    def __str__(self) -> str:
        return f"{self._line} {self.comment}".rstrip()

    @property
    def _line(self) -> str:
        return f"{self.type} {base64.b64encode(self.blob).decode()}"


_MAKE = "ssh-keygen -t ed25519"


def _one_line(text: str) -> str:
    if "PRIVATE KEY-----" in text or text.startswith("PuTTY-User-Key-File"):
        raise PublicKeyError(
            msg(
                "This is a private key, which nobody but you is to have: it was not kept. Paste the public "
                "one, one line from a file that ends in .pub."
            )
        )
    if text.lstrip().startswith("---- BEGIN SSH2 PUBLIC KEY"):
        raise PublicKeyError(
            msg(
                "This key is in another form than OpenSSH's. Convert it: {command}",
                command="ssh-keygen -i -f FILE",
            )
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise PublicKeyError(_nothing())
    if len(lines) > 1:
        raise PublicKeyError(msg("This is more than one line. Give one public key at a time."))
    if len(lines[0]) > _LONGEST:
        raise PublicKeyError(msg("This is too long for a public key."))
    return lines[0]


def _strange(line: str) -> Message:
    kinds = (*_PLAIN, *_SECURITY_KEYS)
    if any(f" {kind} " in f" {line} " for kind in kinds):
        return msg(
            "Options before a key are not possible here: the line must begin with its kind (ssh-ed25519 …)."
        )
    if "-cert-v0" in line.split(" ", 1)[0]:
        return msg(
            "This is a certificate, not a public key. Paste the key itself, from a file that ends in .pub."
        )
    return _nothing()


def _nothing() -> Message:
    return msg(
        "This is no public key. It is one line that begins with {kinds}; {command} makes one.",
        kinds="ssh-ed25519, ssh-rsa, ecdsa-sha2-… , sk-ssh-ed25519@openssh.com",
        command=_MAKE,
    )


def _cut() -> Message:
    return msg("This public key is damaged: copy the whole line, and nothing else.")


def _check(kind: str, encoded: str) -> None:
    try:
        key = load_ssh_public_key(f"{kind} {encoded}".encode())
    except (ValueError, UnsupportedAlgorithm):
        raise PublicKeyError(_cut()) from None
    if isinstance(key, RSAPublicKey) and key.key_size < _LEAST_RSA_BITS:
        raise PublicKeyError(
            msg(
                "An RSA key of {bits} bits is too weak: {least} at least. Make another: {command}",
                bits=key.key_size,
                least=_LEAST_RSA_BITS,
                command=_MAKE,
            )
        )


def _name_in(blob: bytes) -> str:
    length = int.from_bytes(blob[:4], "big")
    return blob[4 : 4 + length].decode("ascii", "replace") if len(blob) >= 4 else ""


def _has_whole_fields(blob: bytes, count: int) -> bool:
    """Return whether a blob is so many strings with their lengths before them, and nothing else."""
    place = 0
    for _ in range(count):
        length = int.from_bytes(blob[place : place + 4], "big")
        if len(blob) < place + 4 + length or not length:
            return False
        place += 4 + length
    return place == len(blob)
