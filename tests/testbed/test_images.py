"""The images that tests run in are those that the testbed made, whatever else came by their names."""

from __future__ import annotations

from tests.testbed.docker import client
from tests.testbed.fixtures import provide
from tests.testbed.images import DEBIAN, TINY, _is_debian, tiny_image


def test_an_image_is_known_by_what_it_can_and_not_by_its_name(docker_host: str, debian_image: str) -> None:
    provide(tiny_image, docker_host)
    with client(docker_host) as docker:
        docker.images.get(TINY).tag("local/impostor", "bookworm")
    assert _is_debian(docker_host, debian_image)
    assert debian_image == DEBIAN
    assert not _is_debian(docker_host, "local/impostor:bookworm")
    assert not _is_debian(docker_host, "local/nobody:bookworm")
    with client(docker_host) as docker:
        docker.images.remove("local/impostor:bookworm")
