"""The client, as a person or a notebook server installs it: REST, storage, SSH, the command `pai`, `remote`.

`Client` talks to the scheduler, `FilesClient` to the storage, both asynchronously; `remote` runs functions as
jobs. `docs/users/python.md` shows each.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pai_scheduler.client.storage.client import FilesError as FilesError

    from .calls.errors import CallError as CallError
    from .calls.errors import JobFailedError as JobFailedError
    from .calls.errors import NotSendableError as NotSendableError
    from .calls.errors import RemoteTraceback as RemoteTraceback
    from .calls.function import RemoteFunction as RemoteFunction
    from .calls.function import remote as remote
    from .calls.sweep import Sweep as Sweep
    from .rest import ApiError as ApiError
    from .rest import Client as Client
    from .rest import UnreachableError as UnreachableError
    from .storage.client import FilesClient as FilesClient
    from .storage.code import submit_with_code as submit_with_code
    from .storage.download import download as download
    from .storage.upload import upload as upload

#: Public name → module. Loaded when first asked for (PEP 562): `pai --help` needs no HTTP.
_LAZY = {
    "ApiError": ".rest",
    "CallError": ".calls.errors",
    "Client": ".rest",
    "FilesClient": ".storage.client",
    "FilesError": ".storage.client",
    "JobFailedError": ".calls.errors",
    "NotSendableError": ".calls.errors",
    "RemoteFunction": ".calls.function",
    "RemoteTraceback": ".calls.errors",
    "Sweep": ".calls.sweep",
    "UnreachableError": ".rest",
    "download": ".storage.download",
    "remote": ".calls.function",
    "submit_with_code": ".storage.code",
    "upload": ".storage.upload",
}

__all__ = [
    "ApiError",
    "CallError",
    "Client",
    "FilesClient",
    "FilesError",
    "JobFailedError",
    "NotSendableError",
    "RemoteFunction",
    "RemoteTraceback",
    "Sweep",
    "UnreachableError",
    "download",
    "remote",
    "submit_with_code",
    "upload",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module at first use."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])
