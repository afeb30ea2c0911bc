"""A web program beyond Jupyter in a container of the notebook image that `make run ENGINE=docker` builds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import Hub, open_hub

SERVICE = "/user/alice/pai-service/"
#: It shows the files of its person's home, and needs more memory than there is when `/eat` is asked for.
FILES = """
import http.server, sys
class Files(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/eat":
            print("reading all the data", flush=True)
            data = bytearray(b"x") * (4 << 30)
        super().do_GET()
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Files).serve_forever()
"""
PROFILES = [
    {
        "display_name": "Files",
        "defaults": {"memory_mb": 512},
        "service": {"command": ["python3", "-c", FILES, "{port}"]},
    }
]


@pytest.fixture
def hub(docker_host: str, notebook_image: str, tmp_path: Path) -> Iterator[Hub]:
    profiles = tmp_path / "profiles.yaml"
    profiles.write_text(json.dumps(PROFILES))
    given = {"DOCKER_HOST": docker_host, "PAI_NOTEBOOK_IMAGE": notebook_image, "PAI_PROFILES": str(profiles)}
    with open_hub(tmp_path / "hub", "docker", **given) as hub:
        yield hub


def test_it_has_the_home_and_says_when_its_memory_was_not_enough(hub: Hub) -> None:
    assert hub.start_server("alice", {"profile": "files"}).is_success
    hub.wait_ready("alice")
    with hub.browser("alice") as browser:
        page = browser.get("/user/alice/")
        assert page.url.path == SERVICE
        assert "tutorials/" in page.text
        killed = browser.get(f"{SERVICE}eat", headers={"Accept": "text/html"})
        assert killed.status_code == 503
        assert "It was ended by signal 9. Where nobody sent that, the memory was not enough" in killed.text
        assert "reading all the data" in killed.text
        # the server itself lives on
        assert browser.get("/user/alice/pai/service").json()["state"] == "ended"
