"""Builds of the project's own images on a Docker Engine, when something in them has changed."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tarfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from docker import DockerClient
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.images import Image

from .sync_client import ERRORS, docker_client

DEFAULT_BASE = "debian:bookworm-slim"
#: What went into an image, so that the same is not built again.
LABEL = "pai.inputs"
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


class BuildError(Exception):
    """The image cannot be built; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Plan:
    """An image to build. `name`: without its tag, which is `version`; `base`: the image to begin from.

    `inputs` sums up, with the base image's id, everything that decides what is in the image; `context` gives
    what Docker builds from, a tar archive with a Dockerfile.
    """

    name: str
    version: str
    base: str
    inputs: Callable[[str], str]
    context: Callable[[], bytes]


def build_image(plan: Plan, docker_host: str | None = None, *, anew: bool = False) -> str:
    """Build an image unless it is there as it would be; return its name. BuildError, EngineError.

    `anew`: build it whatever is there, with the distribution's packages as they are now.
    """
    with docker_client(docker_host) as client:
        try:
            inputs = plan.inputs(_base_id(client, plan.base))
            name = f"{plan.name}:{plan.version}"
            before = _find(client, name)
            if anew or before is None or before.labels.get(LABEL) != inputs:
                print(f"building the image {name} from {plan.base} (minutes the first time)", file=sys.stderr)
                _build(client, plan, name, inputs, anew)
            client.images.get(name).tag(plan.name, tag="latest")
            if before is not None:
                _tidy(client, str(before.id))
            return name
        except ERRORS as error:
            raise BuildError(f"Docker could not build the image: {error}") from error


def add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    """Put a file into a context."""
    data = text.encode()
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def base_image() -> str:
    """Return the base image that the administrator has named (`PAI_BASE_IMAGE`), or the usual one."""
    return os.environ.get("PAI_BASE_IMAGE") or DEFAULT_BASE


def _base_id(client: DockerClient, base: str) -> str:
    """Return the id of the base image, which is pulled where it is missing."""
    if (found := _find(client, base)) is not None:
        return str(found.id)
    print(f"pulling the base image {base}", file=sys.stderr)
    try:
        _follow(client.api.pull(base, stream=True, decode=True))
        return str(client.images.get(base).id)
    except ERRORS as error:
        reason = getattr(error, "explanation", None) or str(error)
        raise BuildError(
            f"The base image {base} could not be pulled: {reason}. "
            "Name one that this machine has or can pull, with PAI_BASE_IMAGE or --base."
        ) from error


def _find(client: DockerClient, name: str) -> Image | None:
    try:
        return client.images.get(name)
    except ImageNotFound:
        return None


def _tidy(client: DockerClient, image_id: str) -> None:
    """Remove the image that a new one has replaced, unless it still has a name or a container."""
    found = _find(client, image_id)
    if found is not None and not found.tags:
        with contextlib.suppress(APIError):
            client.images.remove(image_id)


def _build(client: DockerClient, plan: Plan, name: str, inputs: str, anew: bool) -> None:
    steps = client.api.build(
        fileobj=io.BytesIO(plan.context()),
        custom_context=True,
        tag=name,
        nocache=anew,
        rm=True,
        forcerm=True,
        buildargs={"BASE": plan.base} | {key: os.environ[key] for key in _PROXIES if key in os.environ},
        labels={LABEL: inputs},
        decode=True,
    )
    _follow(steps)


def _follow(steps: Iterable[Mapping[str, Any]]) -> None:
    """Show what Docker says while it works; DockerException where it gives up."""
    for step in steps:
        if "error" in step:
            raise DockerException(step["error"])
        if text := step.get("stream"):
            print(text, end="", file=sys.stderr, flush=True)
