"""Paths and URIs of files in the storage, made only of checked parts; why a storage refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from urllib.parse import quote, unquote

from pai_scheduler.i18n import Message, msg

# Why a storage did not do something: the kind for programs, the sentence for people.


class Problem(Enum):
    """The cause of a failed storage operation."""

    NOT_FOUND = "not-found"
    EXISTS = "exists"
    DENIED = "denied"
    NOT_A_FOLDER = "not-a-folder"
    IS_A_FOLDER = "is-a-folder"
    NOT_EMPTY = "not-empty"
    #: a name, a number or a combination that there cannot be
    INVALID = "invalid"
    NO_SPACE = "no-space"
    TOO_LARGE = "too-large"
    #: this storage cannot do it, and never will
    UNSUPPORTED = "unsupported"
    #: it does not answer now; it may go better later
    UNAVAILABLE = "unavailable"


#: What may go better another time, without anybody changing what was asked.
PASSING = frozenset({Problem.UNAVAILABLE, Problem.NO_SPACE})


class StorageError(Exception):
    """A storage did not do something; `message` says what, why, and what to do."""

    def __init__(self, problem: Problem, message: Message) -> None:
        super().__init__(str(message))
        self.problem = problem
        self.message = message


# The path of a file in the storage, made only of parts that were checked: there is nothing to escape.

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


# The URIs under which people and jobs name what is in the storage.

_HTTP = ("http://", "https://")


class StorageNames:
    """Knows the storage by several URIs; the first of them is `PAI_DEFAULT_FS_URI`."""

    def __init__(self, uris: Iterable[str]) -> None:
        self._uris = tuple(dict.fromkeys(uri.rstrip("/") for uri in uris if uri))

    @property
    def default(self) -> str:
        """Return what tasks get as `PAI_DEFAULT_FS_URI`, without a final slash."""
        return self._uris[0]

    def resolve(self, uri: str) -> StoragePath:
        """Find the path that a URI names, or a path of the storage itself (`/alice/code`); StorageError.

        Its variables are filled in already. A URI is decoded once; a path stands for itself.
        """
        if uri.startswith("/"):
            return StoragePath.parse(uri)
        if (rest := self._rest(uri)) is not None:
            return StoragePath.parse(unquote(rest, errors="surrogateescape"))
        raise StorageError(
            Problem.INVALID,
            msg("{uri} is not in the cluster's storage, which is {root}.", uri=uri, root=self.default),
        )

    def knows(self, uri: str) -> bool:
        """Return whether a URI is meant to be in this storage, be it right or not."""
        return uri.startswith("/") or self._rest(uri) is not None

    def uri(self, path: StoragePath) -> str:
        """Return the URI of a path, below `PAI_DEFAULT_FS_URI`."""
        return self.default + path.encoded.rstrip("/")

    def told(self, uri: str) -> str:
        """Return a URI as tasks are told it: by the name under which they reach the storage over HTTP.

        It may have variables in it. What names no place of the storage over HTTP stays as it is.
        """
        rest = self._rest(uri)
        over_http = uri.startswith(_HTTP) and self.default.startswith(_HTTP)
        return self.default + rest if over_http and rest is not None else uri

    def _rest(self, uri: str) -> str | None:
        """Return what follows the storage's own URI; None where that is another's."""
        for known in self._uris:
            rest = uri.removeprefix(known)
            if rest != uri and (not rest or rest.startswith("/")):
                return rest
        return None
