"""Who may do what where: each user's tree, the groups' trees, and the one that all may read.

    /<user>             the user's own
    /Output/<user>      the user's own: results of jobs (the default of outputDir)
    /Container/<user>   the user, but no job of theirs, reads what the service puts there: keys
    /Shared/<group>     the members' of a group
    /Public             all read it, administrators write

Above these trees everybody sees the way to what is open to them, and nothing else. What begins with a dot at
the root is the service's own. Administrators may do everything but that.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from pai_scheduler.i18n import msg
from pai_scheduler.job.folders import CONTAINER, OUTPUT, PUBLIC, SHARED, folder_name
from pai_scheduler.principal import Principal

from .errors import Problem, StorageError
from .path import StoragePath

#: Folders at the root that hold one tree for each user or group.
_SHELVES = (SHARED, OUTPUT, CONTAINER)
ROOT = StoragePath()


class Right(Enum):
    """What somebody wants to do with a path."""

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
