"""An image is pulled on a real Docker Engine, from registries that give it, do not, or want a login first."""

from __future__ import annotations

import json
from collections.abc import Iterator

import docker
import pytest

from pai_scheduler.engine.agent.pull import PullProgress, pull
from tests.testbed.docker import client
from tests.testbed.fixtures import REGISTRY_PASSWORDS


@pytest.fixture
def engine(docker_host: str) -> Iterator[docker.DockerClient]:
    with client(docker_host) as engine:
        yield engine


def give(engine: docker.DockerClient, image: str, registry: str, login: dict[str, str] | None = None) -> str:
    """Have a registry keep an image, and nobody else; return its name."""
    name = f"{registry}/pulled"
    engine.images.get(image).tag(name, "1")
    said = list(engine.api.push(name, tag="1", auth_config=login, stream=True, decode=True))
    assert not [step for step in said if "error" in step], said
    engine.images.remove(f"{name}:1")
    return f"{name}:1"


def test_an_image_that_is_given_is_there_afterwards(
    engine: docker.DockerClient,
    debian_image: str,
    docker_registry: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = give(engine, debian_image, docker_registry)
    assert pull(engine, name, None) == PullProgress(image=str(engine.images.get(name).id))
    for line in capsys.readouterr().out.splitlines():
        progress = json.loads(line)
        assert 0 <= progress["done"] <= progress["total"]
    engine.images.remove(name)


def test_an_image_that_is_not_there_is_said(engine: docker.DockerClient, docker_registry: str) -> None:
    found = pull(engine, f"{docker_registry}/no-such:1", None)
    assert found.image == ""
    assert "not found" in found.error or "manifest unknown" in found.error


def test_a_registry_that_wants_a_login_gives_nothing_without_it(
    engine: docker.DockerClient, debian_image: str, private_registry: str
) -> None:
    user, password = next(iter(REGISTRY_PASSWORDS.items()))
    login = {"username": user, "password": password}
    name = give(engine, debian_image, private_registry, login)
    assert pull(engine, name, None).error
    assert pull(engine, name, {**login, "password": "wrong"}).error
    assert pull(engine, name, login) == PullProgress(image=str(engine.images.get(name).id))
    engine.images.remove(name)
