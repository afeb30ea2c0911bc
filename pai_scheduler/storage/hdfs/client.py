"""Asks the name nodes of an HDFS, over WebHDFS: the one that serves, and again where that helps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import requests
import urllib3

from pai_scheduler.i18n import msg
from pai_scheduler.storage.errors import Problem, StorageError
from pai_scheduler.storage.path import StoragePath
from pai_scheduler.storage.refusals import closing

from .errors import first_line, refusal, remote, unavailable

#: Seconds until a connection stands, and of silence in an answer.
TIMEOUT = (5.0, 60.0)
#: Threads that ask name nodes, and so connections to each.
_CONTROL = 16
#: Seconds of the first pause before asking again, and of the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0

#: Operations whose answer is the address of a data node, which is asked apart; OPEN's may be the contents.
_ELSEWHERE = frozenset({"OPEN", "CREATE", "APPEND"})
#: The methods of WebHDFS's operations; of all others GET.
_METHODS = {
    "MKDIRS": "PUT",
    "CREATE": "PUT",
    "RENAME": "PUT",
    "SETOWNER": "PUT",
    "SETPERMISSION": "PUT",
    "SETTIMES": "PUT",
    "APPEND": "POST",
    "CONCAT": "POST",
    "TRUNCATE": "POST",
    "DELETE": "DELETE",
}

#: What goes wrong with a connection, at either end of the libraries.
BROKEN = (requests.RequestException, urllib3.exceptions.HTTPError, OSError)


class Refused(StorageError):
    """HDFS refused. `uncertain`: an earlier try may have done it, with its answer lost."""

    def __init__(self, error: StorageError, uncertain: bool) -> None:
        super().__init__(error.problem, error.message)
        self.uncertain = uncertain


@dataclass(frozen=True, slots=True)
class NameNodeAnswer:
    """What a name node answered. `uncertain`: an earlier try may have done it, with its answer lost."""

    response: requests.Response
    uncertain: bool

    def json(self, *keys: str) -> Any:
        """Return what is below the keys of the answer."""
        value = self.response.json()
        for key in keys:
            value = value[key]
        return value


class NameNodes:
    """The name nodes at `urls`, of which one serves; asked as `account`, or with its Kerberos ticket.

    `patience`: seconds for which we ask again after what may pass: a failover, the safe mode.
    """

    def __init__(self, urls: Sequence[str], account: str, *, kerberos: bool, patience: float) -> None:
        self.urls = [url.rstrip("/") for url in urls]
        self.account = account
        self._patience = patience
        self._session = make_session(account, kerberos, _CONTROL)
        self._serving = 0
        self._closed = False
        self._pool = ThreadPoolExecutor(_CONTROL, "hdfs-control")

    async def close(self) -> None:
        """Close the connections, once the calls under way have returned."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        self._session.close()

    async def ask(
        self,
        operation: str,
        path: StoragePath,
        actor: str,
        parameters: Mapping[str, object] | None = None,
        *,
        at: str = "",
    ) -> NameNodeAnswer:
        """Have an operation of WebHDFS done in the name of `actor`; StorageError.

        `at`: what the path is called instead, in HDFS's own way. It may be carried out twice: see
        `uncertain`.
        """
        given: dict[str, Any] = {"op": operation, **(parameters or {})}
        if actor and actor != self.account:
            given["doas"] = actor
        place = f"/webhdfs/v1{quote(at or name_of(path))}"
        method = _METHODS.get(operation, "GET")
        loop = asyncio.get_running_loop()
        give_up, pause, uncertain = loop.time() + self._patience, _FIRST_PAUSE, False
        while True:
            asked = self._serving
            request = partial(
                self._session.request,
                method,
                self.urls[asked] + place,
                given,
                timeout=TIMEOUT,
                stream=operation == "OPEN",
                allow_redirects=operation not in _ELSEWHERE,
            )
            try:
                if self._closed:
                    raise closing(path)
                response = await loop.run_in_executor(self._pool, request)
                if response.status_code < requests.codes.bad_request:
                    return NameNodeAnswer(response, uncertain)
                answer = remote(response.status_code, response.content)
                if not answer.may_pass:
                    raise Refused(refusal(path, answer, self.account), uncertain)
                reason = answer.sentence or answer.name
            except BROKEN as error:
                reason = why(error)
                uncertain = uncertain or not never_sent(error)
            if self._serving == asked:
                self._serving = (asked + 1) % len(self.urls)
            if loop.time() + pause > give_up:
                raise Refused(unavailable(path, reason), uncertain)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def make_session(account: str, kerberos: bool, connections: int) -> requests.Session:
    """Make a session that says who asks; UNSUPPORTED where Kerberos lacks its library."""
    session = requests.Session()
    # HttpFS takes contents of no other type
    session.headers["Content-Type"] = "application/octet-stream"
    adapter = requests.adapters.HTTPAdapter(pool_connections=4, pool_maxsize=connections, pool_block=True)
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    if not kerberos:
        session.params = {"user.name": account}
        return session
    try:
        from requests_kerberos import OPTIONAL, HTTPKerberosAuth
    except ImportError as error:
        raise StorageError(
            Problem.UNSUPPORTED,
            msg(
                "--storage-kerberos needs the library requests-kerberos: pip install '{package}' ({reason}).",
                package="pai-for-jupyter[kerberos]",
                reason=error,
            ),
        ) from error
    session.auth = HTTPKerberosAuth(mutual_authentication=OPTIONAL)
    return session


def name_of(path: StoragePath) -> str:
    """Return a path as HDFS takes it; INVALID where it cannot."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise StorageError(
            Problem.INVALID, msg("{path} cannot be a name in HDFS: it is not UTF-8.", path=ascii(text))
        ) from None
    if ":" in text:
        raise StorageError(
            Problem.INVALID, msg("{path} cannot be a name in HDFS: leave out the colon.", path=text)
        )
    return text


def never_sent(error: BaseException) -> bool:
    """Return whether a connection never stood, so that nothing has been asked."""
    if isinstance(error, requests.ConnectTimeout):
        return True
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(reason, urllib3.exceptions.NewConnectionError)


def why(error: BaseException) -> str:
    """Return the innermost reason of what went wrong with a connection, in one line."""
    while True:
        inner = error.__cause__ or error.__context__
        if inner is None:
            break
        error = inner
    return first_line(str(error)) or type(error).__name__
