"""Brings the project's images to a registry that all machines of a Swarm reach.

python -m hub_config.images.push REGISTRY       # such as registry.lab:5000
"""

from __future__ import annotations

import argparse
import sys

from docker.errors import ImageNotFound

from pai_scheduler.engine.docker.image_build import BuildError
from pai_scheduler.engine.docker.runtime import image_of_this_version
from pai_scheduler.engine.docker.sync_client import ERRORS, docker_client
from pai_scheduler.engine.protocol import EngineError

from .build import IMAGES, version

NOTEBOOK, AGENT = (f"pai/{image}:{version()}" for image in IMAGES)
RUNTIME = image_of_this_version()


def name_in(registry: str, image: str) -> str:
    """Return what an image is called in a registry (`host:port`)."""
    return f"{registry.rstrip('/')}/{image}"


def push(registry: str, docker_host: str | None = None) -> list[str]:
    """Push the images; return their names in the registry. BuildError, EngineError."""
    with docker_client(docker_host) as client:
        for name in (NOTEBOOK, AGENT, RUNTIME):
            there = name_in(registry, name)
            try:
                client.images.get(name).tag(there)
                for step in client.images.push(there, stream=True, decode=True):
                    if "error" in step:
                        raise BuildError(f"{there} could not be pushed: {step['error']}")
            except ImageNotFound as error:
                raise BuildError(f"The image {name} is not built: make image agent runtime") from error
            except ERRORS as error:
                raise BuildError(f"{there} could not be pushed: {error}") from error
    return [name_in(registry, name) for name in (NOTEBOOK, AGENT, RUNTIME)]


def main() -> None:
    """Push the images and print their names."""
    parser = argparse.ArgumentParser(description="Push the project's images to a registry.")
    parser.add_argument("registry", help="host and port, such as registry.lab:5000")
    options = parser.parse_args()
    try:
        print("\n".join(push(options.registry)))
    except (BuildError, EngineError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
