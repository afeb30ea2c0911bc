"""Docker's own library, for programs that do one thing after the other."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import requests
from docker.errors import DockerException, NotFound
from docker.models.containers import Container

from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg

from .client import DEFAULT_HOST, check_socket, check_version, silent_daemon

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


def own_container(client: docker.DockerClient) -> Container:
    """Return the container in which this program runs; EngineError where the daemon has none such."""
    name = socket.gethostname()
    try:
        return client.containers.get(name)
    except NotFound:
        raise EngineError(
            msg(
                "The Docker Engine at {socket} of this node does not know this container ({name}): it is "
                "another one than the Swarm's. Have the Swarm's own Docker Engine listen there.",
                socket=DEFAULT_HOST.removeprefix("unix://"),
                name=name,
            )
        ) from None
