"""What the clients of REST and of the storage have in common: connections, which are closed in the end."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx


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
