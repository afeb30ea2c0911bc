"""One client of the scheduler for all spawners of a Hub: many servers are polled over few connections."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from pai_scheduler.client.rest import Client

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str, str], Client]] = (
    WeakKeyDictionary()
)


def client_for(url: str, token: str, locale: str) -> Client:
    """Return the client of this address, identity and language that belongs to the running loop."""
    clients = _clients.setdefault(asyncio.get_running_loop(), {})
    key = (url, token, locale)
    if key not in clients:
        clients[key] = Client(url, token, locale=locale)
    return clients[key]
