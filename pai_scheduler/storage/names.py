"""The URIs under which people and jobs name what is in the storage."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import unquote

from pai_scheduler.i18n import msg

from .errors import Problem, StorageError
from .path import StoragePath

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
