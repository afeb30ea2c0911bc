"""The storage that an administrator means: a folder of this machine, or the name nodes of an HDFS."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from pai_scheduler.i18n import msg

from .folder.storage import FolderStorage
from .hdfs.storage import HdfsStorage
from .paths import Problem, StorageError
from .protocol import Storage

#: How WebHDFS is spoken, by the scheme in the address of a name node.
_SCHEMES = {"http": "http", "https": "https", "webhdfs": "http", "swebhdfs": "https"}


def choose_storage(where: str | None, folder: Path, *, account: str, kerberos: bool = False) -> Storage:
    """Make the storage that `where` names; StorageError (INVALID, UNSUPPORTED) where it names none.

    A folder's path or `file:///…` (where nothing is said: `folder`), or the name nodes' web addresses, one or
    more with `;` between: `http://name:9870;http://other:9870`, `https://…`, `webhdfs://…`, `swebhdfs://…`.
    `account`: as whom HDFS knows the scheduler; with `kerberos` its process's ticket proves that.
    """
    if (chosen := folder_of(where, folder)) is not None:
        return FolderStorage(chosen)
    where = (where or "").strip()
    urls = [_web_address(where, one.strip()) for one in where.split(";") if one.strip()]
    return HdfsStorage(urls, account, kerberos=kerberos)


def folder_of(where: str | None, folder: Path) -> Path | None:
    """Return the folder that `where` names, as `choose_storage` does; None where it names no folder."""
    where = (where or "").strip()
    if not where:
        return folder
    if where.startswith("file:"):
        url = urlsplit(where)
        if url.netloc not in ("", "localhost") or not url.path.startswith("/"):
            raise _wrong(where, "file:///srv/pai")
        return Path(unquote(url.path))
    return Path(where).expanduser().absolute() if "://" not in where else None


def _web_address(where: str, given: str) -> str:
    """Return the address at which a name node speaks WebHDFS."""
    url = urlsplit(given)
    if url.scheme == "hdfs":
        # that is the name nodes' own protocol, at another port, which only they know
        raise _wrong(where, f"http://{url.hostname or 'namenode'}:9870")
    try:
        port = url.port
    except ValueError:
        port = None
    if url.scheme not in _SCHEMES or not url.hostname or port is None or url.path.strip("/") or url.query:
        raise _wrong(where, "http://namenode:9870;http://second:9870")
    return f"{_SCHEMES[url.scheme]}://{url.netloc}"


def _wrong(where: str, example: str) -> StorageError:
    return StorageError(
        Problem.INVALID,
        msg(
            "{where} names no storage. Give a folder, or the web address of the name node as host and port, "
            "as {example}.",
            where=where,
            example=example,
        ),
    )
