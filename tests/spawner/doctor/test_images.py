"""The images that people are offered, and the way from a container to the Hub, with a real Docker."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from pai_scheduler.server.doctor.finding import Severity
from pai_spawner.doctor.offers import of_images
from tests.spawner.conftest import Configure
from tests.testbed.docker import bridge_address, client


@pytest.fixture
def hub_at_the_bridge(docker_host: str) -> Iterator[int]:
    """Answer at Docker's bridge, as what the scheduler passes on to the Hub; return the port."""
    with client(docker_host) as engine:
        gateway = bridge_address(engine)

    class Hub(SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/hub/api/" else 404)
            self.end_headers()

    server = HTTPServer((gateway, 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def settings(image: str, port: int) -> tuple[str, ...]:
    return (
        f"c.PAISpawner.images = {{'PAI': {image!r}}}",
        f"c.JupyterHub.bind_url = 'http://127.0.0.1:{port}'",
    )


def test_a_container_of_the_offered_image_reaches_the_hub(
    configure: Configure, docker_host: str, debian_image: str, hub_at_the_bridge: int
) -> None:
    hub = configure(*settings(debian_image, hub_at_the_bridge), PAI_ENGINE="docker", DOCKER_HOST=docker_host)
    assert [finding.verdict for finding in of_images(hub)] == [Severity.GOOD, Severity.GOOD]


def test_a_container_that_reaches_nothing_says_what_to_open(
    configure: Configure, docker_host: str, debian_image: str
) -> None:
    hub = configure(*settings(debian_image, 9), PAI_ENGINE="docker", DOCKER_HOST=docker_host)
    *_, way = of_images(hub)
    assert way.verdict is Severity.WRONG
    assert "refused" in str(way.text)
    assert "--front-door-port 9" in str(way.advice)


def test_an_image_that_nobody_has_is_wrong(configure: Configure, docker_host: str) -> None:
    hub = configure(*settings("127.0.0.1:9/no/such:image", 9), PAI_ENGINE="docker", DOCKER_HOST=docker_host)
    [finding] = of_images(hub)
    assert finding.verdict is Severity.WRONG
    assert "127.0.0.1:9/no/such:image" in str(finding.text)


def test_without_docker_that_is_what_is_said(configure: Configure, tmp_path: Path) -> None:
    nowhere = f"unix://{tmp_path}/nothing.sock"
    [finding] = of_images(configure(*settings("any", 9), PAI_ENGINE="docker", DOCKER_HOST=nowhere))
    assert finding.verdict is Severity.WRONG
    assert nowhere in str(finding.text)


def test_patterns_are_looked_at_and_processes_need_no_image(configure: Configure) -> None:
    [finding] = of_images(configure("c.PAISpawner.allowed_images = ['registry/.*', '*']"))
    assert finding.verdict is Severity.WRONG
    assert list(of_images(configure("c.PAISpawner.allowed_images = ['.*']"))) == []
