"""Folders of the machines that tasks are given, by group: an administrator names them, a job only asks.

A job never names a path: `extras.sharedFolders` has names of what stands in the cluster file, under
`sharedFolders`, and what they stand for depends on whose job it is. Users' and groups' names come into a path
as one part of it, escaped as in the storage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from pai_scheduler.i18n import msg
from pai_scheduler.job.spec import JobSpec, host_folder_name, volume_part
from pai_scheduler.job.validation import SpecError, overlap, wrong_target

from .config_fields import DefinitionError, read_list, read_mapping

#: What a job asks for that wants all folders which are open to its user.
ALL = "*"
_USER, _GROUP = "{username}", "{group}"
_FIELDS = ("name", "source", "volume", "target", "groups", "write", "create")
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_VOLUME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,100}")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
#: Where a machine has what is its own: shared neither as a whole nor in part.
_HOST_SYSTEM = (
    *(
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/libx32",
        "/proc",
        "/root",
        "/run",
        "/sbin",
    ),
    *("/sys", "/usr", "/var/lib/docker", "/var/run"),
)
#: What the scheduler's own volumes begin with.
_OWN_VOLUMES = "pai-"
_WORK_DIR = "/pai"


@dataclass(frozen=True, slots=True)
class SharedFolder:
    """A folder as the cluster file has it. `source`: a path on the machine; or `volume`: one of Docker's.

    `groups`: whose members have it; empty: everybody. `writers`: the groups that write, None: everybody who
    has it. In `source`, `volume` and `target` `{username}` and `{group}` stand for names: with `{group}` it
    is a folder for each group of the user (of those in `groups`, where there are any). `create`: made where
    it is missing.
    """

    name: str
    source: str
    volume: str
    target: str
    groups: tuple[str, ...] = ()
    writers: tuple[str, ...] | None = ()
    create: bool = False

    def mounts(self, user: str, groups: Sequence[str]) -> Iterator[SharedMount]:
        """Return what a user has of it; nothing where it is not open to them."""
        own = [group for group in groups if not self.groups or group in self.groups]
        if (self.groups and not own) or not user:
            return
        for group in sorted(set(own)) if self.is_by_group else ("",):
            if self.is_by_group and not group:
                continue
            named = {_USER: user, _GROUP: group}
            writing = (group,) if self.is_by_group else groups
            yield SharedMount(
                self.name,
                _filled(self.volume, named, volume_part)
                if self.volume
                else _filled(self.source, named, host_folder_name),
                _filled(self.target, named, host_folder_name),
                is_volume=bool(self.volume),
                read_only=self.writers is not None and not set(self.writers) & set(writing),
                create=self.create,
                optional=self.is_by_group and not self.create,
            )

    def meets(self, place: str) -> bool:
        """Return whether a path of the machine may be this folder's, or within it, or around it."""
        return bool(self.source) and _may_meet(self.source, place)

    @property
    def is_by_group(self) -> bool:
        """Return whether each group has one of its own."""
        return _GROUP in self.target


@dataclass(frozen=True, slots=True)
class SharedMount:
    """Mount of a shared folder in a task: a path or volume of the node it runs on, and the mount point.

    `optional`: the task starts without it, too, where it is not there. `create`: it is made then.
    """

    name: str
    source: str
    target: str
    is_volume: bool = False
    read_only: bool = True
    create: bool = False
    optional: bool = False


def shared_mounts(
    spec: JobSpec, folders: Sequence[SharedFolder], user: str, groups: Sequence[str]
) -> tuple[SharedMount, ...]:
    """Return what the tasks of a user's job are given; what is refused to the user is left out."""
    asked = set(spec.shared_folders)
    return tuple(
        mount
        for folder in folders
        if ALL in asked or folder.name in asked
        for mount in folder.mounts(user, groups)
    )


def find_refused_folders(
    spec: JobSpec, folders: Sequence[SharedFolder], user: str, groups: Sequence[str]
) -> Iterator[SpecError]:
    """Find what a user's job asks for and cannot have, and what stands where the job wants something else.

    One that there is not and one that is not the user's are refused alike: what others share is no secret
    to be guessed.
    """
    if not (folders or spec.extras):
        return
    own = {folder.name: mounts for folder in folders if (mounts := tuple(folder.mounts(user, groups)))}
    for number, name in enumerate(spec.shared_folders):
        if name != ALL and name not in own:
            yield SpecError(
                f"$.extras.sharedFolders[{number}]",
                msg(
                    "No shared folder named {name} is open to you. Open to you are: {known}.",
                    name=name,
                    known=", ".join(own) or "–",
                ),
            )
    wanted = [("$.extras.home", spec.home)] if spec.home else []
    wanted += [
        (f"$.extras.mounts[{number}].target", mount.target) for number, mount in enumerate(spec.mounts)
    ]
    for mount in shared_mounts(spec, folders, user, groups):
        for path, target in wanted:
            place = target if target.startswith("/") else f"{_WORK_DIR}/{target}"
            if overlap(_parts(mount.target), _parts(place)):
                yield SpecError(
                    path,
                    msg(
                        "{target} is where the shared folder {name} is ({place}). Choose another place, or "
                        "leave {name} out of extras.sharedFolders.",
                        target=target,
                        name=mount.name,
                        place=mount.target,
                    ),
                )


def read_shared_folders(document: object) -> tuple[SharedFolder, ...]:
    """Read `sharedFolders` of the cluster file; DefinitionError where it is wrong."""
    entries = read_list(document, "sharedFolders")
    folders = [_folder(entry, f"sharedFolders[{number}]") for number, entry in enumerate(entries)]
    for (first, one), (second, other) in combinations(enumerate(folders), 2):
        if one.name == other.name:
            text = msg("There is another shared folder named {name}.", name=other.name)
            raise DefinitionError(f"sharedFolders[{second}].name", text)
        if _may_meet(one.target, other.target):
            text = msg(
                "{target} and {other} are the same place, or one is within the other.",
                target=other.target,
                other=one.target,
            )
            raise DefinitionError(f"sharedFolders[{second}].target", text)
        if one.source and other.source:
            _check_sources(one, other, first, second)
    return tuple(folders)


def _check_sources(one: SharedFolder, other: SharedFolder, first: int, second: int) -> None:
    """Refuse two folders of which users may put a link into the one in the place of the other."""
    if not _may_meet(one.source, other.source):
        return
    outer, inner, number = (
        (one, other, second) if _depth(one.source) <= _depth(other.source) else (other, one, first)
    )
    if _depth(outer.source) == _depth(inner.source):
        if outer.source != inner.source:
            text = msg(
                "{source} and {other} are the same folder for somebody who is called so. Keep what has names "
                "in it in a folder of its own, as {example}.",
                source=inner.source,
                other=outer.source,
                example=f"/data/groups/{_GROUP}",
            )
            raise DefinitionError(f"sharedFolders[{number}].source", text)
    elif outer.writers is None or outer.writers:
        text = msg(
            "{source} is within {other}, where users may write: they could put a link to any other folder in "
            "its place. Share folders that are beside each other.",
            source=inner.source,
            other=outer.source,
        )
        raise DefinitionError(f"sharedFolders[{number}].source", text)


def _folder(entry: object, path: str) -> SharedFolder:
    fields = read_mapping(entry, path, _FIELDS)
    name = fields.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        text = msg("A shared folder needs a name: up to 40 lower-case letters, digits and hyphens.")
        raise DefinitionError(f"{path}.name", text)
    source, volume, target = (_text(fields, key, path) for key in ("source", "volume", "target"))
    if bool(source) == bool(volume):
        text = msg("Say where it is: a source (a path of the machine), or a volume (of Docker's).")
        raise DefinitionError(path, text)
    create = fields.get("create", False)
    if not isinstance(create, bool):
        raise DefinitionError(f"{path}.create", msg("This must be true or false."))
    if source:
        _check_source(source, f"{path}.source")
    else:
        _check_volume(volume, f"{path}.volume")
        if create:
            raise DefinitionError(f"{path}.create", msg("Docker makes a volume that is missing by itself."))
    _check_target(target, f"{path}.target")
    if (_GROUP in source + volume) != (_GROUP in target):
        text = msg(
            "{word} must be in both or in neither: where the folder is, and where tasks find it.", word=_GROUP
        )
        raise DefinitionError(f"{path}.target", text)
    return SharedFolder(
        name,
        source.rstrip("/"),
        volume,
        target.rstrip("/"),
        _groups(fields.get("groups", []), f"{path}.groups"),
        _writers(fields.get("write", False), f"{path}.write"),
        create,
    )


def _check_source(source: str, path: str) -> None:
    parts = _parts(source)
    if not source.startswith("/") or len(parts) < 2 or {".", ".."} & set(parts) or "\0" in source:
        text = msg("This must be a path from / on, without . and .. in it, as /data/sets.")
        raise DefinitionError(path, text)
    if any(_may_meet(source, place) for place in _HOST_SYSTEM):
        text = msg("{source} is a part of the machine's own system, which is not shared.", source=source)
        raise DefinitionError(path, text)
    _check_placeholders(parts, path)


def _check_volume(volume: str, path: str) -> None:
    _check_placeholders([volume], path)
    literal = _PLACEHOLDER.sub("x", volume)
    if not _VOLUME.fullmatch(literal) or volume.startswith(_OWN_VOLUMES):
        text = msg(
            "A volume's name has letters, digits and . _ -, and does not begin with pai-, as those of the "
            "scheduler do."
        )
        raise DefinitionError(path, text)


def _check_target(target: str, path: str) -> None:
    if not target.startswith("/") or not target.strip("/"):
        text = msg("Say at which place tasks find it: a path from / on, as /data/sets.")
        raise DefinitionError(path, text)
    _check_placeholders(_parts(target), path)
    # (somebody may be called etc)
    literal = "/etc" if _PLACEHOLDER.search(_parts(target)[1]) else _PLACEHOLDER.sub("x", target)
    if (wrong := wrong_target(target, _parts(literal)[1:])) is not None:
        raise DefinitionError(path, wrong)


def _check_placeholders(parts: Sequence[str], path: str) -> None:
    """Refuse words that are not known, and two in one part, which could mean the same for different names."""
    for part in parts:
        found = _PLACEHOLDER.findall(part)
        rest = _PLACEHOLDER.sub("", part)
        if len(found) > 1 or not set(found) <= {_USER, _GROUP} or "{" in rest or "}" in rest:
            text = msg(
                "In {part} there may be {user} or {group}, one of them and once; no other word in braces.",
                part=part,
                user=_USER,
                group=_GROUP,
            )
            raise DefinitionError(path, text)


def _groups(document: object, path: str) -> tuple[str, ...]:
    groups = read_list(document, path)
    for number, group in enumerate(groups):
        if not isinstance(group, str) or not group:
            raise DefinitionError(f"{path}[{number}]", msg("This must be the name of a group."))
    return tuple(groups)


def _writers(document: object, path: str) -> tuple[str, ...] | None:
    if isinstance(document, bool):
        return None if document else ()
    if not isinstance(document, list):
        raise DefinitionError(path, msg("This must be true, false or a list of the groups that may write."))
    return _groups(document, path)


def _text(fields: Mapping[str, Any], key: str, path: str) -> str:
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise DefinitionError(f"{path}.{key}", msg("This must be a text."))
    return value


def _filled(template: str, named: Mapping[str, str], escape: Callable[[str], str]) -> str:
    # in one go: a user may be called {group}
    return _PLACEHOLDER.sub(lambda found: escape(named[found[0]]), template)


def _parts(path: str) -> tuple[str, ...]:
    return ("/", *(part for part in path.split("/") if part))


def _depth(path: str) -> int:
    return len(_parts(path))


def _may_meet(one: str, other: str) -> bool:
    """Return whether two places, with names in them, may be the same or one within the other."""
    return all(
        first == second or _may_be_called(first, second) or _may_be_called(second, first)
        for first, second in zip(_parts(one), _parts(other), strict=False)
    )


def _may_be_called(template: str, part: str) -> bool:
    """Return whether a part of a path with a name in it may be another one, whatever stands for names."""
    found = _PLACEHOLDER.search(template)
    if found is None:
        return False
    begin, end = template[: found.start()], template[found.end() :]
    other = _PLACEHOLDER.search(part)
    if other is None:
        return part.startswith(begin) and part.endswith(end) and len(part) > len(begin) + len(end)
    head, tail = part[: other.start()], part[other.end() :]
    return (begin.startswith(head) or head.startswith(begin)) and (end.endswith(tail) or tail.endswith(end))
