"""Builds the image of the runtime on this machine's Docker Engine, when something in it has changed.

    python -m pai_scheduler.ssh.runtime.container.build [--base IMAGE] [--anew]

The base image (`PAI_BASE_IMAGE`) may be any Debian or Ubuntu; nothing of it but a few programs and their
libraries comes into the runtime. `--anew` brings the distribution's newest ones.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import sys
import tarfile
from pathlib import Path

from pai_scheduler.engine.docker.image_build import BuildError, Plan, base_image, build_image
from pai_scheduler.engine.docker.runtime import image_of_this_version
from pai_scheduler.engine.protocol import EngineError

RECIPE = Path(__file__).parent / "image"


def build(base: str, docker_host: str | None = None, *, anew: bool = False) -> str:
    """Build the image unless it is there as it would be; return its name. BuildError, EngineError."""
    name, _, version = image_of_this_version().rpartition(":")
    return build_image(Plan(name, version, base, fingerprint, context), docker_host, anew=anew)


def fingerprint(base_id: str) -> str:
    """Sum up everything that decides what is in the image."""
    digest = hashlib.sha256(base_id.encode())
    for path in _sources():
        digest.update(f"\0{path.relative_to(RECIPE)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def context() -> bytes:
    """Pack the recipe, as Docker takes it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path in _sources():
            tar.add(path, str(path.relative_to(RECIPE)))
    return archive.getvalue()


def _sources() -> list[Path]:
    return sorted(path for path in RECIPE.rglob("*") if path.is_file())


def main() -> None:
    """Build the image and print its name."""
    parser = argparse.ArgumentParser(
        prog="python -m pai_scheduler.ssh.runtime.container.build",
        description="Build the image of the runtime with which tasks in containers are logged into.",
    )
    parser.add_argument("--base", default=base_image(), help="base image (%(default)s)")
    parser.add_argument(
        "--anew", action="store_true", help="build it again, with the distribution's newest packages"
    )
    options = parser.parse_args()
    try:
        print(build(options.base, anew=options.anew))
    except (BuildError, EngineError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
