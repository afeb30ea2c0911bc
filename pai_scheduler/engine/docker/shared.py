"""Folders and volumes of the machine that an administrator shares with a task's user, in its container."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pai_scheduler.cluster.shared_folders import SharedMount


def shared_mount(mount: SharedMount) -> dict[str, Any]:
    """Describe the mount of a shared folder for Docker's API.

    What may only be read is mounted without the file systems that are mounted within it: Docker's read-only
    (before version 25 always, later on old kernels) does not hold for them.
    """
    described: dict[str, Any] = {
        "Type": "volume" if mount.is_volume else "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }
    if mount.read_only and not mount.is_volume:
        described["BindOptions"] = {"NonRecursive": True}
    return described


def make_missing(mounts: Sequence[SharedMount]) -> None:
    """Make the folders that are to be made, open to every image's user; OSError.

    Who else is on the machine is kept out by the folder around them, as with homes.
    """
    for mount in mounts:
        if mount.create:
            folder = Path(mount.source)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            folder.chmod(0o777)


def find_missing(mounts: Sequence[SharedMount], error: str) -> SharedMount | None:
    """Return which of the mounts Docker refuses because its folder is not on the machine."""
    return next(
        (
            mount
            for mount in mounts
            if not mount.is_volume and error.endswith(f"bind source path does not exist: {mount.source}")
        ),
        None,
    )
