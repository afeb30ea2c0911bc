"""Which servers a client trusts."""

from __future__ import annotations

import ssl

import httpx


def trusted_by(url: str) -> ssl.SSLContext | bool:
    """Return what checks the certificate of a server: by the well-known authorities, and by this machine's.

    A lab's own authority is trusted where the machine trusts it, or where `SSL_CERT_FILE` names it.
    """
    if not url.startswith("https:"):
        return True  # nothing is checked, and nothing loaded
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context
