"""What a person or a notebook server installs: clients of REST, storage and SSH, and the command `pai`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .rest import Client as Client

__all__ = ["Client"]


def __getattr__(name: str) -> Any:
    """Load the client when it is first asked for (PEP 562): `pai --help` needs no HTTP."""
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .rest import Client

    return Client
