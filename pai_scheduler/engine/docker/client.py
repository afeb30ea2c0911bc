"""Docker's own library, for programs that do one thing after the other: builds, a look before a start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
from docker.errors import DockerException

from .connection import DEFAULT_HOST, check_socket, check_version, silent_daemon

#: Seconds within which the daemon answers, but for what streams.
_SECONDS = 60
#: What a call raises where the daemon refuses, and where it does not answer.
ERRORS = (DockerException, requests.RequestException)


@contextmanager
def docker_client(host: str | None = None) -> Iterator[docker.DockerClient]:
    """Open a client of one daemon. `host`: `unix://…` or `tcp://…`; default: DOCKER_HOST, the usual socket.

    EngineError with what is wrong and what to do about it.
    """
    host = host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST
    if host.startswith("unix://"):
        check_socket(Path(host.removeprefix("unix://")))
    try:
        client = docker.DockerClient(base_url=host, timeout=_SECONDS)
    except ERRORS as error:
        raise silent_daemon(host, error) from error
    try:
        check_version(host, str(client.version()["ApiVersion"]))
        yield client
    finally:
        client.close()


def check_docker(host: str | None = None) -> None:
    """Raise EngineError, with what to do, unless a daemon answers that is new enough."""
    with docker_client(host):
        pass
