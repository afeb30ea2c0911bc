"""kill -9 around the making of a container with its user's home: one home is made, and nothing runs twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.testbed.fixtures import provide
from tests.testbed.homes import homes, remove_homes
from tests.testbed.images import TINY, tiny_image

from .drill import Drill, Sort
from .outside import Containers

#: One life ends at each. Docker makes the volume with the container, so there is no point between the two.
POINTS = (
    "before ContainerCreator._create at-home-0-main-0",
    "after ContainerCreator._create at-home-0-main-0",
    "after ContainerCreator.fill at-home-0-main-0",
    "after ContainerCreator.start at-home-0-main-0",
)
#: It fails where the file is there already.
ONCE = "set -C; echo mine > /home/me/once && read line < /home/me/once && [ $line = mine ] && echo ran"


async def test_a_home_is_made_once_wherever_the_service_is_killed(
    docker_host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide(tiny_image, docker_host)
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    role = {"name": "main", "memoryMB": 100, "command": ONCE}
    job = {"jobName": "at-home", "image": TINY, "taskRoles": [role], "extras": {"home": "/home/me"}}
    place = tmp_path / "day"
    outside = Containers(place / "data", docker_host)
    cluster = "nodes: [{name: a, cpus: 4, memoryMB: 10000, storageGB: 100}]"
    try:
        lives = await Drill(
            place, POINTS, [Sort(job, "SUCCEEDED", 0)], outside, cluster, ("--engine", "docker")
        ).run()
        assert [life.killed for life in lives] == [True] * len(POINTS) + [False]
        assert {user: len(names) for user, names in homes(docker_host, place / "data").items()} == {
            "alice": 1
        }
    finally:
        remove_homes(docker_host, place / "data")
