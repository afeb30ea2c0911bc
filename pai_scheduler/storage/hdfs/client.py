"""Client of the name nodes of an HDFS, over WebHDFS: the one that serves, and again where that helps."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import quote

import requests
import urllib3

from pai_scheduler.i18n import msg
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import closing, exists, is_folder, no_folder, not_found

# What HDFS refuses, in the words of a storage: by its exceptions' names, and by what its sentences tell.

#: Nothing was done, and another name node, or a later moment, may do it.
PASSING_NAMES = frozenset({"StandbyException", "RetriableException", "SafeModeException"})
_UNAUTHORIZED = 401
_SERVER_ERROR = 500

_PROBLEMS = {
    "ParentNotDirectoryException": Problem.NOT_A_FOLDER,
    "AccessControlException": Problem.DENIED,
    "AuthorizationException": Problem.DENIED,
    "SecurityException": Problem.DENIED,
    "PathIsNotEmptyDirectoryException": Problem.NOT_EMPTY,
    "DSQuotaExceededException": Problem.NO_SPACE,
    "NSQuotaExceededException": Problem.NO_SPACE,
    "QuotaByStorageTypeExceededException": Problem.NO_SPACE,
    "QuotaExceededException": Problem.NO_SPACE,
    "MaxDirectoryItemsExceededException": Problem.NO_SPACE,
    "PathComponentTooLongException": Problem.INVALID,
    "IllegalArgumentException": Problem.INVALID,
    "HadoopIllegalArgumentException": Problem.INVALID,
    "InvalidPathException": Problem.INVALID,
    "UnsupportedOperationException": Problem.UNSUPPORTED,
    "FileNotFoundException": Problem.NOT_FOUND,
    "FileAlreadyExistsException": Problem.EXISTS,
}
#: Sentences that say more than the exception's name, in the order in which they count.
_SENTENCES = (
    ("is not a directory", Problem.NOT_A_FOLDER),
    ("is not a file", Problem.IS_A_FOLDER),
    ("append to directory", Problem.IS_A_FOLDER),
    ("directory is not empty", Problem.NOT_EMPTY),
    ("is a directory under rename source", Problem.INVALID),
    ("out of the range", Problem.INVALID),
)
#: A folder was asked for, and this is a file: the same sentence of HDFS with another meaning.
_FILE_THERE = "Path is not a directory"
#: Nobody may go through a file (its mode begins with a hyphen).
_FILE_ON_THE_WAY = re.compile(r"access=EXECUTE, inode=.*:-[-r][-w][-x]")


@dataclass(frozen=True, slots=True)
class Remote:
    """An error response of HDFS: the short name of its exception and the first line of its message."""

    status: int
    name: str
    sentence: str

    @property
    def may_pass(self) -> bool:
        """Return whether nothing was done, and it may be another time."""
        return (
            self.name in PASSING_NAMES or "in safe mode" in self.sentence or "startup mode" in self.sentence
        )


def remote(status: int, body: bytes) -> Remote:
    """Read an answer that is no success; one that is none of WebHDFS has no name."""
    try:
        told = json.loads(body)["RemoteException"]
        name, sentence = str(told["exception"]), str(told["message"])
    except (ValueError, KeyError, TypeError):
        name, sentence = "", ""
    return Remote(status, name, first_line(sentence))


def first_line(text: str) -> str:
    """Return a sentence without the Java that follows it."""
    return text.split("\n", 1)[0].strip()


def refusal(path: StoragePath, answer: Remote, account: str) -> StorageError:
    """Return the StorageError for what HDFS answered about a path."""
    if "not allowed to impersonate" in answer.sentence:
        return StorageError(
            Problem.DENIED,
            msg(
                "HDFS does not let {account} act for users. Its administrator sets "
                "hadoop.proxyuser.{account}.hosts and hadoop.proxyuser.{account}.groups in core-site.xml of "
                "every name node and data node, and runs hdfs dfsadmin "
                "-refreshSuperUserGroupsConfiguration ({reason}).",
                account=account,
                reason=answer.sentence,
            ),
        )
    if answer.status == _UNAUTHORIZED:
        return StorageError(
            Problem.DENIED,
            msg(
                "HDFS does not believe who the scheduler is (HTTP 401): it wants Kerberos "
                "(--storage-kerberos), or the scheduler's ticket has run out (kinit).",
            ),
        )
    if not answer.name:
        return StorageError(
            Problem.UNAVAILABLE,
            msg(
                "What answers as HDFS about {path} does not speak WebHDFS (HTTP {status}): check the address "
                "of the name nodes.",
                path=str(path),
                status=answer.status,
            ),
        )
    return _named(path, answer)


def _named(path: StoragePath, answer: Remote) -> StorageError:
    match _problem(answer):
        case Problem.NOT_FOUND:
            return not_found(path)
        case Problem.EXISTS:
            return exists(path)
        case Problem.IS_A_FOLDER:
            return is_folder(path)
        case Problem.NOT_A_FOLDER:
            return no_folder(path)
        case problem:
            return StorageError(
                problem,
                msg("HDFS does not do this with {path}: {reason}", path=str(path), reason=_reason(answer)),
            )


def _problem(answer: Remote) -> Problem:
    if answer.sentence.startswith(_FILE_THERE):
        return Problem.EXISTS
    if _FILE_ON_THE_WAY.search(answer.sentence):
        return Problem.NOT_A_FOLDER
    for part, problem in _SENTENCES:
        if part in answer.sentence:
            return problem
    if answer.name in _PROBLEMS:
        return _PROBLEMS[answer.name]
    return Problem.UNAVAILABLE


def _reason(answer: Remote) -> str:
    return answer.sentence or answer.name


def unavailable(path: StoragePath, reason: str) -> StorageError:
    """Return the error that says that HDFS does not answer."""
    return StorageError(
        Problem.UNAVAILABLE,
        msg(
            "HDFS does not answer about {path} now: {reason}. Try again later.", path=str(path), reason=reason
        ),
    )


# Asks the name nodes of an HDFS, over WebHDFS: the one that serves, and again where that helps.

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


class HdfsRefused(StorageError):
    """HDFS refused. `uncertain`: an earlier try may have done it, with its answer lost."""

    def __init__(self, error: StorageError, uncertain: bool) -> None:
        super().__init__(error.problem, error.message)
        self.uncertain = uncertain


@dataclass(frozen=True, slots=True)
class NameNodeAnswer:
    """A response of a name node. `uncertain`: an earlier try may have done it, with its response lost."""

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
                    raise HdfsRefused(refusal(path, answer, self.account), uncertain)
                reason = answer.sentence or answer.name
            except BROKEN as error:
                reason = why(error)
                uncertain = uncertain or not never_sent(error)
            if self._serving == asked:
                self._serving = (asked + 1) % len(self.urls)
            if loop.time() + pause > give_up:
                raise HdfsRefused(unavailable(path, reason), uncertain)
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
