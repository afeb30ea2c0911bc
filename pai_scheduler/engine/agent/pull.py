"""Pulls an image on this node (`python -m pai_scheduler.engine.agent.pull`), and says how far."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import docker
import msgspec
from docker.utils import parse_repository_tag

from pai_scheduler.engine.docker.images import Layers
from pai_scheduler.engine.docker.sync_client import ERRORS

#: What it is told: the image, and the file with the login to its registry, if any.
IMAGE, LOGIN_FILE = "PAI_PULL_IMAGE", "PAI_PULL_LOGIN"
_SAY_SECONDS = 1.0


class PullProgress(msgspec.Struct, frozen=True):
    """Progress of an image pull: bytes pulled of those known. Its end has the image's id, or the error."""

    done: int = 0
    total: int = 0
    image: str = ""
    error: str = ""


def pull(client: docker.DockerClient, image: str, login: Mapping[str, Any] | None) -> PullProgress:
    """Pull an image, and print how far it is; return the end."""
    layers = Layers()
    said = 0.0
    try:
        for step in _steps(client, image, login):
            if "error" in step:
                return PullProgress(error=str(step["error"]))
            layers.take(step)
            if layers.size and time.monotonic() > said + _SAY_SECONDS:
                said = time.monotonic()
                _say(PullProgress(layers.downloaded, layers.size))
        return PullProgress(image=str(client.images.get(image).id))
    except ERRORS as error:
        return PullProgress(error=str(getattr(error, "explanation", None) or error))


def main() -> int:
    """Pull, and say how it ended, by the exit code too: Docker does not always give what was printed."""
    file = os.environ.get(LOGIN_FILE)
    login = msgspec.json.decode(Path(file).read_bytes(), type=dict[str, Any]) if file else None
    end = pull(docker.DockerClient(base_url="unix:///var/run/docker.sock"), os.environ[IMAGE], login)
    _say(end)
    return int(not end.image)


def _steps(
    client: docker.DockerClient, image: str, login: Mapping[str, Any] | None
) -> Iterable[Mapping[str, Any]]:
    repository, tag = parse_repository_tag(image)
    steps: Iterable[Mapping[str, Any]] = client.api.pull(
        repository, tag=tag or "latest", stream=True, decode=True, auth_config=dict(login) if login else None
    )
    return steps


def _say(progress: PullProgress) -> None:
    print(msgspec.json.encode(progress).decode(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
