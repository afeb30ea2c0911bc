"""The path of a file in the storage, made only of parts that were checked: there is nothing to escape."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from pai_scheduler.i18n import msg

from .errors import Problem, StorageError

#: Bytes of the longest name of one part, as in ext4 and HDFS.
_LONGEST_PART = 255
#: Characters of the longest path, and the parts that it may have, as in HDFS.
_LONGEST, _DEEPEST = 8000, 1000


@dataclass(frozen=True, slots=True, order=True)
class StoragePath:
    """An absolute path, `/` being the one without parts. No part is empty, `.`, `..`, or holds `/` or NUL."""

    parts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for part in self.parts:
            _check(part)

    @classmethod
    def parse(cls, text: str) -> StoragePath:
        """Take `/a/b` apart, which is decoded already; StorageError where it is no plain path.

        Slashes that are doubled or at the end count for nothing, as in HDFS.
        """
        path = cls(tuple(part for part in text.split("/") if part))
        if len(text) > _LONGEST or len(path.parts) > _DEEPEST:
            raise StorageError(
                Problem.INVALID,
                msg(
                    "The path {path}… is too long: {limit} characters and {depth} names at most.",
                    path=str(path)[:40],
                    limit=_LONGEST,
                    depth=_DEEPEST,
                ),
            )
        return path

    def __truediv__(self, name: str) -> StoragePath:
        """Return what is called `name` in this folder."""
        return StoragePath((*self.parts, name))

    def __str__(self) -> str:
        return "/" + "/".join(self.parts)

    @property
    def name(self) -> str:
        """Return the last part; empty for the root."""
        return self.parts[-1] if self.parts else ""

    @property
    def parent(self) -> StoragePath:
        """Return the folder that this is in; the root's is the root."""
        return StoragePath(self.parts[:-1])

    @property
    def encoded(self) -> str:
        """Return the path as it stands in a URL."""
        return "/" + "/".join(quote(part, safe="", errors="surrogateescape") for part in self.parts)

    def is_within(self, folder: StoragePath) -> bool:
        """Return whether this is `folder` or in it, at whatever depth."""
        return self.parts[: len(folder.parts)] == folder.parts


def _check(part: str) -> None:
    if part in ("", ".", "..") or "/" in part or "\0" in part:
        raise StorageError(
            Problem.INVALID,
            msg("{name} is no plain name of a file: leave out . and .. in it.", name=repr(part)),
        )
    try:
        length = len(part.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError as error:
        raise StorageError(
            Problem.INVALID, msg("{name} has characters in it that there are not.", name=repr(part))
        ) from error
    if length > _LONGEST_PART:
        raise StorageError(
            Problem.INVALID,
            msg("The name {name}… is too long: {limit} bytes at most.", name=part[:40], limit=_LONGEST_PART),
        )
