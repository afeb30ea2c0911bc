"""Images without a registry: a Debian made here, under the names that tests and the documents' jobs use."""

from __future__ import annotations

import http.client
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode

from tests.testbed.docker import connect
from tests.testbed.machine import CACHE, CannotError, apt_install, as_root, locked, say

#: A few programs.
TINY = "local/tiny"
#: A small Debian with Python.
DEBIAN = "local/debian:bookworm"
_JOBS = Path(__file__).parents[1] / "fixtures" / "jobs"


def debian_image(host: str) -> str:
    """Make `DEBIAN` where it is missing, and tag it as every image that the documents' jobs ask for."""
    with locked("images"):
        if _ask(host, "GET", f"/images/{DEBIAN}/json")[0] != http.client.OK:
            _make_debian(host)
        for name in documented_images():
            repository, _, tag = name.partition(":")
            query = urlencode({"repo": repository, "tag": tag or "latest"})
            _ask(host, "POST", f"/images/{DEBIAN}/tag?{query}")
    return DEBIAN


def tiny_image(host: str) -> str:
    """Make an image of a few programs of this machine, for a daemon that lives for one test only."""
    programs = [Path(found).resolve() for name in ("dash", "sleep") if (found := shutil.which(name))]
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in {*programs, *(library for program in programs for library in _libraries(program))}:
            tar.add(path.resolve(), str(path).removeprefix("/"))
        for name, program in zip(("sh", "sleep"), programs, strict=True):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, str(program)
            if str(program) != f"/bin/{name}":
                tar.addfile(link)
    archive.seek(0)
    query = urlencode({"fromSrc": "-", "repo": TINY, "tag": "latest", "changes": "ENV PATH=/usr/bin:/bin"})
    status, answer = _ask(host, "POST", f"/images/create?{query}", archive)
    if status != http.client.OK or "error" in answer:
        raise CannotError(f"Docker did not take the image {TINY}: {answer}")
    return TINY


def _libraries(program: Path) -> list[Path]:
    """List the shared libraries of a program, under the names by which the loader looks for them."""
    listed = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=True).stdout
    return [Path(found) for found in re.findall(r"(/\S+) \(0x", listed)]


def documented_images() -> list[str]:
    """List the images of the documents' job files."""
    pattern = re.compile(r'^\s*"image"\s*:\s*"([^"]+)"', re.MULTILINE)
    return sorted(
        {found for path in _JOBS.glob("*.json*") for found in pattern.findall(path.read_text("utf-8"))}
    )


def _make_debian(host: str) -> None:
    apt_install({"debootstrap": "debootstrap"})
    mirror = _mirror()
    say(f"making the image {DEBIAN} with debootstrap (about a minute)")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        root = Path(folder) / "root"
        try:
            subprocess.run(
                as_root(
                    "debootstrap", "--variant=minbase", "--include=python3", "bookworm", str(root), mirror
                ),
                stdout=sys.stderr,
                check=True,
            )
            pack = subprocess.Popen(
                as_root(
                    "tar", "-C", str(root), "--numeric-owner", "--exclude=./var/cache/apt/*",
                    "--exclude=./var/lib/apt/lists/*", "--exclude=./dev/*", "-c", ".",
                ),
                stdout=subprocess.PIPE,
            )  # fmt: skip
            repository, _, tag = DEBIAN.partition(":")
            query = urlencode({"fromSrc": "-", "repo": repository, "tag": tag, "changes": 'CMD ["bash"]'})
            status, answer = _ask(host, "POST", f"/images/create?{query}", pack.stdout)
            if pack.wait() != 0 or status != http.client.OK or "error" in answer:
                raise CannotError(f"Docker did not take the image {DEBIAN}: {answer}")
        except subprocess.CalledProcessError as error:
            raise CannotError(f"debootstrap failed ({error.returncode})") from error
        finally:
            subprocess.run(as_root("rm", "-rf", str(root)), check=False)


def _mirror() -> str:
    """Ask apt from where this machine takes its Debian packages."""
    if not shutil.which("apt-get"):
        raise CannotError(f"the image {DEBIAN} is made from Debian packages, and this is no Debian machine")
    ask = ["apt-get", "indextargets", "--format", "$(LABEL) $(SITE)", "Created-By: Packages"]
    for refresh in (False, True):
        if refresh:
            subprocess.run(as_root("apt-get", "-q", "update"), stdout=sys.stderr, check=False)
        lines = subprocess.run(ask, capture_output=True, text=True, check=True).stdout.splitlines()
        for line in lines:
            label, _, site = line.partition(" ")
            if label == "Debian":
                return site
    raise CannotError("apt on this machine knows no Debian mirror")


def _ask(host: str, method: str, path: str, body: IO[bytes] | None = None) -> tuple[int, Any]:
    connection = connect(host, timeout=600)
    try:
        connection.request(method, path, body=body, encode_chunked=body is not None, headers=_chunked(body))
        response = connection.getresponse()
        text = response.read().decode(errors="replace").strip()
    finally:
        connection.close()
    try:
        return response.status, json.loads(text.splitlines()[-1]) if text else {}
    except ValueError:
        return response.status, text


def _chunked(body: IO[bytes] | None) -> dict[str, str]:
    return {} if body is None else {"Transfer-Encoding": "chunked", "Content-Type": "application/x-tar"}
