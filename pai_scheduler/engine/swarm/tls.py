"""How a scheduler and its agents speak to each other: mutual TLS 1.3, by credentials of one authority."""

from __future__ import annotations

import ssl
from pathlib import Path

#: the name in an agent's certificate, whatever its machine is called
AGENT_NAME = "pai-agent"


def agent_tls(bundle: Path) -> ssl.SSLContext:
    """Return how an agent speaks: to those only who show a certificate of a scheduler of this authority."""
    return _tls(ssl.PROTOCOL_TLS_SERVER, bundle)


def scheduler_tls(bundle: Path) -> ssl.SSLContext:
    """Return how a scheduler speaks to agents, whose certificate must be of this authority."""
    return _tls(ssl.PROTOCOL_TLS_CLIENT, bundle)


def _tls(protocol: int, bundle: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(bundle)
    context.load_verify_locations(bundle)
    return context
