"""Pulling images from a real registry: how far it is, once for everybody, and what is not there."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncIterator

import aiodocker
import pytest

from pai_scheduler.engine.docker.images import _Pull, _Wish
from pai_scheduler.engine.protocol import EndCause, Progress
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.lab import Lab, make_task, new_job_id


@pytest.fixture
async def remote_image(
    docker: aiodocker.Docker, docker_registry: str, debian_image: str
) -> AsyncIterator[str]:
    """Return an image that is in the registry, and not on this machine."""
    name = f"{docker_registry}/debian"
    await docker.images.tag(debian_image, name, tag="1")
    await docker.images.push(f"{name}", tag="1")
    # what is pulled must be fetched anew: the same layers under another name would be there already
    container = await docker.containers.run(
        {"Image": debian_image, "Cmd": ["sh", "-c", f"echo {name} > /new"]}
    )
    await container.wait()
    await container.commit(repository=name, tag="1")
    await container.delete(force=True)
    await docker.images.push(name, tag="1")
    await docker.images.delete(f"{name}:1", force=True)
    yield f"{name}:1"
    with contextlib.suppress(aiodocker.DockerError):
        await docker.images.delete(f"{name}:1", force=True)


def progress(lab: Lab, task: TaskRef) -> list[Progress]:
    return [event for event in lab.events if isinstance(event, Progress) and event.task == task]


async def test_a_missing_image_is_pulled_and_says_how_far_it_is(docker_lab: Lab, remote_image: str) -> None:
    task, ended = await docker_lab.run("cat /new; exit 3", image=remote_image)
    told = progress(docker_lab, task)
    assert ended.exit_code == 3
    assert str(told[0].message) == f"waiting to pull {remote_image}"
    assert re.fullmatch(rf"pulling {re.escape(remote_image)}: 100 % of [\d.]+ [kMG]?B", str(told[-1].message))
    assert told[-1].percent == 100
    percents = [event.percent for event in told if event.percent is not None]
    assert percents == sorted(percents)


async def test_an_image_that_is_here_is_not_pulled(docker_lab: Lab) -> None:
    task, _ = await docker_lab.run("true")
    assert progress(docker_lab, task) == []


async def test_a_gang_pulls_its_image_once_and_every_task_hears_of_it(
    docker_lab: Lab, docker: aiodocker.Docker, remote_image: str
) -> None:
    before = time.time()
    job = new_job_id()
    tasks = [make_task("worker", index, job_id=job) for index in range(3)]
    for launch in await docker_lab.prepare(
        *(docker_lab.make("true", task=task, image=remote_image) for task in tasks)
    ):
        await docker_lab.engine.launch(launch)
    for task in tasks:
        assert (await docker_lab.ended(task)).exit_code == 0
        assert progress(docker_lab, task)[-1].percent == 100
    # `until` makes Docker give what was, and end
    told = docker.events.subscribe(since=f"{before:.6f}", until=f"{time.time():.6f}")
    pulls = 0
    while (event := await told.get()) is not None:
        pulls += event["Type"] == "image" and event["Action"] == "pull" and event["id"] == remote_image
    assert pulls == 1


async def test_an_image_that_does_not_exist_is_refused_in_one_sentence(
    docker_lab: Lab, docker_registry: str
) -> None:
    images = [f"{docker_registry}/{name}" for name in ("debian:no-such-tag", "no/such/image")]
    ends = await docker_lab.run_gang(*({"image": image} for image in images))
    for image, (_, ended) in zip(images, ends, strict=True):
        assert (ended.cause, ended.exit_code) == (EndCause.REFUSED, None)
        assert str(ended.reason).startswith(f"The image {image} does not exist, or may not be pulled without")


def test_a_pull_never_seems_to_go_back() -> None:
    told: list[int | None] = []
    pull = _Pull(_Wish("image"))
    pull.listeners.append(lambda _message, percent: told.append(percent))
    for status, layer, current, total in (
        ("Downloading", "a", 50, 100),
        ("Downloading", "b", 0, 900),
        ("Download complete", "a", 0, 0),
        ("Downloading", "b", 900, 900),
        ("Extracting", "a", 100, 100),
        ("Pull complete", "a", 0, 0),
        ("Extracting", "b", 900, 900),
        ("Pull complete", "b", 0, 0),
    ):
        detail = {"current": current, "total": total} if total else {}
        pull.take({"status": status, "id": layer, "progressDetail": detail})
    assert told == [25, 50, 55, 100]
