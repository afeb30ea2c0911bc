"""Judges the images that people are offered, and whether a container reaches the Hub."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from ipaddress import ip_network

from docker import DockerClient
from docker.errors import APIError, ContainerError, DockerException, ImageNotFound
from requests.exceptions import RequestException

from pai_scheduler.server.doctor.finding import Finding, good, note, wrong

from ..messages import msg
from .hub_configuration import HubConfiguration

_HOST = "unix:///var/run/docker.sock"
_SECONDS = 30
_ERRORS = (DockerException, RequestException, OSError)
#: What is run in an image: its argument is an address.
_ASK = """\
import sys, urllib.request
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(sys.argv[1], timeout=10).read()
"""


def of_images(hub: HubConfiguration) -> Iterator[Finding]:
    """Judge what is offered to people whose servers are containers; nothing is pulled."""
    said = hub.config.PAISpawner
    for pattern in said.get("allowed_images", []):
        try:
            re.compile(pattern)
        except re.error as error:
            yield wrong(
                msg(
                    "c.PAISpawner.allowed_images has {pattern}, which is no regular expression: {error}",
                    pattern=pattern,
                    error=error,
                ),
                msg("Correct it; a dot that is meant is written with a backslash before it."),
            )
    if hub.engine == "process":
        return  # the image's name is shown only
    offered = dict(said.get("images", {}))
    if not offered:
        yield wrong(
            msg("No image is offered."),
            msg("Set c.PAISpawner.images: name shown → image."),
        )
        return
    host = hub.environ.get("DOCKER_HOST") or _HOST
    try:
        with closing(DockerClient(base_url=host, timeout=_SECONDS)) as client:
            there = []
            for name, image in offered.items():
                finding = _image(client, str(name), str(image))
                yield finding
                if finding.advice is None:
                    there.append(str(image))
            if there and hub.engine == "docker":
                yield _way_from_a_container(client, hub, there[0])
    except _ERRORS as error:
        yield wrong(
            msg("Docker at {host} cannot be asked for images: {error}", host=host, error=_reason(error)),
            msg("See that it runs, and that this account is in the group docker."),
        )


def _image(client: DockerClient, name: str, image: str) -> Finding:
    try:
        client.images.get(image)
        return good(msg("The image of “{name}” is here: {image}.", name=name, image=image))
    except ImageNotFound:
        pass
    try:
        client.images.get_registry_data(image)
    except (APIError, *_ERRORS) as error:
        return wrong(
            msg(
                "The image of “{name}”, {image}, is not here, and its registry does not give it: {error}",
                name=name,
                image=image,
                error=_reason(error),
            ),
            msg("Build or pull it (make image builds the Hub's own), or see its name."),
        )
    return note(
        msg("The image of “{name}”, {image}, is not here, but its registry has it.", name=name, image=image),
        msg("The first server waits for it; before that: {command}", command=f"docker pull {image}"),
    )


def _way_from_a_container(client: DockerClient, hub: HubConfiguration, image: str) -> Finding:
    """Ask the Hub from a container, as servers do: by what the scheduler passes on at Docker's bridge."""
    port = hub.public_url.rpartition(":")[2]
    config = client.networks.get("bridge").attrs["IPAM"]["Config"][0]
    # (Docker names it only where an administrator chose it; its own choice is the first address)
    address = config.get("Gateway") or ip_network(config["Subnet"])[1]
    url = f"http://{address}:{port}{hub.app.base_url}hub/api/"
    try:
        client.containers.run(
            image, [_ASK, url], entrypoint=["python3", "-c"], network_mode="bridge", remove=True
        )
    except (ContainerError, APIError) as error:
        told = error.stderr if isinstance(error, ContainerError) and error.stderr else _reason(error)
        why = (told.decode(errors="replace") if isinstance(told, bytes) else str(told)).strip().splitlines()
        return wrong(
            msg("A container does not reach the Hub at {url}: {error}", url=url, error=(why or [""])[-1]),
            msg(
                "See that the scheduler runs with --front-door-port {port}, and that no firewall stops what "
                "comes from Docker's bridge.",
                port=port,
            ),
        )
    return good(msg("A container reaches the Hub at {url}.", url=url))


def _reason(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error)[:300]
