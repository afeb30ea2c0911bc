"""A registry of images on this machine, so that pulling can be tried for real; it ends with the tests."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path

from pai_scheduler.testing.ports import free_port
from tests.testbed.machine import CannotError, apt_install

_START_SECONDS = 30
_CONFIG = """\
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}/images}}}}
http: {{addr: {address}:{port}}}
"""
_LOCKED = """\
auth: {{htpasswd: {{realm: test, path: {folder}/htpasswd}}}}
"""


@contextlib.contextmanager
def registry(
    folder: Path, passwords: Mapping[str, str] | None = None, address: str = "127.0.0.1"
) -> Iterator[str]:
    """Run a registry that keeps its images in `folder`; return its address, which begins images' names.

    `passwords` by user: with them nothing can be had without logging in. `address`: of this machine.
    """
    apt_install({"docker-registry": "docker-registry"})
    port = free_port()
    config = folder / "registry.yml"
    config.write_text(
        (_CONFIG + (_LOCKED if passwords else "")).format(folder=folder, address=address, port=port)
    )
    if passwords:
        apt_install({"htpasswd": "apache2-utils"})
        (folder / "htpasswd").write_text("".join(map(_entry, passwords, passwords.values())))
    with open(folder / "registry.log", "wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
    try:
        _wait(process, address, port, folder / "registry.log")
        yield f"{address}:{port}"
    finally:
        process.terminate()
        process.wait()


def _entry(user: str, password: str) -> str:
    """Write a line of a file of passwords, with the only hash that the registry takes."""
    made = subprocess.run(["htpasswd", "-nbB", user, password], check=True, capture_output=True, text=True)
    return made.stdout.strip() + "\n"


def _wait(process: subprocess.Popen[bytes], address: str, port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        connection = HTTPConnection(address, port, timeout=5)
        try:
            connection.request("GET", "/v2/")
            connection.getresponse().read()
            return
        except OSError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                last = log.read_text(errors="replace").strip().splitlines()[-1:]
                raise CannotError(f"docker-registry does not start: {' '.join(last)}") from error
        finally:
            connection.close()
        time.sleep(0.05)
