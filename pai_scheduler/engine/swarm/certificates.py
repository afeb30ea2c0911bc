"""The certificates by which a scheduler and its agents know each other (mutual TLS 1.3).

One authority signs both, and each is good for its own side only: an agent cannot pass for a scheduler. The
authority's key follows from a secret of the scheduler's, so that one that takes over signs with the same.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from .tunnel import AGENT_NAME

SCHEDULER_NAME = "pai-scheduler"
_AUTHORITY_NAME = "PAI agents"
#: Clocks may be apart; a certificate is good from a day before it was made.
_EARLIER, _VALID = timedelta(days=1), timedelta(days=730)


@dataclass(frozen=True, slots=True)
class Credentials:
    """TLS credentials of one side (PEM): its certificate and key, and the authority of the other side's."""

    certificate: bytes
    key: bytes = field(repr=False)
    authority: bytes

    def write(self, folder: Path) -> Path:
        """Write them as one file that only its owner may read, as TLS wants it; return the file."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = folder / "credentials.pem"
        coming = folder / f".{os.getpid()}.new"
        coming.unlink(missing_ok=True)
        coming.touch(0o600)
        coming.write_bytes(self.bundle)
        coming.rename(file)
        return file

    @property
    def bundle(self) -> bytes:
        """Return all three in one text: the key, its certificate, the authority."""
        return self.key + self.certificate + self.authority


class Authority:
    """Signs for both sides; the same secret makes the same authority."""

    def __init__(self, secret: bytes) -> None:
        seed = hmac.new(secret, b"authority of the agents", hashlib.sha256).digest()
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY_NAME)])

    @property
    def fingerprint(self) -> str:
        """Return what tells this authority from others: 64 hexadecimal digits."""
        return hashlib.sha256(self._key.public_key().public_bytes_raw()).hexdigest()

    def agent(self) -> Credentials:
        """Return new credentials for agents."""
        return self._sign(AGENT_NAME, ExtendedKeyUsageOID.SERVER_AUTH)

    def scheduler(self) -> Credentials:
        """Return new credentials for a scheduler."""
        return self._sign(SCHEDULER_NAME, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _sign(self, name: str, usage: x509.ObjectIdentifier) -> Credentials:
        key = Ed25519PrivateKey.generate()
        certificate = (
            _begin(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]), self._name)
            .public_key(key.public_key())
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, None)
        )
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return Credentials(certificate.public_bytes(Encoding.PEM), private, self._certificate())

    def _certificate(self) -> bytes:
        certificate = (
            _begin(self._name, self._name)
            .public_key(self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=False,
                    content_commitment=False,
                    key_encipherment=False,
                    data_encipherment=False,
                    key_agreement=False,
                    key_cert_sign=True,
                    crl_sign=True,
                    encipher_only=False,
                    decipher_only=False,
                ),
                critical=True,
            )
            .sign(self._key, None)
        )
        return certificate.public_bytes(Encoding.PEM)


def _begin(subject: x509.Name, issuer: x509.Name) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + _VALID)
    )
