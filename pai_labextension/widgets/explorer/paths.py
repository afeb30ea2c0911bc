"""Paths of the storage as the explorer needs them: put together, taken apart, written as a job has them."""

from __future__ import annotations

from urllib.parse import quote, unquote

#: What stands for the storage's own address in a job.
VARIABLE = "$PAI_DEFAULT_FS_URI"


def child(folder: str, name: str) -> str:
    """Return the path of what is called `name` in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def parent(path: str) -> str:
    """Return the folder that something is in; the root's is the root."""
    return path.rstrip("/").rpartition("/")[0] or "/"


def quoted(path: str) -> str:
    """Write a path as it stands in a URL."""
    return quote(path, safe="/", errors="surrogateescape")


def in_a_job(path: str) -> str:
    """Write a path as a job has it: `$PAI_DEFAULT_FS_URI/alice/code`."""
    return VARIABLE + quoted(path).rstrip("/")


def path_of(uri: str) -> str | None:
    """Find the path that a URI of a job names; None where that depends on the job, or is elsewhere."""
    rest = uri.removeprefix(VARIABLE)
    if rest == uri or not rest.startswith("/") or "$" in rest:
        return None
    return unquote(rest, errors="surrogateescape")
