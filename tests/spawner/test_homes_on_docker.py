"""Homes of notebook servers in Docker, on a real Hub: they outlive the servers, whatever the image."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import aiodocker
import httpx
import pytest

from tests.hub import Hub
from tests.scheduler.engine.docker.test_engine import make_image
from tests.testbed.homes import homes

NEWER = "local/notebook:newer"


@pytest.fixture
def hub(docker_hub: Hub) -> Iterator[Hub]:
    yield docker_hub
    docker_hub.clear()


@pytest.fixture
async def newer_image(docker: aiodocker.Docker, notebook_image: str) -> str:
    """Return the image of another day: with a new tutorial, and another version of one that there was."""
    folder = "/opt/jupyter/tutorials"
    change = f"echo new > {folder}/99-new.txt && echo new > {folder}/01-hello-world.ipynb"
    await make_image(docker, NEWER, f"FROM {notebook_image}\nUSER root\nRUN {change}\nUSER 1000\n")
    return NEWER


class Server:
    """A person's server, and what is in it."""

    def __init__(self, hub: Hub, user: str, server: str = "") -> None:
        self._hub, self._user, self._server = hub, user, server

    def start(self, **options: Any) -> None:
        """Start it, and wait until it is ready."""
        answer = self._hub.start_server(self._user, {"memory_mb": 1024, **options}, self._server)
        assert answer.is_success, answer.text
        self._hub.wait_ready(self._user, self._server)

    def stop(self) -> None:
        """Stop it."""
        self._hub.stop_server(self._user, self._server)

    def contents(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Ask the server for a file."""
        place = f"../../user/{self._user}/{self._server + '/' if self._server else ''}api/contents/{path}"
        return self._hub.api(self._user, method, place, **options)

    def write(self, path: str, text: str) -> None:
        """Save a file, as Lab does."""
        model = {"type": "file", "format": "text", "content": text}
        assert self.contents("PUT", path, json=model).is_success

    def read(self, path: str) -> str:
        """Open a file, as Lab does."""
        answer = self.contents("GET", path, params={"type": "file", "format": "text"})
        return str(answer.json()["content"]) if answer.is_success else ""


def test_what_is_written_in_a_server_is_in_every_later_one_of_that_person(
    hub: Hub, docker_host: str, newer_image: str
) -> None:
    first = Server(hub, "alice")
    first.start()
    first.write("mine.txt", "mine")
    tutorial = first.read("tutorials/01-hello-world.ipynb")
    first.write("tutorials/01-hello-world.ipynb", tutorial + " ")
    first.stop()

    first.start(image=newer_image)
    named = Server(hub, "alice", "other")
    named.start()
    for server in (first, named):
        assert server.read("mine.txt") == "mine"
        assert server.read("tutorials/01-hello-world.ipynb") == tutorial + " "
        assert server.read("tutorials/99-new.txt") == "new\n"

    bob = Server(hub, "bob")
    bob.start()
    assert bob.contents("GET", "mine.txt").status_code == 404
    assert bob.read("tutorials/01-hello-world.ipynb") == tutorial
    found = homes(docker_host, hub.folder / "scheduler")
    assert {user: len(names) for user, names in found.items()} == {"alice": 1, "bob": 1}
