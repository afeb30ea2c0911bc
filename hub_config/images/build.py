"""Builds the image of notebook servers, or that of a Swarm's agents, when something in it has changed.

    python -m hub_config.images.build [--image notebook|agent] [--base IMAGE] [--package NAME]…

The base image (`PAI_BASE_IMAGE`) may be any Debian or Ubuntu with Python 3.11 or newer. pip's settings of
this machine (index, proxy, certificates) are used for the build and left out of the image.
"""

from __future__ import annotations

import argparse
import configparser
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pai_scheduler.engine.docker.image_build import (
    DEFAULT_BASE,
    BuildError,
    Plan,
    add_text,
    base_image,
    build_image,
)
from pai_scheduler.engine.protocol import EngineError

REPOSITORY = Path(__file__).parents[2]
#: each has a folder of its own here
IMAGES = ("notebook", "agent")
#: What pip can do in the container with this machine's settings; paths of this machine are of no use there.
_PIP_OPTIONS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
_PACKAGES = ("pai_scheduler", "pai_spawner", "pai_labextension", "jupyter-config")
#: the packages that the agent imports
_AGENT = (
    "aiodocker",
    "aiohttp",
    "babel",
    "cryptography",
    "docker",
    "inotify-simple",
    "msgspec",
    "nvidia-ml-py",
    "tornado",
)
_NOT_SHIPPED = ("__pycache__", "ui")
TUTORIALS = REPOSITORY / "notebooks"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an image is made of. `image`: one of `IMAGES`; `packages`: more for pip to install."""

    base: str = DEFAULT_BASE
    packages: tuple[str, ...] = ()
    image: str = "notebook"

    @property
    def folder(self) -> Path:
        """Return where the Dockerfile is."""
        return Path(__file__).parent / self.image

    @property
    def requirements(self) -> list[str]:
        """List what pip installs beside the project itself: in notebooks no library of the scheduler.

        JupyterHub is among it for `jupyterhub-singleuser`, which a Hub starts.
        """
        project = _project()
        extras = project["optional-dependencies"]
        if self.image == "agent":
            known = {_name(line): line for line in (*project["dependencies"], *extras["scheduler"])}
            return [*(known[name] for name in _AGENT), *self.packages]
        hub = [line for line in extras["hub"] if line.startswith("jupyterhub")]
        return [*project["dependencies"], *hub, *extras["services"], *extras["tutorials"], *self.packages]

    def fingerprint(self, base_id: str) -> str:
        """Sum up everything that decides what is in the image."""
        digest = hashlib.sha256(repr((base_id, self.requirements)).encode())
        for path in sorted(_sources(self)):
            digest.update(f"\0{path.relative_to(REPOSITORY)}\0".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()


def build(recipe: Recipe, docker_host: str | None = None) -> str:
    """Build the image unless it is there as it would be; return its name. BuildError, EngineError."""
    name = f"pai/{recipe.image}"
    plan = Plan(name, version(), recipe.base, recipe.fingerprint, lambda: _context(recipe))
    return build_image(plan, docker_host)


def version() -> str:
    """Return the project's version, which is the tag of its images."""
    return str(_project()["version"])


def _make_wheel(folder: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--wheel-dir",
        str(folder),
        str(REPOSITORY),
    ]
    if subprocess.run(command, check=False).returncode != 0:  # noqa: S603
        raise BuildError("The project's own package could not be built; pip's messages stand above.")


def _context(recipe: Recipe) -> bytes:
    """Pack what the recipe needs, as Docker takes it."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar, tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder) / "wheels"
        _make_wheel(wheels)
        tar.add(recipe.folder / "Dockerfile", "Dockerfile")
        tar.add(wheels, "wheels")
        for notebook in _tutorials() if recipe.image == "notebook" else ():
            tar.add(notebook, f"tutorials/{notebook.name}")
        add_text(tar, "requirements.txt", "\n".join(recipe.requirements) + "\n")
        for name, text in pip_settings(_pip_config(), os.environ).items():
            add_text(tar, f"settings/{name}", text)
    return archive.getvalue()


def pip_settings(config: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Turn pip's settings of this machine (lines of `pip config list`) into files for the container.

    Indexes and certificates that are files are brought along where that is possible, and left out where not.
    """
    settings: dict[str, str] = {}
    for line in config:
        key, _, quoted = line.partition("=")
        settings[key.rpartition(".")[2]] = quoted.strip().strip("'\"")
    parser = configparser.RawConfigParser()
    parser["global"] = {}
    files: dict[str, str] = {}
    for option in _PIP_OPTIONS:
        if option in settings:
            urls = [part for part in settings[option].split() if not part.startswith("file:")]
            if urls:
                parser["global"][option] = " ".join(urls)
    bundle = Path(settings.get("cert") or environment.get("SSL_CERT_FILE") or "/nonexistent")
    if bundle.is_file():
        files["certificates.pem"] = bundle.read_text()
        parser["global"]["cert"] = "/build/settings/certificates.pem"
    text = io.StringIO()
    parser.write(text)
    return files | {"pip.conf": text.getvalue()}


def _pip_config() -> list[str]:
    command = [sys.executable, "-m", "pip", "config", "list"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()  # noqa: S603


def _project() -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    return project


def _tutorials() -> list[Path]:
    return sorted(TUTORIALS.glob("*.ipynb"))


def _name(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def _sources(recipe: Recipe) -> list[Path]:
    """List the files of the project that come into the image."""
    found = [recipe.folder / "Dockerfile", REPOSITORY / "pyproject.toml"]
    found += _tutorials() if recipe.image == "notebook" else []
    for package in _PACKAGES:
        for folder, folders, files in os.walk(REPOSITORY / package):
            folders[:] = [name for name in folders if name not in _NOT_SHIPPED]
            found += [Path(folder, name) for name in files]
    return found


def main() -> None:
    """Build the image and print its name."""
    parser = argparse.ArgumentParser(description="Build an image on this machine.")
    parser.add_argument("--image", choices=IMAGES, default="notebook", help="which one (%(default)s)")
    parser.add_argument("--base", default=base_image(), help="base image (%(default)s)")
    parser.add_argument(
        "--package", action="append", default=[], metavar="NAME", help="install this too; may be repeated"
    )
    options = parser.parse_args()
    try:
        print(build(Recipe(options.base, tuple(options.package), options.image)))
    except (BuildError, EngineError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
