"""The operations of WebHDFS in front of the cluster's files, by method and name."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from tornado.web import stream_request_body

from pai_scheduler.api.base import ApiHandler, HandlerContext
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.files import Files, Right, check, home
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath

from . import request as answers
from .handover import sender_of
from .redirect_tickets import RequestScope
from .request import TRANSFERS, Parameters, WebHdfsRequest, listing_pieces, wrong_parameter

# The operations of WebHDFS whose answer is short, by method and name; and those that there are not.
#
# `COPY`, the `limit` of LISTSTATUS_BATCH and the `offset` of APPEND are ours; the others are Hadoop's
# "WebHDFS REST API".

#: Entries in a part of a listing where nobody says how many; HDFS has as many (dfs.ls.limit).
_BATCH = 1000
#: Entries in a part at most, however many are asked for: while it is put into JSON everybody else waits.
_LARGEST_BATCH = 5000
_TRASH = ".Trash"
#: Files that are put at the end of another at once.
_MOST_SOURCES = 1000
_ACCESS = re.compile(r"[r-][w-][x-]")


@dataclass(frozen=True, slots=True)
class Question:
    """Principal, path and parameters of a requested operation."""

    files: Files
    principal: Principal
    path: StoragePath
    parameters: Parameters


#: Gives the JSON of the answer; None: there is nothing to say. It may raise StorageError or RequestError.
Operation = Callable[[Question], Awaitable[Mapping[str, object] | None]]


async def _file_status(ask: Question) -> Mapping[str, object]:
    return answers.status_answer(await ask.files.status(ask.principal, ask.path))


async def _list_batch(ask: Question) -> Mapping[str, object]:
    after = ask.parameters.text("startafter")
    limit = min(ask.parameters.number("limit") or _BATCH, _LARGEST_BATCH)
    return answers.batch_answer(await ask.files.list(ask.principal, ask.path, after, limit), ask.path)


async def _summary(ask: Question) -> Mapping[str, object]:
    return answers.summary_answer(await ask.files.summary(ask.principal, ask.path))


async def _checksum(ask: Question) -> Mapping[str, object]:
    return answers.checksum_answer(await ask.files.checksum(ask.principal, ask.path))


async def _home(ask: Question) -> Mapping[str, object]:
    return answers.path_answer(home(ask.principal.name))


async def _trash(ask: Question) -> Mapping[str, object]:
    return answers.path_answer(home(ask.principal.name) / _TRASH)


async def _acl(ask: Question) -> Mapping[str, object]:
    return answers.acl_answer(await ask.files.status(ask.principal, ask.path))


async def _check_access(ask: Question) -> None:
    access = ask.parameters.text("fsaction")
    if not _ACCESS.fullmatch(access):
        raise wrong_parameter("fsaction", msg("it must look like {example}.", example="rw-"))
    await ask.files.check_access(ask.principal, ask.path, access)


async def _truncate(ask: Question) -> Mapping[str, object]:
    length = ask.parameters.number("newlength")
    if length is None:
        raise wrong_parameter("newlength", msg("it is missing."))
    return answers.boolean_answer(await ask.files.truncate(ask.principal, ask.path, length))


async def _concat(ask: Question) -> None:
    sources = ask.parameters.paths("sources")
    if len(sources) > _MOST_SOURCES:
        raise wrong_parameter("sources", msg("these are too many: at most {most}.", most=_MOST_SOURCES))
    await ask.files.concat(ask.principal, ask.path, sources)


async def _mkdirs(ask: Question) -> Mapping[str, object]:
    await ask.files.mkdirs(ask.principal, ask.path, ask.parameters.permission())
    return answers.boolean_answer(True)


async def _rename(ask: Question) -> Mapping[str, object] | None:
    """Move. Without `renameoptions` what stands in the way is answered with false, as HDFS does."""
    target, options = ask.parameters.path("destination"), ask.parameters.text("renameoptions").upper()
    try:
        await ask.files.rename(ask.principal, ask.path, target, overwrite="OVERWRITE" in options)
    except StorageError as error:
        if options or error.problem not in (Problem.NOT_FOUND, Problem.EXISTS, Problem.NOT_A_FOLDER):
            raise
        return answers.boolean_answer(False)
    return None if options else answers.boolean_answer(True)


async def _copy(ask: Question) -> Mapping[str, object]:
    target, overwrite = ask.parameters.path("destination"), ask.parameters.flag("overwrite")
    await ask.files.copy(ask.principal, ask.path, target, overwrite=overwrite)
    return answers.boolean_answer(True)


async def _delete(ask: Question) -> Mapping[str, object]:
    recursive = ask.parameters.flag("recursive")
    return answers.boolean_answer(await ask.files.delete(ask.principal, ask.path, recursive=recursive))


async def _set_permission(ask: Question) -> None:
    # Hadoop's default
    permission = ask.parameters.permission()
    await ask.files.set_permission(ask.principal, ask.path, 0o755 if permission is None else permission)


async def _set_times(ask: Question) -> None:
    modified, accessed = ask.parameters.signed("modificationtime"), ask.parameters.signed("accesstime")
    await ask.files.set_times(ask.principal, ask.path, _time(modified), _time(accessed))


async def _set_replication(ask: Question) -> Mapping[str, object]:
    """Accept any: how often files are kept is the storage's own business. A folder has no such number."""
    ask.parameters.number("replication")
    check(ask.principal, ask.path, Right.WRITE)
    return answers.boolean_answer(not (await ask.files.status(ask.principal, ask.path)).is_folder)


async def _set_owner(ask: Question) -> None:
    check(ask.principal, ask.path, Right.WRITE)
    status = await ask.files.status(ask.principal, ask.path)
    owner, group = ask.parameters.text("owner"), ask.parameters.text("group")
    if (owner and owner != status.owner) or (group and group != status.group):
        raise StorageError(
            Problem.DENIED,
            msg("{path} stays {owner}'s: a file belongs to whose tree it is in.", path=str(ask.path),
                owner=status.owner),
        )  # fmt: skip


def _time(value: int | None) -> int | None:
    """Read a time; a negative one is Hadoop's "leave it as it is"."""
    return None if value is None or value < 0 else value


#: What Hadoop has and these storages have not, by method; docs/users/storage.md says why.
UNSUPPORTED: Mapping[str, tuple[str, ...]] = {
    "GET": (
        "GETDELEGATIONTOKEN",
        "GETECPOLICY",
        "GETFILEBLOCKLOCATIONS",
        "GETFILELINKSTATUS",
        "GETLINKTARGET",
        "GETQUOTAUSAGE",
        "GETSNAPSHOTDIFF",
        "GETSNAPSHOTLIST",
        "GETSNAPSHOTTABLEDIRECTORYLIST",
        "GETALLSTORAGEPOLICY",
        "GETSTORAGEPOLICY",
        "GETXATTRS",
        "LISTXATTRS",
    ),
    "PUT": (
        "ALLOWSNAPSHOT",
        "CANCELDELEGATIONTOKEN",
        "CREATESNAPSHOT",
        "CREATESYMLINK",
        "DISABLEECPOLICY",
        "DISALLOWSNAPSHOT",
        "ENABLEECPOLICY",
        "MODIFYACLENTRIES",
        "REMOVEACL",
        "REMOVEACLENTRIES",
        "REMOVEDEFAULTACL",
        "REMOVEXATTR",
        "RENAMESNAPSHOT",
        "RENEWDELEGATIONTOKEN",
        "SATISFYSTORAGEPOLICY",
        "SETACL",
        "SETECPOLICY",
        "SETQUOTA",
        "SETQUOTABYSTORAGETYPE",
        "SETSTORAGEPOLICY",
        "SETXATTR",
    ),
    "POST": ("UNSETECPOLICY", "UNSETSTORAGEPOLICY"),
    "DELETE": ("DELETESNAPSHOT",),
}

OPERATIONS: Mapping[str, Mapping[str, Operation]] = {
    "GET": {
        "GETFILESTATUS": _file_status,
        "LISTSTATUS_BATCH": _list_batch,
        "GETCONTENTSUMMARY": _summary,
        "GETFILECHECKSUM": _checksum,
        "GETHOMEDIRECTORY": _home,
        "GETTRASHROOT": _trash,
        "GETACLSTATUS": _acl,
        "CHECKACCESS": _check_access,
    },
    "PUT": {
        "MKDIRS": _mkdirs,
        "RENAME": _rename,
        "COPY": _copy,
        "SETPERMISSION": _set_permission,
        "SETTIMES": _set_times,
        "SETREPLICATION": _set_replication,
        "SETOWNER": _set_owner,
    },
    "POST": {"TRUNCATE": _truncate, "CONCAT": _concat},
    "DELETE": {"DELETE": _delete},
}


def no_operation(operation: str, method: str, *there: Mapping[str, Iterable[str]]) -> RequestError:
    """Refuse an operation that is not `there`, by method: nobody has it, or these storages have not."""
    known = ", ".join(sorted(name for by_method in there for name in by_method.get(method, ())))
    if operation in UNSUPPORTED.get(method, ()):
        message = msg(
            "This storage has no {operation}. For {method} it has: {known}.",
            operation=operation,
            method=method,
            known=known,
        )
        return RequestError(400, "UnsupportedOperationException", message)
    message = msg(
        "There is no operation op={operation} for {method}. There are: {known}.",
        operation=operation[:40],
        method=method,
        known=known,
    )
    return RequestError(400, "IllegalArgumentException", message)


# WebHDFS in front of the cluster's files, so that no client needs to reach a datanode, or HDFS at all.
#
# Hadoop's "WebHDFS REST API", with the redirects of OPEN, CREATE and APPEND leading back here: their
# Location has a ticket instead of a token. `data=true` with a token of one's own is answered at once.
# Beside it there are COPY, ARCHIVE, and `limit` for LISTSTATUS_BATCH. What carries a file's bytes never
# comes as far as this handler: `handover.py` passes it on.

#: What may have a long answer.
_LONG: Mapping[str, tuple[str, ...]] = {"GET": ("LISTSTATUS",)}


@stream_request_body
class WebHdfsHandler(WebHdfsRequest, ApiHandler):
    """`/webhdfs/v1/…`: redirects, and everything that is done without a file's bytes."""

    def initialize(self, context: HandlerContext) -> None:  # type: ignore[override]
        """Take what tornado hands to each new handler."""
        WebHdfsRequest.initialize(self)
        ApiHandler.initialize(self, context)
        self.prefix = context.prefix

    @property
    def files(self) -> Files:
        """Return the cluster's files."""
        return self.service.files

    async def identify(self) -> Principal:
        """Know the caller by a ticket, or by a token of one's own or of a job."""
        return await sender_of(self.request, self.context)

    async def begin(self) -> None:
        """Redirect what carries a file; refuse what there is not."""
        method = self.request.method or ""
        if self.operation in TRANSFERS.get(method, ()):
            if self.parameters.flag("data"):
                raise RuntimeError("what carries a file's bytes came past the file servers")
            await self.check_transfer()
            self._redirect(method)
        elif self.operation not in (*_LONG.get(method, ()), *OPERATIONS.get(method, ())):
            raise no_operation(self.operation, method, TRANSFERS, _LONG, OPERATIONS)

    async def act(self) -> None:
        """Do it."""
        if self.operation == "LISTSTATUS":
            # a folder of any length, beside everybody else's requests
            listing = await self.files.list(self.principal, self.path)
            self.set_header("Content-Type", "application/json; charset=UTF-8")
            await self.send_pieces(_one_by_one(listing_pieces(listing, self.path)))
            return
        ask = Question(self.files, self.principal, self.path, self.parameters)
        body = await OPERATIONS[self.request.method or ""][self.operation](ask)
        self.answer_nothing() if body is None else self.answer(body)

    def sent(self, size: int) -> None:
        """Count bytes that were sent."""
        self.service.monitor.sent(type(self).__name__, size)

    def _redirect(self, method: str) -> None:
        """Send the client to ourselves again, with a ticket."""
        scope = RequestScope(method, self.operation, self.path, self.parameters.of_the_request)
        ticket = self.context.tickets.issue(self.principal, scope)
        values = [*sorted(scope.parameters), ("data", "true"), ("ticket", ticket)]
        location = f"{self.here}?{urlencode(values, errors='surrogateescape')}"
        if self.parameters.flag("noredirect"):
            self.answer({"Location": location})
            return
        self.set_status(307)
        self.set_header("Location", location)
        self.answer_nothing()


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
