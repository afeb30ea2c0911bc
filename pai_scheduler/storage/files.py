"""The cluster's files as one user may use them: every call says who asks, and is refused or carried out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from pai_scheduler.i18n import msg
from pai_scheduler.job.spec import CONTAINER, OUTPUT, PUBLIC, SHARED, folder_name
from pai_scheduler.principal import Principal

from .paths import Problem, StorageError, StorageNames, StoragePath
from .protocol import Checksum, FileStatus, Listing, OpenFile, Storage, Summary

# Who may do what where: each user's tree, the groups' trees, and the one that all may read.
#
#     /<user>             the user's own
#     /Output/<user>      the user's own: results of jobs (the default of outputDir)
#     /Container/<user>   the user, but no job of theirs, reads what the service puts there: keys
#     /Shared/<group>     the members' of a group
#     /Public             all read it, administrators write
#
# Above these trees everybody sees the way to what is open to them, and nothing else. What begins with a dot
# at the root is the service's own. Administrators may do everything but that.

#: Folders at the root that hold one tree for each user or group.
_SHELVES = (SHARED, OUTPUT, CONTAINER)
ROOT = StoragePath()


class Right(Enum):
    """The kind of access to a path."""

    READ = "read"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Tree:
    """A part of the storage with rights of its own; `owner` is its user's or group's folder name."""

    root: StoragePath
    owner: str = ""
    group: str = ""

    @property
    def permission(self) -> int:
        """Return the bits of its root, where a storage keeps such rights too."""
        return 0o755 if not (self.owner or self.group) else 0o770 if self.group else 0o700


def home(user: str) -> StoragePath:
    """Return a user's own tree."""
    return StoragePath((folder_name(user),))


def tree_of(path: StoragePath) -> Tree | None:
    """Find the tree that a path is in; None above all trees, and for what is the service's own."""
    match path.parts:
        case (first, *_) if first == PUBLIC:
            return Tree(StoragePath((PUBLIC,)))
        case (first, name, *_) if first == SHARED:
            return Tree(StoragePath((first, name)), group=name)
        case (first, name, *_) if first in _SHELVES:
            return Tree(StoragePath((first, name)), owner=name)
        case (first, *_) if first not in _SHELVES and not first.startswith("."):
            return Tree(StoragePath((first,)), owner=first)
    return None


def may(principal: Principal, path: StoragePath, right: Right) -> bool:
    """Return whether somebody may read, or write, what is at a path (which need not be there)."""
    tree = tree_of(path)
    if tree is None:
        return right is Right.READ and not (path.parts and path.parts[0].startswith("."))
    if principal.admin:
        return True
    if tree.group:
        return tree.group in {folder_name(group) for group in principal.groups}
    if tree.owner:
        own = tree.owner == folder_name(principal.name)
        # (with the keys in there one comes into all that the user runs)
        in_container = tree.root.parts[0] == CONTAINER
        return own and not (in_container and (right is Right.WRITE or principal.is_job))
    return right is Right.READ


def check(principal: Principal, path: StoragePath, right: Right) -> None:
    """Refuse (DENIED) what somebody may not do. Whether the path is there makes no difference."""
    if may(principal, path, right):
        return
    values = {"user": principal.name, "path": str(path), "own": str(home(principal.name))}
    if right is Right.READ:
        refusal = msg("User {user} may not read {path}. Your own files are in {own}.", **values)
    else:
        refusal = msg("User {user} may not write to {path}. Your own files are in {own}.", **values)
    raise StorageError(Problem.DENIED, refusal)


# The cluster's files as one user may use them: every call says who asks, and is refused or carried out.
#
# The only way to a storage from outside this package: the gateway, the launcher and the scheduler itself
# come through here.

#: Bytes of the largest file that the scheduler reads for itself.
SMALL = 64 * 1024
#: Permissions of what is for one user alone.
_OWN_FOLDER, _OWN_FILE = 0o700, 0o600


class Files:
    """Serves users what is theirs of a `storage` known by `names`. Every method may raise StorageError."""

    def __init__(self, storage: Storage, names: StorageNames) -> None:
        self._storage = storage
        self.names = names
        #: trees that are known to be there
        self._made: set[StoragePath] = set()

    async def start(self) -> None:
        """Make the storage ready."""
        await self._storage.start()

    async def close(self) -> None:
        """Close the storage."""
        await self._storage.close()

    async def status(self, principal: Principal, path: StoragePath) -> FileStatus:
        """Describe a file or folder."""
        await self._enter(principal, path, Right.READ)
        status = await self._storage.status(path, _actor(principal, path))
        if tree_of(path) is None:
            # how many users there are is nobody's business
            return replace(status, children=len((await self.list(principal, path)).entries))
        return status

    async def host_folder(self, principal: Principal, path: StoragePath) -> Path | None:
        """Return where on this machine a folder is that the caller may read; None: it must be fetched.

        DENIED above the trees: a right to that folder is one to everybody's.
        """
        if tree_of(path) is None:
            raise StorageError(
                Problem.DENIED,
                msg("{path} holds the files of others too: name a folder in it.", path=str(path)),
            )
        await self.status(principal, path)
        return self._storage.host_folder(path)

    async def list(
        self, principal: Principal, path: StoragePath, after: str = "", limit: int | None = None
    ) -> Listing:
        """List a folder in the order of names, from after the name `after` on; above the trees what is open
        to the caller only."""
        await self._enter(principal, path, Right.READ)
        if tree_of(path) is not None:
            return await self._storage.list(path, _actor(principal, path), after, limit)
        seen = [
            entry
            for entry in (await self._storage.list(path, "")).entries
            if entry.path.name > after and _is_on_the_way(principal, entry.path)
        ]
        part = seen if limit is None else seen[: max(0, limit)]
        return Listing(part, len(seen) - len(part))

    def open(
        self, principal: Principal, path: StoragePath, offset: int = 0, length: int | None = None
    ) -> AbstractAsyncContextManager[OpenFile]:
        """Read a file from `offset` on, `length` bytes at most."""
        return self._open(principal, path, offset, length)

    async def read_small(self, principal: Principal, path: StoragePath) -> bytes:
        """Return the contents of a file of 64 KiB at most (TOO_LARGE)."""
        async with self.open(principal, path, 0, SMALL + 1) as file:
            contents = b"".join([piece async for piece in file.pieces])
        if len(contents) > SMALL:
            raise StorageError(
                Problem.TOO_LARGE,
                msg("{path} is longer than {limit} KiB.", path=str(path), limit=SMALL // 1024),
            )
        return contents

    async def create(
        self,
        principal: Principal,
        path: StoragePath,
        pieces: AsyncIterator[bytes],
        *,
        overwrite: bool = False,
        permission: int | None = None,
    ) -> None:
        """Write a file; it has its name only when it is whole."""
        await self._enter(principal, path, Right.WRITE)
        await self._storage.create(
            path, _actor(principal, path), pieces, overwrite=overwrite, permission=permission
        )

    async def append(
        self,
        principal: Principal,
        path: StoragePath,
        pieces: AsyncIterator[bytes],
        *,
        offset: int | None = None,
    ) -> None:
        """Write on at a file's end, which must be at `offset` where that is given (UNAVAILABLE)."""
        await self._enter(principal, path, Right.WRITE)
        await self._storage.append(path, _actor(principal, path), pieces, offset=offset)

    async def truncate(self, principal: Principal, path: StoragePath, length: int) -> bool:
        """Cut a file to its first `length` bytes; False: the storage is still at it."""
        await self._enter(principal, path, Right.WRITE)
        return await self._storage.truncate(path, _actor(principal, path), length)

    async def concat(self, principal: Principal, target: StoragePath, sources: Sequence[StoragePath]) -> None:
        """Put files at the end of one that is in the same folder; they are gone then."""
        for path in (target, *sources):
            check(principal, path, Right.WRITE)
        if len({target, *sources}) != len(sources) + 1 or not sources:
            raise StorageError(Problem.INVALID, msg("sources must name other files, each once."))
        for source in sources:
            _keep_root(source)
            if source.parent != target.parent:
                raise StorageError(
                    Problem.INVALID,
                    msg(
                        "{source} is not in the same folder as {path}.", source=str(source), path=str(target)
                    ),
                )
        await self._enter(principal, target, Right.WRITE)
        await self._storage.concat(target, sources, _actor(principal, target, *sources))

    async def check_access(self, principal: Principal, path: StoragePath, access: str) -> None:
        """Refuse (DENIED) where the caller may not do something with what is there; `access`: as `rw-`."""
        await self._enter(principal, path, Right.READ)
        if "w" in access:
            check(principal, path, Right.WRITE)
        await self._storage.check_access(path, _actor(principal, path), access)

    async def mkdirs(self, principal: Principal, path: StoragePath, permission: int | None = None) -> None:
        """Make a folder, and those above it."""
        if not path.parts:
            return
        await self._enter(principal, path, Right.WRITE)
        await self._storage.mkdirs(path, _actor(principal, path), permission)

    async def rename(
        self, principal: Principal, source: StoragePath, target: StoragePath, *, overwrite: bool = False
    ) -> None:
        """Move in one step, both ends being the caller's to write to."""
        check(principal, source, Right.WRITE)
        _keep_root(source)
        if overwrite:
            _keep_root(target)
        if target.is_within(source):
            raise StorageError(Problem.INVALID, msg("{path} cannot be moved into itself.", path=str(source)))
        await self._enter(principal, target, Right.WRITE)
        await self._storage.rename(source, target, _actor(principal, source, target), overwrite=overwrite)

    async def copy(
        self, principal: Principal, source: StoragePath, target: StoragePath, *, overwrite: bool = False
    ) -> None:
        """Copy a file within the storage."""
        await self._enter(principal, source, Right.READ)
        await self._enter(principal, target, Right.WRITE)
        await self._storage.copy(source, target, _actor(principal, source, target), overwrite=overwrite)

    async def delete(self, principal: Principal, path: StoragePath, *, recursive: bool = False) -> bool:
        """Remove; False where there was nothing."""
        check(principal, path, Right.WRITE)
        _keep_root(path)
        return await self._storage.delete(path, _actor(principal, path), recursive=recursive)

    async def set_permission(self, principal: Principal, path: StoragePath, permission: int) -> None:
        """Change the nine bits. They open nothing to anybody who may not enter the tree."""
        await self._enter(principal, path, Right.WRITE)
        await self._storage.set_permission(path, _actor(principal, path), permission)

    async def set_times(
        self, principal: Principal, path: StoragePath, modified: int | None, accessed: int | None
    ) -> None:
        """Change when it was last changed and read (ms since the epoch; None: stays)."""
        await self._enter(principal, path, Right.WRITE)
        await self._storage.set_times(path, _actor(principal, path), modified, accessed)

    async def summary(self, principal: Principal, path: StoragePath) -> Summary:
        """Count what is in a tree; above the trees, in those that are open to the caller."""
        await self._enter(principal, path, Right.READ)
        if tree_of(path) is not None:
            return await self._storage.summary(path, _actor(principal, path))
        parts = [
            await self.summary(principal, entry.path) for entry in (await self.list(principal, path)).entries
        ]
        return Summary(
            files=sum(part.files for part in parts),
            folders=sum(part.folders for part in parts) + 1,
            length=sum(part.length for part in parts),
            space_consumed=sum(part.space_consumed for part in parts),
        )

    async def checksum(self, principal: Principal, path: StoragePath) -> Checksum:
        """Return a file's checksum."""
        await self._enter(principal, path, Right.READ)
        return await self._storage.checksum(path, _actor(principal, path))

    async def deliver(self, user: str, path: StoragePath, contents: bytes) -> None:
        """Put a small file where a user reads what the service puts: nobody else reads it, or the folder."""
        tree = Tree(StoragePath((CONTAINER, folder_name(user))), owner=folder_name(user))
        if not (_is_delivered(path) and path.is_within(tree.root)):
            raise ValueError(f"{path} is not where something is put for {user}")
        await self._make(tree)
        await self._storage.mkdirs(path.parent, user, _OWN_FOLDER)
        await self._storage.create(path, user, _once(contents), overwrite=True, permission=_OWN_FILE)

    async def withdraw(self, path: StoragePath) -> None:
        """Remove what was put there; nothing happens where it is gone."""
        if not _is_delivered(path):
            raise ValueError(f"nothing was put at {path}")
        await self._storage.delete(path, "", recursive=True)

    async def delivered(self) -> Sequence[StoragePath]:
        """List what was put there for all users: what is in the roots of their trees."""
        shelf = StoragePath((CONTAINER,))
        try:
            trees = (await self._storage.list(shelf, "")).entries
            listings = [await self._storage.list(tree.path, "") for tree in trees if tree.is_folder]
        except StorageError as error:
            if error.problem is Problem.NOT_FOUND:
                return []
            raise
        return [entry.path for listing in listings for entry in listing.entries]

    @asynccontextmanager
    async def _open(
        self, principal: Principal, path: StoragePath, offset: int, length: int | None
    ) -> AsyncIterator[OpenFile]:
        await self._enter(principal, path, Right.READ)
        async with self._storage.open(path, _actor(principal, path), offset, length) as file:
            yield file

    async def _enter(self, principal: Principal, path: StoragePath, right: Right) -> None:
        """Check the caller's right, and see to it that the tree is there.

        Reading somebody else's makes no tree. Writing does: made by the way it would not be its owner's.
        """
        check(principal, path, right)
        tree = tree_of(path)
        if tree is None:
            await self._make_own(principal)
        elif right is Right.WRITE or may(_user(principal), path, Right.READ):
            await self._make(tree)

    async def _make_own(self, principal: Principal) -> None:
        """Make the trees that are the caller's, so that they are seen before anything is in them."""
        name = folder_name(principal.name)
        for root in (
            StoragePath((name,)),
            StoragePath((OUTPUT, name)),
            StoragePath((PUBLIC,)),
            *(StoragePath((SHARED, folder_name(group))) for group in principal.groups),
        ):
            if (tree := tree_of(root)) is not None:
                await self._make(tree)

    async def _make(self, tree: Tree) -> None:
        if tree.root not in self._made:
            await self._storage.make_tree(tree.root, tree.owner, tree.group, tree.permission)
            self._made.add(tree.root)


async def _once(contents: bytes) -> AsyncIterator[bytes]:
    yield contents


def _is_delivered(path: StoragePath) -> bool:
    """Return whether a path is within one of the trees of CONTAINER."""
    match path.parts:
        case (first, _, _, *_):
            return first == CONTAINER
    return False


def _user(principal: Principal) -> Principal:
    """Return somebody without what being an administrator adds."""
    return replace(principal, admin=False)


def _actor(principal: Principal, *paths: StoragePath) -> str:
    """Return in whose name something is done: one's own, or the service's for an administrator."""
    if any(tree_of(path) is None for path in paths):
        return ""
    if principal.admin and not all(may(_user(principal), path, Right.WRITE) for path in paths):
        return ""
    return principal.name


def _is_on_the_way(principal: Principal, path: StoragePath) -> bool:
    """Return whether what stands above the trees, or at their root, leads to what the caller may read."""
    return path != ROOT and may(principal, path, Right.READ)


def _keep_root(path: StoragePath) -> None:
    tree = tree_of(path)
    if tree is not None and path == tree.root:
        raise StorageError(
            Problem.DENIED,
            msg("{path} stays as it is: only what is in it can be moved or deleted.", path=str(path)),
        )
