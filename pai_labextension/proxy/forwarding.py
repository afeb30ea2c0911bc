"""Requests that are handed on to the scheduler and `pai-sessions`: which ones may pass, and the client."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import aiohttp
from yarl import URL

from pai_labextension.callers import PersonHandler, RefusedError
from pai_labextension.messages import msg
from pai_scheduler.i18n import Message

from .streaming import BodyPipe, Rewriter, StreamingProxy, raw_headers

# The scheduler behind the proxy: which of its addresses are open, and the client that asks it.


# Which requests may pass to the scheduler: the API's known resources, methods and parameters, nothing else.
#
# Paths are taken apart once decoded and put together anew, so what the scheduler gets is never what the
# browser wrote: a traversal, however it is encoded, ends here.

#: A part of a path that a person chose: no `/`, `\`, `%` (nothing is encoded twice) or control character.
_WORD = re.compile(r"(?!\.{1,2}\Z)[^/\\%?#\x00-\x1f\x7f]{1,255}")
_INDEX = re.compile(r"[0-9]{1,9}")
_STREAM = re.compile(r"stdout|stderr|all")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_PLACEHOLDERS = {"{fingerprint}": _FINGERPRINT, "{name}": _WORD, "{index}": _INDEX, "{stream}": _STREAM}

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
    """Target of a request, encoded; `path` is what is below the scheduler's address.

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
    _resource(f"{_JOB}/events", "GET", "follow new limit after"),
    _resource("events", "GET", "username follow new limit after"),
    _resource("changes", "GET", "after"),
    _resource(f"{_TASK}/logs/{{stream}}", "GET", "attempt offset since limit follow timestamps"),
    _resource(f"{_TASK}/metrics", "GET", "attempt after"),
    _resource("validate", "POST", "user"),
    _resource("nodes"),
    _resource("nodes/{name}", "PUT"),
    _resource("maintenance"),
    _resource("maintenance/{name}", "PUT DELETE"),
    _resource("cluster/usage", "GET", "after"),
    _resource("virtual-clusters"),
    _resource("virtual-clusters/{name}", "GET PUT DELETE"),
    _resource("virtual-clusters/{name}/status", "PUT"),
)


_SERVERS = ("users/{name}/server", "users/{name}/servers/{name}")
#: What the service `pai-sessions` has for administrators (docs/administrators/sessions.md).
_SESSIONS_RESOURCES = (
    _resource("sessions"),
    _resource("strangers", "POST"),
    *(_resource(f"{server}/{action}", "POST") for server in _SERVERS for action in ("end", "messages")),
)


def target(method: str, path: str, query: str) -> RequestTarget:
    """Find where a request goes. `path` is what follows `/api/v1/`, decoded once; `query` is as it came.

    Raises `NoResourceError`, `MethodError` or `ParameterError` for what may not pass.
    """
    parts = tuple(path.split("/"))
    if parts[2:3] == ("ssh-keys",):
        # of all that names something, a fingerprint alone may have a slash
        parts = (*parts[:3], *(("/".join(parts[3:]),) if parts[3:] else ()))
    return _find(_RESOURCES, "api/v1/", method, parts, query)


def sessions_target(method: str, path: str, query: str) -> RequestTarget:
    """Find where a request to `pai-sessions` goes, as `target` does for the scheduler."""
    return _find(_SESSIONS_RESOURCES, "api/", method, tuple(path.split("/")), query)


def _find(
    resources: Iterable[_Resource], prefix: str, method: str, parts: tuple[str, ...], query: str
) -> RequestTarget:
    path = "/".join(parts)
    resource = next((resource for resource in resources if resource.matches(parts)), None)
    if resource is None:
        raise NoResourceError(path)
    if method not in resource.methods:
        raise MethodError(resource.methods)
    parameters = [pair for pair in parse_qsl(query) if pair[0] not in OWN_PARAMETERS]
    for name, _ in parameters:
        if name not in resource.parameters:
            raise ParameterError(name)
    return RequestTarget(
        prefix + "/".join(quote(part, safe="") for part in parts),
        urlencode(parameters),
        follows=any(name == "follow" and value.lower() in ("1", "true") for name, value in parameters),
    )


# Which requests may pass to the cluster's storage: the WebHDFS operations that the drive uses, nothing
# else.
#
# As with the API, a path is taken apart once decoded and put together anew. The scheduler is always
# asked with `data=true`, so that it answers with the data itself and never with a redirect.

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
    """Target of a request to the storage; `name` is the file's own, empty for the root."""

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


# The way to the scheduler, asked with the token of whoever asks.

#: Of a browser's request only these go on: no cookie, no Authorization, nothing hop-by-hop.
_REQUEST_HEADERS = (
    "Accept",
    "Accept-Language",
    "Content-Type",
    "Content-Length",
    "If-None-Match",
    "Last-Event-ID",
)
#: Of the scheduler's answer only these come back.
_RESPONSE_HEADERS = (
    "Cache-Control",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Type",
    "ETag",
    "Last-Modified",
    "Link",
    "Retry-After",
    "X-Log-Notice",
    "X-Log-Offset",
    "X-Log-Removed",
    "X-Warning",
)
#: Seconds of silence before the scheduler counts as away; the second where it may have a tree to go through.
_SILENCE, _WORK = 30.0, 900.0


class SchedulerUnreachableError(Exception):
    """Nobody answered at the scheduler's address, or somebody else did (a proxy that stands before it)."""


class Upstream:
    """The scheduler at `url` (without `/api/v1`, `/webhdfs/v1`); each request has its person's token."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._http = aiohttp.ClientSession(
            # idle connections go before Node's proxy (5 s) would close them under a request of ours
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2.0),
            headers={"Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("Content-Type", "User-Agent"),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def ask(
        self,
        method: str,
        target: RequestTarget,
        token: str,
        headers: Mapping[str, str],
        body: BodyPipe | None,
    ) -> aiohttp.ClientResponse:
        """Ask the scheduler in the name of a token's person; SchedulerUnreachableError: nobody answers."""
        try:
            answer = await self._http.request(
                method,
                URL(f"{self.url}/{target.path}" + (f"?{target.query}" if target.query else ""), encoded=True),
                headers=[*_only(_REQUEST_HEADERS, headers.items()), ("Authorization", f"Bearer {token}")],
                data=body,
                allow_redirects=False,
                timeout=_timeout(target),
            )
        except (aiohttp.ClientError, OSError) as error:
            raise SchedulerUnreachableError(str(error) or type(error).__name__) from error
        if not (200 <= answer.status < 300 or _is_of_the_api(answer)):
            answer.close()
            raise SchedulerUnreachableError(f"{answer.status} {answer.reason}")
        return answer


def answer_headers(answer: aiohttp.ClientResponse) -> list[tuple[str, str]]:
    """Return the headers of the scheduler's answer that come back."""
    return _only(_RESPONSE_HEADERS, raw_headers(answer))


def _timeout(target: RequestTarget) -> aiohttp.ClientTimeout:
    # nothing bounds the pause between two lines of a log that is followed
    read = None if target.follows else _WORK if target.slow else _SILENCE
    return aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=read)


def _is_of_the_api(answer: aiohttp.ClientResponse) -> bool:
    """Return whether an answer is the API's refusal, which is JSON, not a page or redirect of a proxy."""
    return answer.status == HTTPStatus.NOT_MODIFIED or answer.content_type == "application/json"


def _only(names: Iterable[str], headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    wanted = {name.lower() for name in names}
    return [(name, value) for name, value in headers if name.lower() in wanted]


Found = TypeVar("Found", bound=RequestTarget)


def unreachable(upstream: Upstream, error: SchedulerUnreachableError) -> RefusedError:
    """Return what a person is told where nobody answers."""
    return RefusedError(
        HTTPStatus.BAD_GATEWAY,
        msg(
            "The scheduler at {url} does not answer ({reason}). Running jobs go on; try again later.",
            url=upstream.url,
            reason=str(error),
        ),
    )


def find_target(method: str, path: str, query: str) -> RequestTarget:
    """Do what `target` does; RefusedError, with a sentence, where it may not pass."""
    return _found(target, method, path, query, msg("The scheduler's API has no “{path}”.", path=path))


def find_storage_target(method: str, path: str, query: str) -> StorageTarget:
    """Do what `storage_target` does; RefusedError, with a sentence, where it may not pass."""
    return _found(storage_target, method, path, query, msg("“{path}” is no path of the storage.", path=path))


def _found(
    find: Callable[[str, str, str], Found], method: str, path: str, query: str, unknown: Message
) -> Found:
    try:
        return find(method, path, query)
    except NoResourceError:
        raise RefusedError(HTTPStatus.NOT_FOUND, unknown) from None
    except (MethodError, ParameterError) as error:
        raise _not_so(method, path, error) from None


def _not_so(method: str, path: str, error: MethodError | ParameterError) -> RefusedError:
    if isinstance(error, ParameterError):
        message = msg("“{path}” has no parameter “{name}”.", path=path, name=error.name)
        return RefusedError(HTTPStatus.BAD_REQUEST, message)
    allowed = str(error)
    message = msg(
        "“{path}” does not take {method}, only {allowed}.", path=path, method=method, allowed=allowed
    )
    return RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, message, headers={"Allow": allowed})


# The scheduler's API and storage for the browser.


#: What the authorizer of a notebook server is asked about.
_ACTIONS = {"GET": "read", "HEAD": "read", "POST": "write", "PUT": "write", "DELETE": "write"}


class Forwarding(StreamingProxy, PersonHandler):
    """Forwards one request that is known, with the token of whoever asks."""

    _upstream: Upstream

    async def prepare(self, **options: Any) -> None:
        """Refuse what may not pass (origin, XSRF, login, permission, resource); begin to forward the rest."""
        ready = super().prepare(**options)
        if ready is not None:
            await ready
        method = str(self.request.method)
        if method == "OPTIONS" or self._finished:
            return
        await self.check_permission(_ACTIONS.get(method))
        self._target = self.find(method, self.path_args[0] or "", self.request.query)
        if not self.caller_token:
            raise RefusedError(
                HTTPStatus.UNAUTHORIZED,
                msg("No token for the scheduler. Start this notebook server from the Hub, or set PAI_TOKEN."),
            )
        self.begin()

    # who may do it was asked in `prepare`, before the body came
    get = post = put = delete = StreamingProxy.complete

    async def ask(self, body: BodyPipe | None) -> aiohttp.ClientResponse:
        """Ask the scheduler."""
        method = str(self.request.method)
        try:
            return await self._upstream.ask(
                method, self._target, self.caller_token, self.request.headers, body
            )
        except SchedulerUnreachableError as error:
            raise self.unreachable(error) from error

    def unreachable(self, error: SchedulerUnreachableError) -> RefusedError:
        """Return what a person is told where nobody answers."""
        return unreachable(self._upstream, error)

    def find(self, method: str, path: str, query: str) -> RequestTarget:
        """Find where a request goes; RefusedError where it may not pass."""
        return find_target(method, path, query)

    def dress(self, answer: aiohttp.ClientResponse) -> Rewriter | None:
        """Set the headers of an answer that is about to be handed on."""
        self.clear_header("Content-Type")
        for name, value in answer_headers(answer):
            self.set_header(name, value)
        self.set_header("X-Content-Type-Options", "nosniff")
        return None


class SessionsForwarding(Forwarding):
    """Forwards one request to the service that watches over notebook servers."""

    def find(self, method: str, path: str, query: str) -> RequestTarget:
        """Find where a request goes; RefusedError where it may not pass."""
        unknown = msg("The sessions service has no “{path}”.", path=path)
        return _found(sessions_target, method, path, query, unknown)

    def unreachable(self, error: SchedulerUnreachableError) -> RefusedError:
        """Return what a person is told where nobody answers."""
        message = msg(
            "The sessions service at {url} is not responding ({reason}). Notebook servers keep running; "
            "try again later.",
            url=self._upstream.url,
            reason=str(error),
        )
        return RefusedError(HTTPStatus.BAD_GATEWAY, message)


# What is in a file was written by anybody: it is only ever handed over as a download, so that none of it
# runs as a page of the server.


class StorageForwarding(Forwarding):
    """Forwards one request to the storage, and its answer, both while they come."""

    _target: StorageTarget

    def find(self, method: str, path: str, query: str) -> RequestTarget:
        """Find where a request goes; RefusedError where it may not pass."""
        return find_storage_target(method, path, query)

    def dress(self, answer: aiohttp.ClientResponse) -> None:
        """Set the headers; those of contents make a download of them, in a page without rights."""
        super().dress(answer)
        goal = self._target
        if goal.operation in CONTENTS and answer.status == HTTPStatus.OK:
            archive = goal.operation == "ARCHIVE"
            name = f"{goal.name or 'storage'}.zip" if archive else goal.name
            self.set_header("Content-Type", "application/zip" if archive else "application/octet-stream")
            self.set_header("Content-Disposition", f"attachment; filename*=UTF-8''{quote(name, safe='')}")
            self.set_header("Content-Security-Policy", "sandbox; default-src 'none'")
