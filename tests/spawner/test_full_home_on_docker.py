"""A home that is full, on a real Hub with Docker: its user still comes in, is told, and makes room."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pai_scheduler.engine.docker.volumes import home_volume
from tests.hub import Hub, wait_for
from tests.spawner.test_homes_on_docker import Server
from tests.testbed.docker import client

HOME = "/home/jovyan"
#: As a home with a limit is made where Docker can (`--home-gb`), which needs a kernel with XFS quotas.
SMALL = {"type": "tmpfs", "device": "tmpfs", "o": "size=8m,mode=1777"}


@pytest.fixture
def hub(docker_hub: Hub) -> Iterator[Hub]:
    yield docker_hub
    docker_hub.clear()


@pytest.fixture
def full(hub: Hub, docker_host: str, notebook_image: str) -> None:
    """Make a small home of alice, and have a job of hers fill it to the last byte."""
    mark = (hub.folder / "scheduler" / "docker-instance").read_text()
    labels = {"pai.instance": mark, "pai.user": "alice"}
    with client(docker_host) as docker:
        docker.volumes.create(home_volume(mark, "alice"), driver_opts=SMALL, labels=labels)
    command = f"cd {HOME}; echo mine > notes.txt; cat /dev/zero > large; echo full; exec sleep 1000"
    role = {"name": "main", "memoryMB": 256, "command": command}
    job = {"jobName": "fill", "image": notebook_image, "taskRoles": [role], "extras": {"home": HOME}}
    answer = hub.scheduler("alice", "POST", "jobs", json=job)
    assert answer.status_code == 202, answer.text
    log = "user/alice/jobs/fill/taskRoles/main/tasks/0/logs/all"
    wait_for(lambda: "full" in hub.scheduler("alice", "GET", log).text, "the home to be full", hub.log)


@pytest.mark.usefixtures("full")
def test_a_user_whose_home_is_full_is_told_and_can_make_room(hub: Hub) -> None:
    server = Server(hub, "alice")
    server.start()
    model = {"type": "file", "format": "text", "content": "x" * 10_000}
    refused = server.contents("PUT", "notes.txt", json=model)
    assert refused.status_code == 507
    assert "there is no room left where your files are kept (8 MB of 8 MB are used)" in refused.text
    assert server.read("notes.txt") == "mine\n"
    job = hub.running_jobs("alice")[0]["name"]
    log = hub.scheduler("alice", "GET", f"user/alice/jobs/{job}/taskRoles/notebook/tasks/0/logs/all").text
    assert "The home is full" in log
    assert not server.contents("PUT", "new.txt", json=model).is_success
    assert server.contents("DELETE", "large").is_success
    server.write("new.txt", "x" * 10_000)
