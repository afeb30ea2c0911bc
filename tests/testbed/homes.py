"""The homes of a scheduler's users in Docker: found as an administrator finds them, removed after a test."""

from __future__ import annotations

import time
from http import HTTPStatus
from pathlib import Path

from docker.errors import APIError
from docker.models.volumes import Volume

from tests.testbed.docker import client

#: How long a container that has ended may still be there.
_PATIENCE_SECONDS = 30


def homes(host: str, data_dir: Path) -> dict[str, list[str]]:
    """List the volumes of each user."""
    mark = data_dir / "docker-instance"
    if not mark.exists():
        return {}
    named: dict[str, list[str]] = {}
    with client(host, _PATIENCE_SECONDS) as docker:
        labels = [f"pai.instance={mark.read_text()}", "pai.user"]
        for volume in docker.volumes.list(filters={"label": labels}):
            named.setdefault(volume.attrs["Labels"]["pai.user"], []).append(str(volume.name))
    return named


def remove_homes(host: str, data_dir: Path) -> None:
    """Remove them all, as soon as no container has them any more."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    with client(host, _PATIENCE_SECONDS) as docker:
        for names in homes(host, data_dir).values():
            for name in names:
                _remove(docker.volumes.get(name), deadline)


def _remove(volume: Volume, deadline: float) -> None:
    while True:
        try:
            return volume.remove()
        except APIError as error:
            if error.status_code != HTTPStatus.CONFLICT or time.monotonic() > deadline:
                raise
        time.sleep(0.1)
