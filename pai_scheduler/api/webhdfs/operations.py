"""The operations of WebHDFS whose answer is short, by method and name; and those that there are not.

`COPY`, the `limit` of LISTSTATUS_BATCH and the `offset` of APPEND are ours; the others are Hadoop's "WebHDFS
REST API".
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.files import Files, Right, check, home
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath

from . import answers as answers
from .parameters import Parameters, wrong_parameter

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
    """Who asks for what to be done with which path."""

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
