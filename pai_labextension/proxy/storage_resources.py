"""Which requests may pass to the cluster's storage: the WebHDFS operations that the drive uses, nothing else.

As in `resources.py`, a path is taken apart once decoded and put together anew. The scheduler is always asked
with `data=true`, so that it answers with the data itself and never with a redirect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

from .resources import OWN_PARAMETERS, MethodError, NoResourceError, ParameterError, RequestTarget

#: A file's name is whatever its owner chose, less what would lead elsewhere; longest: 255 bytes.
_NAME = re.compile(r"(?!\.{1,2}\Z)[^/\x00]{1,255}")


@dataclass(frozen=True, slots=True)
class _Operation:
    method: str
    parameters: frozenset[str]
    slow: bool


def _operation(method: str, parameters: str = "", *, slow: bool = False) -> _Operation:
    return _Operation(method, frozenset(parameters.split()), slow)


#: Hadoop's "WebHDFS REST API", and what we have beside it (COPY, ARCHIVE, `limit`, APPEND's `offset`).
_OPERATIONS: Mapping[str, _Operation] = {
    "OPEN": _operation("GET", "offset length"),
    "ARCHIVE": _operation("GET"),
    "GETFILESTATUS": _operation("GET"),
    "LISTSTATUS_BATCH": _operation("GET", "startAfter limit"),
    "GETCONTENTSUMMARY": _operation("GET", slow=True),
    "GETHOMEDIRECTORY": _operation("GET"),
    "CREATE": _operation("PUT", "overwrite", slow=True),
    "APPEND": _operation("POST", "offset", slow=True),
    "MKDIRS": _operation("PUT"),
    "RENAME": _operation("PUT", "destination renameoptions"),
    "COPY": _operation("PUT", "destination overwrite", slow=True),
    "SETTIMES": _operation("PUT", "modificationtime accesstime"),
    "DELETE": _operation("DELETE", "recursive", slow=True),
}
#: Whose answer is contents that somebody wrote.
CONTENTS = frozenset({"OPEN", "ARCHIVE"})


@dataclass(frozen=True, slots=True)
class StorageTarget(RequestTarget):
    """Where a request to the storage goes; `name` is the file's own, empty for the root."""

    operation: str = ""
    name: str = ""


def storage_target(method: str, path: str, query: str) -> StorageTarget:
    """Find where a request goes. `path` is what follows `/webhdfs/v1`, decoded once; `query` is as it came.

    Raises `NoResourceError`, `MethodError` or `ParameterError` for what may not pass.
    """
    parts = _parts(path)
    given = [pair for pair in parse_qsl(query) if pair[0] not in OWN_PARAMETERS]
    parameters: dict[str, str] = {}
    for name, value in given:
        if name in parameters:
            raise ParameterError(name)
        parameters[name] = value
    code = parameters.pop("op", "").upper()
    operation = _OPERATIONS.get(code)
    if operation is None:
        raise ParameterError("op")
    if method != operation.method:
        raise MethodError((operation.method,))
    for parameter in parameters:
        if parameter not in operation.parameters:
            raise ParameterError(parameter)
    if "destination" in parameters:
        parameters["destination"] = "/" + "/".join(_parts(parameters["destination"]))
    return StorageTarget(
        "webhdfs/v1/" + "/".join(quote(part, safe="") for part in parts),
        urlencode({"op": code, **parameters, "data": "true"}),
        slow=operation.slow,
        operation=code,
        name=parts[-1] if parts else "",
    )


def _parts(path: str) -> list[str]:
    """Take a path apart; slashes that are doubled or at an end count for nothing, as in WebHDFS."""
    parts = [part for part in path.split("/") if part]
    if not all(_NAME.fullmatch(part) for part in parts):
        raise NoResourceError(path)
    return parts
