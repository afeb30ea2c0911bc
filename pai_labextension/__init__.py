"""The inside of JupyterLab: server extension, ipywidgets and the front end."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from pai_scheduler.client import remote as remote

    from .extension import PAIExtension as PAIExtension
    from .widgets import ClusterView as ClusterView
    from .widgets import FileExplorer as FileExplorer
    from .widgets import JobForm as JobForm
    from .widgets import JobMonitor as JobMonitor
    from .widgets import JobTable as JobTable
    from .widgets import NotSubmittedError as NotSubmittedError

#: Public name → module. Loaded when first asked for: the server needs no widgets, a kernel needs no server.
_LAZY = {
    "ClusterView": ".widgets",
    "FileExplorer": ".widgets",
    "JobForm": ".widgets",
    "JobMonitor": ".widgets",
    "JobTable": ".widgets",
    "NotSubmittedError": ".widgets",
    "PAIExtension": ".extension",
    "remote": "pai_scheduler.client",
}

__all__ = [
    "ClusterView",
    "FileExplorer",
    "JobForm",
    "JobMonitor",
    "JobTable",
    "NotSubmittedError",
    "PAIExtension",
    "remote",
]


def __getattr__(name: str) -> Any:
    """Load a public name's module at first use (PEP 562)."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_LAZY])


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Make `%pai` and `%%pai` known to IPython: `%load_ext pai_labextension`."""
    from pai_labextension.magics.line import register

    register(shell)


def _jupyter_labextension_paths() -> list[dict[str, str]]:
    """Return where JupyterLab finds the built front end, and under which name it is installed."""
    return [{"src": "labextension", "dest": "pai-labextension"}]


def _jupyter_server_extension_points() -> list[dict[str, Any]]:
    """Return the application with which this package extends jupyter_server."""
    from .extension import PAIExtension

    return [{"module": "pai_labextension", "app": PAIExtension}]
