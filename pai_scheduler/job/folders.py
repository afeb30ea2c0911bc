"""What the folders of users and groups in the storage are called."""

from __future__ import annotations

#: For all to read; members of groups; results of jobs; what the service puts there for a user.
PUBLIC, SHARED, OUTPUT, CONTAINER = "Public", "Shared", "Output", "Container"
_RESERVED = (PUBLIC, SHARED, OUTPUT, CONTAINER)


def folder_name(name: str) -> str:
    """Name the folder of a user or group: the name, where a folder may be called so and none of ours is."""
    safe = name.replace("%", "%25").replace("/", "%2F")
    if safe.startswith(".") or safe in _RESERVED:
        safe = f"%{ord(safe[0]):02X}{safe[1:]}"
    return safe


def uri_name(user: str) -> str:
    """Return what a user's folders are called in a URI: nearly always the user's name."""
    return folder_name(user).replace("%", "%25")
