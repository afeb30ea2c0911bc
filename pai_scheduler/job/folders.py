"""What the folders and volumes of users and groups are called."""

from __future__ import annotations

import hashlib
import re

#: For all to read; members of groups; results of jobs; what the service puts there for a user.
PUBLIC, SHARED, OUTPUT, CONTAINER = "Public", "Shared", "Output", "Container"
_RESERVED = (PUBLIC, SHARED, OUTPUT, CONTAINER)
#: Characters of a name that a volume's name shows, for people who look at a list of them.
_SHOWN = 40
#: Hexadecimal digits that tell names apart: too many for somebody to choose a name that has another's.
_DIGITS = 20
#: Bytes of a file's name, which file systems limit to 255.
_LONGEST_NAME = 200


def folder_name(name: str) -> str:
    """Name the folder of a user or group: the name, where a folder may be called so and none of ours is."""
    safe = name.replace("%", "%25").replace("/", "%2F")
    if safe.startswith(".") or safe in _RESERVED:
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    return safe


def uri_name(user: str) -> str:
    """Return what a user's folders are called in a URI: nearly always the user's name."""
    return folder_name(user).replace("%", "%25")


def host_folder_name(name: str) -> str:
    """Name the folder of a user or group on a machine: as in the storage, where a file may be called so.

    No two names have the same one, and none leads anywhere else. It has no colon, so that a list of paths may
    have one between them.
    """
    safe = re.sub(r"[\x00-\x1f\x7f:]", lambda found: f"%{ord(found[0]):02X}", folder_name(name))
    encoded = safe.encode("utf-8", "surrogatepass")
    if len(encoded) <= _LONGEST_NAME and not _has_surrogates(safe):
        return safe
    digest = hashlib.sha256(encoded).hexdigest()
    shown = encoded[: _LONGEST_NAME - len(digest) - 2].decode("utf-8", "ignore")
    # (a name that is written in full has no such sign, but for that of an escape)
    return f"{shown}%-{digest}"


def volume_part(name: str) -> str:
    """Return what stands for a user or group in the name of a volume; no two names have the same."""
    shown = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:_SHOWN]
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
    return f"{shown}-{digest}"


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)
