"""Builds the project's own images on a Docker Engine, when something in them has changed."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import aiodocker

from .docker_api import DockerApi, UnreachableError

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


async def build_image(plan: Plan, docker_host: str | None = None, *, anew: bool = False) -> str:
    """Build an image unless it is there as it would be; give its name. BuildError, EngineError.

    `anew`: build it whatever is there, with the distribution's packages as they are now.
    """
    api = DockerApi(docker_host)
    await api.open()
    try:
        inputs = plan.inputs(await _base_id(api, plan.base))
        name = f"{plan.name}:{plan.version}"
        before = await _inspect(api, name)
        if anew or ((before or {}).get("Config", {}).get("Labels") or {}).get(LABEL) != inputs:
            print(f"building the image {name} from {plan.base} (minutes the first time)", file=sys.stderr)
            await _build(api, plan, name, inputs, anew)
        await api.docker.images.tag(name, plan.name, tag="latest")
        if before:
            await _tidy(api, str(before["Id"]))
        return name
    except (UnreachableError, aiodocker.DockerError) as error:
        raise BuildError(f"Docker could not build the image: {error}") from error
    finally:
        await api.close()


def add_text(tar: tarfile.TarFile, name: str, text: str) -> None:
    """Put a file into a context."""
    data = text.encode()
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    tar.addfile(entry, io.BytesIO(data))


def base_image() -> str:
    """Give the base image that the administrator has named (`PAI_BASE_IMAGE`), or the usual one."""
    return os.environ.get("PAI_BASE_IMAGE") or DEFAULT_BASE


async def _base_id(api: DockerApi, base: str) -> str:
    """Give the id of the base image, which is pulled where it is missing."""
    if found := await _inspect(api, base):
        return str(found["Id"])
    print(f"pulling the base image {base}", file=sys.stderr)
    try:
        await api.docker.images.pull(base)
        return str((await api.docker.images.inspect(base))["Id"])
    except aiodocker.DockerError as error:
        raise BuildError(
            f"The base image {base} could not be pulled: {error.message}. "
            "Name one that this machine has or can pull, with PAI_BASE_IMAGE or --base."
        ) from error


async def _inspect(api: DockerApi, name: str) -> dict[str, Any] | None:
    try:
        return await api.docker.images.inspect(name)
    except aiodocker.DockerError as error:
        if error.status == 404:
            return None
        raise


async def _tidy(api: DockerApi, image_id: str) -> None:
    """Remove the image that a new one has replaced, unless it still has a name or a container."""
    found = await _inspect(api, image_id)
    if found and not found["RepoTags"]:
        with contextlib.suppress(aiodocker.DockerError):
            await api.docker.images.delete(image_id)


async def _build(api: DockerApi, plan: Plan, name: str, inputs: str, anew: bool) -> None:
    steps = api.docker.images.build(
        fileobj=io.BytesIO(plan.context()),
        encoding="identity",
        tag=name,
        nocache=anew,
        buildargs={"BASE": plan.base} | {key: os.environ[key] for key in _PROXIES if key in os.environ},
        labels={LABEL: inputs},
        stream=True,
    )
    async for step in steps:
        if text := step.get("stream"):
            print(text, end="", file=sys.stderr, flush=True)
