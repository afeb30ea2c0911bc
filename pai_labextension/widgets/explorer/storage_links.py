"""Links of the explorer: to the storage's browser in JupyterLab, and for downloads with the web browser."""

from __future__ import annotations

from html import escape

from pai_scheduler.client.storage.client import FileInfo

from ..language import Language
from .paths import quoted


def browser_link(say: Language, prefix: str, path: str) -> str:
    """Return a link that shows a path in JupyterLab's storage browser; `prefix`: see `links.server_prefix`.

    Where JupyterLab runs already, its extension takes the click; elsewhere the address opens JupyterLab.
    """
    address = f"{prefix.rstrip('/')}/lab?pai-storage={quoted(path)}"
    text = say("Open in JupyterLab's storage browser")
    return f'<a href="{escape(address)}" target="_blank" data-pai-storage="{escape(path)}">{escape(text)}</a>'


def download_link(say: Language, prefix: str, entry: FileInfo) -> str:
    """Return a link by which the web browser downloads a file, or a folder as a zip."""
    operation, name, text = (
        ("ARCHIVE", f"{entry.name}.zip", say("Save as a zip file on your own computer"))
        if entry.is_folder
        else ("OPEN", entry.name, say("Save on your own computer"))
    )
    address = f"{prefix.rstrip('/')}/pai/webhdfs/v1{quoted(entry.path)}?op={operation}"
    return f'<a href="{escape(address)}" download="{escape(name)}">{escape(text)}</a>'
