"""Addresses under which the browser itself fetches what is in the storage, through the notebook server."""

from __future__ import annotations

from html import escape
from urllib.parse import quote

from pai_scheduler.client.storage.models import FileInfo

from ..language import Language


def download_address(prefix: str, entry: FileInfo) -> str:
    """Return where the browser gets a file, or a folder as a zip; `prefix`: see `links.server_prefix`."""
    path = quote(entry.path, safe="/", errors="surrogateescape")
    operation = "ARCHIVE" if entry.is_folder else "OPEN"
    return f"{prefix.rstrip('/')}/pai/webhdfs/v1{path}?op={operation}"


def download_link(say: Language, prefix: str, entry: FileInfo) -> str:
    """Return the link as HTML."""
    name = f"{entry.name}.zip" if entry.is_folder else entry.name
    text = (
        say("Save as a zip file on your own computer")
        if entry.is_folder
        else say("Save on your own computer")
    )
    address = escape(download_address(prefix, entry), quote=True)
    return f'<a href="{address}" download="{escape(name, quote=True)}">{escape(text)}</a>'
