"""What this machine lets the tests do: become root, install Debian packages, name what is missing."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

#: Kept between test runs; a fresh one is made where it is missing.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pai-for-jupyter" / "testbed"


class CannotError(Exception):
    """This machine cannot provide a part; the text says which, and why."""


def say(text: str) -> None:
    """Tell the person at the terminal what is about to happen."""
    print(f"testbed: {text}", file=sys.stderr, flush=True)


def as_root(*command: str) -> list[str]:
    """Return the command that runs as root; CannotError where that is impossible."""
    if os.geteuid() == 0:
        return list(command)
    if shutil.which("sudo") and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0:
        return ["sudo", "-n", *command]
    raise CannotError(f"{command[0]} needs root, or sudo without a password")


def apt_install(programs: dict[str, str]) -> None:
    """Install what is missing: a program's name and the Debian package that brings it."""
    search = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
    packages = sorted(
        {package for program, package in programs.items() if not shutil.which(program, path=search)}
    )
    if not packages:
        return
    if not shutil.which("apt-get"):
        raise CannotError(f"{', '.join(packages)}: not installed, and this is no Debian machine")
    say(f"installing Debian packages: {' '.join(packages)}")
    environment = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
    install = as_root(*environment, *apt, "install", "--no-install-recommends", *packages)
    with locked("apt"):
        if subprocess.run(install, stdout=sys.stderr).returncode == 0:
            return
        subprocess.run(as_root(*environment, *apt, "update"), stdout=sys.stderr, check=False)
        if subprocess.run(install, stdout=sys.stderr).returncode != 0:
            raise CannotError(f"apt-get could not install {' '.join(packages)}")


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Keep other test runs on this machine out while a shared part is set up."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
