"""Disks of our own: small ones in memory, and one with a journal for benchmarks."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.testbed.machine import CannotError, as_root

_SIZE = "40m"
#: Bytes of the disk for benchmarks; of the machine's disk it takes what is written.
_JOURNALED_BYTES = 16 * 2**30


def mount_disk(folder: str) -> None:
    """Mount a disk of 40 MB at a folder; CannotError where that is impossible."""
    _run("a disk in memory", "mount", "-t", "tmpfs", "-o", f"size={_SIZE},mode=777", "tmpfs", folder)


@contextmanager
def journaled_disk() -> Iterator[Path]:
    """Mount an ext4 with a journal, in a file behind a loop device; CannotError where that is impossible.

    Without a journal each new file looks at every inode that was freed in the last minutes: what creates and
    deletes many files gets slower from run to run.
    """
    what = "an ext4 with a journal"
    with tempfile.TemporaryDirectory(prefix="pai-disk-") as name:
        image, folder = Path(name, "image"), Path(name, "mounted")
        with image.open("wb") as file:
            file.truncate(_JOURNALED_BYTES)
        folder.mkdir()
        Path(name).chmod(0o755)
        _run(what, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", str(image))
        _run(what, "mount", "-o", "loop", str(image), str(folder))
        try:
            subprocess.run(as_root("chmod", "1777", str(folder)), check=True)
            yield folder
        finally:
            unmount(folder)


def file_system(folder: Path) -> str:
    """Return the type of the file system that a folder is on, and of an ext4 whether it has a journal."""
    found = ["findmnt", "--noheadings", "--output", "FSTYPE", "--target", str(folder)]
    kind = subprocess.run(found, capture_output=True, text=True, check=True).stdout.strip()
    if kind != "ext4":
        return kind
    device = folder.stat().st_dev
    name = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve().name
    # one entry a journal: the device and the journal's inode
    with_journal = any(Path("/proc/fs/jbd2").glob(f"{name}-*"))
    return f"{kind} {'with' if with_journal else 'without'} a journal"


def unmount(folder: Path) -> None:
    """Take it away, whoever still has a file open there."""
    subprocess.run(as_root("umount", "--lazy", str(folder)), check=True)


def _run(what: str, *command: str) -> None:
    try:
        done = subprocess.run(as_root(*command), capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise CannotError(f"{what} cannot be made here: {error}") from None
    if done.returncode != 0:
        raise CannotError(f"{what} cannot be mounted here: {done.stderr.strip()}")
