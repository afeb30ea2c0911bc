"""Paths of the storage as the explorer needs them: put together, taken apart, written as a job has them."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

#: What stands for the storage's own address in a job.
VARIABLE = "$PAI_DEFAULT_FS_URI"


def child(folder: str, name: str) -> str:
    """Return the path of what is called `name` in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def parent(path: str) -> str:
    """Return the folder that something is in; the root's is the root."""
    return path.rstrip("/").rpartition("/")[0] or "/"


def crumbs(path: str) -> Iterator[tuple[str, str]]:
    """Return (name, path) of each folder on the way to `path`, without the root."""
    way = ""
    for part in filter(None, path.split("/")):
        way = f"{way}/{part}"
        yield part, way


def in_a_job(path: str) -> str:
    """Write a path as a job has it: `$PAI_DEFAULT_FS_URI/alice/code`."""
    return VARIABLE + quote(path, safe="/", errors="surrogateescape").rstrip("/")


def is_plain_name(name: str) -> bool:
    """Return whether a file may be called so."""
    return bool(name.strip()) and name not in (".", "..") and "/" not in name and "\0" not in name
