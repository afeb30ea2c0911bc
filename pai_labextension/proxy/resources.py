"""Which requests may pass to the scheduler: the API's known resources, methods and parameters, nothing else.

Paths are taken apart once decoded and put together anew, so what the scheduler gets is never what the
browser wrote: a traversal, however it is encoded, ends here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

#: A part of a path that a person chose: no `/`, `\`, `%` (nothing is encoded twice) or control character.
_NAME = re.compile(r"(?!\.{1,2}\Z)[^/\\%?#\x00-\x1f\x7f]{1,255}")
_INDEX = re.compile(r"[0-9]{1,9}")
_STREAM = re.compile(r"stdout|stderr|all")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_PLACEHOLDERS = {"{fingerprint}": _FINGERPRINT, "{name}": _NAME, "{index}": _INDEX, "{stream}": _STREAM}

#: What jupyter_server and JupyterLab put into a query for themselves; it is not the scheduler's business.
OWN_PARAMETERS = frozenset({"token", "_xsrf", "no_track_activity"})


class NoResourceError(Exception):
    """The API has no such path."""


class MethodError(Exception):
    """The resource is there, but not for this method; `allowed` are those it has."""

    def __init__(self, allowed: Iterable[str]) -> None:
        self.allowed = tuple(allowed)
        super().__init__(", ".join(self.allowed))


class ParameterError(Exception):
    """The resource does not have this query parameter."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """Where a request goes, encoded; `path` is what is below the scheduler's address.

    `follows`: the answer has no end; `slow`: there may be much to do before it begins.
    """

    path: str
    query: str
    follows: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class _Resource:
    parts: tuple[str, ...]
    methods: tuple[str, ...]
    parameters: frozenset[str]

    def matches(self, parts: tuple[str, ...]) -> bool:
        return len(parts) == len(self.parts) and all(
            _PLACEHOLDERS[pattern].fullmatch(part) is not None
            if pattern in _PLACEHOLDERS
            else pattern == part
            for pattern, part in zip(self.parts, parts, strict=True)
        )


def _resource(path: str, methods: str = "GET", parameters: str = "") -> _Resource:
    return _Resource(tuple(path.split("/")), tuple(methods.split()), frozenset(parameters.split()))


_JOB = "user/{name}/jobs/{name}"
_TASK = f"{_JOB}/taskRoles/{{name}}/tasks/{{index}}"
#: job-contract.md, section 4, less `/token`, which takes a password.
_RESOURCES = (
    _resource("user"),
    _resource("user/{name}"),
    _resource("authn/info"),
    _resource("openapi.yaml"),
    _resource("openapi.json"),
    _resource("jobs", "GET POST", "username state limit after"),
    _resource("user/{name}/available", "GET", "borrowing"),
    _resource("user/{name}/jobs", "GET POST", "state limit after"),
    _resource(_JOB, "GET PUT DELETE"),
    _resource(f"{_JOB}/config", "GET", "as"),
    _resource(f"{_JOB}/ssh", "GET", "task"),
    _resource(f"{_JOB}/ssh/key", "GET", "format"),
    _resource("user/{name}/schedules"),
    _resource("user/{name}/schedules/{name}", "GET PUT DELETE"),
    _resource("user/{name}/schedules/{name}/state", "PUT"),
    _resource("user/{name}/schedules/{name}/runs", "POST"),
    _resource("user/{name}/ssh-keys", "GET POST"),
    _resource("user/{name}/ssh-keys/{fingerprint}", "DELETE"),
    _resource(f"{_JOB}/attempts", "GET", "attempt tasks"),
    _resource(f"{_JOB}/executionType", "PUT"),
    _resource(f"{_JOB}/queue", "PUT"),
    _resource("queue", "GET", "virtualCluster limit after own"),
    _resource(f"{_JOB}/events", "GET", "follow limit after"),
    _resource("events", "GET", "username follow limit after"),
    _resource(f"{_TASK}/logs/{{stream}}", "GET", "attempt offset since limit follow timestamps"),
    _resource(f"{_TASK}/metrics", "GET", "attempt after"),
    _resource("validate", "POST", "user"),
    _resource("nodes"),
    _resource("cluster/usage", "GET", "after"),
    _resource("virtual-clusters"),
    _resource("virtual-clusters/{name}", "GET PUT DELETE"),
    _resource("virtual-clusters/{name}/status", "PUT"),
)


def target(method: str, path: str, query: str) -> RequestTarget:
    """Find where a request goes. `path` is what follows `/api/v1/`, decoded once; `query` is as it came.

    Raises `NoResourceError`, `MethodError` or `ParameterError` for what may not pass.
    """
    parts = tuple(path.split("/"))
    if parts[2:3] == ("ssh-keys",):
        # of all that names something, a fingerprint alone may have a slash
        parts = (*parts[:3], *(("/".join(parts[3:]),) if parts[3:] else ()))
    resource = next((resource for resource in _RESOURCES if resource.matches(parts)), None)
    if resource is None:
        raise NoResourceError(path)
    if method not in resource.methods:
        raise MethodError(resource.methods)
    parameters = [pair for pair in parse_qsl(query) if pair[0] not in OWN_PARAMETERS]
    for name, _ in parameters:
        if name not in resource.parameters:
            raise ParameterError(name)
    return RequestTarget(
        "api/v1/" + "/".join(quote(part, safe="") for part in parts),
        urlencode(parameters),
        follows=any(name == "follow" and value.lower() in ("1", "true") for name, value in parameters),
    )
