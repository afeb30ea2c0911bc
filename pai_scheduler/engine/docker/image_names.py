"""Names of images as Docker reads them, who may pull them, and which of this machine's came with a login.

Facts: the reference grammar of github.com/distribution/reference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from pai_scheduler.engine.protocol import RegistryLogin

DOCKER_HUB = "docker.io"
_ALSO_DOCKER_HUB = ("index.docker.io", "registry-1.docker.io", "registry.hub.docker.com", "hub.docker.com")


def registry_name(written: str) -> str:
    """Return a registry's name as images have it: no scheme, no path, Docker Hub always by the same name."""
    host = re.sub(r"^[a-z]+://", "", written.strip().lower()).partition("/")[0]
    return DOCKER_HUB if host in _ALSO_DOCKER_HUB else host


def names_registry(image: str) -> bool:
    """Return whether an image's name begins with a registry's; a name with capitals is no repository's."""
    first, slash, _ = image.partition("/")
    return bool(slash) and ("." in first or ":" in first or first == "localhost" or first != first.lower())


def qualified(image: str) -> str:
    """Write an image's name out, with its registry: `ubuntu:22.04` is `docker.io/library/ubuntu:22.04`."""
    first, slash, rest = image.partition("/")
    if names_registry(image):
        return f"{registry_name(first)}/{rest}"
    return f"{DOCKER_HUB}/{image}" if slash else f"{DOCKER_HUB}/library/{image}"


def registry_of(image: str) -> str:
    """Return the registry that an image comes from."""
    return qualified(image).partition("/")[0]


def repository_of(image: str) -> str:
    """Return an image's name, with its registry, without tag and digest."""
    registry, _, rest = qualified(image).partition("/")
    return f"{registry}/{rest.partition('@')[0].partition(':')[0]}"


def repositories(found: dict[str, Any]) -> set[str]:
    """Return all names (without tags) of an image that Docker describes."""
    names = [*(found.get("RepoTags") or ()), *(found.get("RepoDigests") or ())]
    return {repository_of(name) for name in names if not name.startswith("<none>")}


def login_for(image: str, login: RegistryLogin | None) -> RegistryLogin | None:
    """Return the login where it is for the registry of this image: nobody else is told a password."""
    if login is None or registry_name(login.registry) != registry_of(image):
        return None
    return login


class PrivateImages:
    """Remembers, in a file, which repositories and images of this machine were pulled with a login."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known: set[str] | None = None

    def add(self, repository_or_id: str) -> None:
        """Remember one, durably."""
        known = self._load()
        if repository_or_id in known:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        with open(self._file, "a", encoding="utf-8") as file:
            file.write(f"{repository_or_id}\n")
            file.flush()
            os.fsync(file.fileno())
        known.add(repository_or_id)

    def __contains__(self, repository_or_id: object) -> bool:
        return repository_or_id in self._load()

    def _load(self) -> set[str]:
        if self._known is None:
            try:
                self._known = set(self._file.read_text(encoding="utf-8").splitlines())
            except FileNotFoundError:
                self._known = set()
        return self._known
