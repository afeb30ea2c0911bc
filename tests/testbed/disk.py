"""Small disks, in memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.testbed.machine import CannotError, as_root

_SIZE = "40m"


def mount_disk(folder: str) -> None:
    """Mount a disk of 40 MB at a folder; CannotError where that is impossible."""
    command = as_root("mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=777", "tmpfs", folder)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CannotError(f"a disk in memory cannot be mounted here: {done.stderr.strip()}")


def unmount(folder: Path) -> None:
    """Take it away, whoever still has a file open there."""
    subprocess.run(as_root("umount", "--lazy", str(folder)), check=True)
