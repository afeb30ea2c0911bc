"""Images without a registry: a Debian made here, under the names that tests and the documents' jobs use."""

from __future__ import annotations

import importlib.metadata
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import IO

from docker.errors import APIError, ContainerError, DockerException, ImageNotFound

from tests.testbed.docker import client
from tests.testbed.machine import CACHE, CannotError, apt_install, as_root, locked, say

#: A few programs.
TINY = "local/tiny"
#: A small Debian with Python.
DEBIAN = "local/debian:bookworm"
#: What the documents' couplet job runs in.
COUPLET = "vzich/poet:tensorflow"
#: What training on several machines needs: Open MPI, and PyTorch as Debian builds it, for CPUs.
TRAINING = "local/training:bookworm"
_JOBS = Path(__file__).parents[1] / "fixtures" / "jobs"


def debian_image(host: str) -> str:
    """Make `DEBIAN` where it is missing, and tag it as every image that the documents' jobs ask for."""
    with locked("images"):
        if not _is_debian(host, DEBIAN):
            _make_debian(host)
        for name in documented_images():
            # one that is there may have more in it than this
            if not _has(host, name):
                _tag(host, DEBIAN, name)
    return DEBIAN


def couplet_image(host: str) -> str:
    """Make the image of the documents' couplet job, of `DEBIAN` and this Python's `hdfs` library."""
    debian_image(host)
    with locked("images"):
        dockerfile = f"FROM {DEBIAN}\nADD libraries.tar /usr/lib/python3/dist-packages/\n".encode()
        build_image(host, COUPLET, {"Dockerfile": dockerfile, "libraries.tar": _libraries_of("hdfs")})
    return COUPLET


def training_image(host: str) -> str:
    """Make the image of jobs that train in several tasks: `DEBIAN` with Open MPI and PyTorch, without SSH."""
    debian_image(host)
    with locked("images"):
        packages = "openmpi-bin python3-torch"
        dockerfile = (
            f"FROM {DEBIAN}\n"
            "RUN apt-get -q update && DEBIAN_FRONTEND=noninteractive"
            f" apt-get -q -y install --no-install-recommends {packages} && rm -rf /var/lib/apt/lists/*"
            # (which Debian's Open MPI insists on)
            " && rm /usr/bin/ssh /usr/bin/scp /usr/bin/sftp\n"
        )
        say(f"making the image {TRAINING}, unless it is there (about a minute)")
        build_image(host, TRAINING, {"Dockerfile": dockerfile.encode()})
    return TRAINING


def build_image(host: str, name: str, files: dict[str, bytes]) -> None:
    """Build an image from a Dockerfile and other files; what Docker has built before costs little."""
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        for file, contents in files.items():
            entry = tarfile.TarInfo(file)
            entry.size = len(contents)
            tar.addfile(entry, io.BytesIO(contents))
    context.seek(0)
    try:
        with client(host) as docker:
            docker.images.build(fileobj=context, custom_context=True, tag=name, rm=True)
    except DockerException as error:
        raise CannotError(f"Docker did not build the image {name}: {error}") from error


def _libraries_of(*names: str) -> bytes:
    """Pack libraries of this Python, and all that they need, but for what is compiled."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found[name] = importlib.metadata.distribution(name)
        needs = [need for need in found[name].requires or () if "extra ==" not in need]
        waiting += [match[0] for need in needs if (match := re.match(r"[\w.-]+", need))]
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in (path for found_one in found.values() for path in found_one.files or ()):
            inside = ".." not in path.parts and path.suffix not in (".so", ".pyc")
            if inside and Path(str(path.locate())).is_file():
                tar.add(path.locate(), str(path), filter=_of_root)
    return packed.getvalue()


def _of_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    # the same files are the same image, whenever they were installed
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = "root"
    return entry


def _tag(host: str, image: str, name: str) -> None:
    repository, _, tag = name.partition(":")
    with client(host) as docker:
        docker.images.get(image).tag(repository, tag or "latest")


def _has(host: str, name: str) -> bool:
    try:
        with client(host) as docker:
            docker.images.get(name)
    except ImageNotFound:
        return False
    return True


def _is_debian(host: str, name: str) -> bool:
    """Return whether an image can what `DEBIAN` must; another one may have come by that name."""
    try:
        with client(host) as docker:
            docker.containers.run(
                name, ["bash", "-c", "grep -q bookworm /etc/os-release && python3 -c 'import ssl'"],
                entrypoint="", network_mode="none", remove=True,
            )  # fmt: skip
    except (ImageNotFound, ContainerError, APIError):
        return False
    return True


def _import(host: str, archive: IO[bytes], name: str, change: str) -> None:
    """Make an image of a packed file system; `change`: a line of a Dockerfile."""
    repository, _, tag = name.partition(":")
    with client(host) as docker:
        said = docker.api.import_image(archive, repository, tag or "latest", changes=change)
    if "error" in json.loads(said.splitlines()[-1]):
        raise CannotError(f"Docker did not take the image {name}: {said}")


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
    _import(host, archive, TINY, "ENV PATH=/usr/bin:/bin")
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
            assert pack.stdout is not None
            _import(host, pack.stdout, DEBIAN, 'CMD ["bash"]')
            if pack.wait() != 0:
                raise CannotError(f"the files of {DEBIAN} could not be packed ({pack.returncode})")
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
