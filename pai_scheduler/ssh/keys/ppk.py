"""A key as PuTTY and WinSCP read it: version 3 of their format, without a passphrase (PuTTY manual, C)."""

from __future__ import annotations

import base64
import hashlib
import hmac

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_ssh_private_key,
)

from .job_keys import KeyPair

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
