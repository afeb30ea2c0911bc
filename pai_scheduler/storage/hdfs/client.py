"""Asks the name nodes of an HDFS, by the library `hdfs`: the one that serves, and again where that helps."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import requests
import urllib3
from hdfs.client import Client, InsecureClient, _Request
from hdfs.util import HdfsError

from pai_scheduler.job.messages import msg
from pai_scheduler.storage.errors import Problem, StorageError
from pai_scheduler.storage.path import StoragePath
from pai_scheduler.storage.refusals import closing

from .errors import Remote, first_line, refusal, remote, unavailable

#: Seconds until a connection stands, and of silence in an answer.
TIMEOUT = (5.0, 60.0)
#: Threads that ask name nodes, and so connections to each.
_CONTROL = 16
#: Seconds of the first pause before asking again, and of the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0

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


class _WebHdfs(Client):
    """The library's client, for paths that are checked and mean what they say."""

    _locate = _Request("GET", stream=True, allow_redirects=False).to_method("OPEN")
    _list_batch = _Request("GET").to_method("LISTSTATUS_BATCH")
    _truncate = _Request("POST").to_method("TRUNCATE")
    _concat = _Request("POST").to_method("CONCAT")
    _check_access = _Request("GET").to_method("CHECKACCESS")

    def resolve(self, hdfs_path: str) -> str:
        """Leave a path as it is: the library would look for `#LATEST` in it."""
        return hdfs_path


class _SimpleClient(_WebHdfs, InsecureClient):
    """Says who it is, and is believed."""


class NameNodes:
    """The name nodes at `urls`, of which one serves; asked as `account`, or with its Kerberos ticket.

    `patience`: seconds for which we ask again after what may pass: a failover, the safe mode.
    """

    def __init__(self, urls: Sequence[str], account: str, *, kerberos: bool, patience: float) -> None:
        self.urls = list(urls)
        self.account = account
        self._patience = patience
        self._clients = [make_client(url, account, kerberos, _CONTROL) for url in urls]
        self._serving = 0
        self._closed = False
        self._pool = ThreadPoolExecutor(_CONTROL, "hdfs-control")

    async def close(self) -> None:
        """Let go, when the calls that are on their way have come back."""
        self._closed = True
        await asyncio.to_thread(self._pool.shutdown)
        for client in self._clients:
            client._session.close()

    async def ask(
        self,
        call: str,
        path: StoragePath,
        actor: str,
        parameters: Mapping[str, object] | None = None,
        *,
        at: str = "",
    ) -> NameNodeAnswer:
        """Do a call of the library's client in the name of `actor`; StorageError.

        `at`: what the path is called instead, in HDFS's own way. A call may be carried out twice: see
        `uncertain`.
        """
        given = dict(parameters or {})
        if actor and actor != self.account:
            given["doas"] = actor
        name = at or name_of(path)
        loop = asyncio.get_running_loop()
        give_up, pause, uncertain = loop.time() + self._patience, _FIRST_PAUSE, False
        while True:
            asked = self._serving
            method = partial(getattr(self._clients[asked], f"_{call}"), name, strict=False, **given)
            try:
                if self._closed:
                    raise closing(path)
                response: requests.Response = await loop.run_in_executor(self._pool, method)
                if response.status_code < requests.codes.bad_request:
                    return NameNodeAnswer(response, uncertain)
                answer = remote(response.status_code, response.content)
                if not answer.may_pass:
                    raise Refused(refusal(path, answer, self.account), uncertain)
                reason = answer.sentence or answer.name
            except HdfsError as error:
                reason = first_line(str(error))
            except KeyError:
                raise refusal(path, Remote(0, "", ""), self.account) from None
            except BROKEN as error:
                reason = why(error)
                uncertain = uncertain or not never_sent(error)
            if self._serving == asked:
                self._serving = (asked + 1) % len(self._clients)
            if loop.time() + pause > give_up:
                raise Refused(unavailable(path, reason), uncertain)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)


def make_client(url: str, account: str, kerberos: bool, connections: int) -> Any:
    """Make a client of one server; UNSUPPORTED where Kerberos lacks its library."""
    session = requests.Session()
    adapter = requests.adapters.HTTPAdapter(pool_connections=4, pool_maxsize=connections, pool_block=True)
    for scheme in ("http://", "https://"):
        session.mount(scheme, adapter)
    if not kerberos:
        return _SimpleClient(url, user=account, timeout=TIMEOUT, session=session)
    try:
        from hdfs.ext.kerberos import KerberosClient
    except ImportError as error:
        raise StorageError(
            Problem.UNSUPPORTED,
            msg(
                "--storage-kerberos needs the library requests-kerberos: pip install '{package}' ({reason}).",
                package="pai-for-jupyter[kerberos]",
                reason=error,
            ),
        ) from error

    class KerberizedClient(_WebHdfs, KerberosClient):
        """Proves who it is with the ticket of this process's user."""

    return KerberizedClient(url, timeout=TIMEOUT, session=session)


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
