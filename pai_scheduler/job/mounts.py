"""Where `extras.mounts` and `extras.home` may be: nowhere over the system, nor over each other."""

from __future__ import annotations

from collections.abc import Iterator

from pai_scheduler.i18n import Message, msg

from .paths import Path, quoted

#: Folders of the system, and ours, in a container: nothing is mounted over them, nor within them.
_SYSTEM = frozenset(
    (
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run", "sbin"),
        *("sys", "usr", "pai", "pai-code", "pai-job"),
    )
)
#: What every container has for logging in.
_RUNTIME = ("opt", "pai")
#: Within these something may be mounted, but not over them.
_SHARED = frozenset(("home", "media", "mnt", "opt", "srv", "tmp", "var"))


def mount_errors(extras: object) -> Iterator[tuple[Path, Message]]:
    """Find the places that cannot be; what the schema refuses is left out of account."""
    if not isinstance(extras, dict):
        return
    taken: list[tuple[tuple[str, ...], str]] = []
    home, mounts = extras.get("home"), extras.get("mounts")
    if isinstance(home, str) and home:
        parts = tuple(part for part in home.split("/") if part)
        if (wrong := _wrong_home(home, parts)) is not None:
            yield ("extras", "home"), wrong
        taken.append((("/", *parts), home))
    for index, mount in enumerate(mounts) if isinstance(mounts, list) else ():
        target = mount.get("target") if isinstance(mount, dict) else None
        if not isinstance(target, str) or not target:
            continue
        parts = tuple(part for part in target.split("/") if part)
        wrong = wrong_target(target, parts)
        place = ("/", *parts) if target.startswith("/") else parts
        if wrong is None:
            wrong = next((_within(target, name) for other, name in taken if overlap(place, other)), None)
        if wrong is not None:
            yield ("extras", "mounts", index, "target"), wrong
        taken.append((place, target))


def _wrong_home(home: str, parts: tuple[str, ...]) -> Message | None:
    if not home.startswith("/"):
        return msg(
            "{target} is no place for a home: name a path from / on, as /home/jovyan.", target=quoted(home)
        )
    return wrong_target(home, parts)


def wrong_target(target: str, parts: tuple[str, ...]) -> Message | None:
    """Return why nothing can be mounted at a place; None where something can."""
    if not parts or "." in parts or ".." in parts or "\0" in target:
        return msg(
            "{target} is no place for a mount: name a path without . and .. in it.", target=quoted(target)
        )
    hides = parts[0] in _SYSTEM or parts[:2] == _RUNTIME or (len(parts) == 1 and parts[0] in _SHARED)
    if target.startswith("/") and hides:
        return msg(
            "{target} would hide a part of the system: choose another place, as data or /data.",
            target=quoted(target),
        )
    return None


def overlap(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Return whether two places are the same, or one is within the other."""
    return one[: len(other)] == other or other[: len(one)] == one


def _within(target: str, other: str) -> Message:
    return msg(
        "{target} and {other} are the same place, or one is within the other.",
        target=quoted(target),
        other=quoted(other),
    )
