"""Which connections may be forwarded: to the task and the tasks of its job, by the names that they have."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_OF_PORT = 65535
#: how a listener in the task is asked for, whatever the client said: nobody else is to reach it
LOOPBACK = "localhost"


class NotForwardedError(Exception):
    """This is not forwarded; the text says why, for the client and the log."""


def check_port(port: int, least: int = 1) -> None:
    """Refuse what is no port."""
    if not least <= port <= _MOST_OF_PORT:
        raise NotForwardedError(f"{port} is no port")


def check(host: str, allowed: Sequence[str]) -> None:
    """Refuse every host but those that are named, letter by letter: an address has many spellings."""
    if host.lower() not in {name.lower() for name in allowed}:
        shown = ascii(host)[1:-1][:100]
        raise NotForwardedError(f"connections are forwarded to the task and its job only, not to {shown}")
