"""Connections of the clients of REST and storage, and the servers that they trust."""

from __future__ import annotations

import ssl
from types import TracebackType
from typing import Self

import httpx

# Which servers a client trusts.


def trusted_by(url: str) -> ssl.SSLContext | bool:
    """Return what checks the certificate of a server: by the well-known authorities, and by this machine's.

    A lab's own authority is trusted where the machine trusts it, or where `SSL_CERT_FILE` names it.
    """
    if not url.startswith("https:"):
        return True  # nothing is checked, and nothing loaded
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context


# What the clients of REST and of the storage have in common: connections, which are closed in the end.


class Connections:
    """Has the connections of a client, for `async with`."""

    _http: httpx.AsyncClient

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
