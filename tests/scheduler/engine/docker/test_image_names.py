"""Registries that want to know who pulls: names of images, logins, and images that are here already."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.engine.docker.registries import (
    PrivateImages,
    login_for,
    qualified,
    registry_name,
    repository_of,
)
from pai_scheduler.engine.protocol import EndCause, Ended, RegistryLogin
from pai_scheduler.testing.lab import Lab, new_job_id
from tests.testbed.fixtures import REGISTRY_PASSWORDS
from tests.testbed.images import tiny_image

# names


@pytest.mark.parametrize(
    ("image", "whole"),
    [
        ("ubuntu", "docker.io/library/ubuntu"),
        ("ubuntu:22.04", "docker.io/library/ubuntu:22.04"),
        ("openpai/pai.example:1", "docker.io/openpai/pai.example:1"),
        ("docker.io/openpai/x", "docker.io/openpai/x"),
        ("index.docker.io/openpai/x", "docker.io/openpai/x"),
        ("localhost/x:1", "localhost/x:1"),
        ("lab:5000/a/b:1", "lab:5000/a/b:1"),
        ("nvcr.io/nvidia/x@sha256:abc", "nvcr.io/nvidia/x@sha256:abc"),
    ],
)
def test_an_image_is_written_out_with_its_registry(image: str, whole: str) -> None:
    assert qualified(image) == whole


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("ubuntu:22.04", "docker.io/library/ubuntu"),
        ("lab:5000/a/b:1", "lab:5000/a/b"),
        ("lab:5000/a", "lab:5000/a"),
        ("nvcr.io/x:1@sha256:abc", "nvcr.io/x"),
    ],
)
def test_a_repository_is_an_image_without_tag_and_digest(image: str, repository: str) -> None:
    assert repository_of(image) == repository


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("docker.io", "docker.io"),
        ("https://index.docker.io/v1/", "docker.io"),
        (" HTTPS://Lab.Example:5000/ ", "lab.example:5000"),
    ],
)
def test_a_registry_may_be_written_as_people_and_docker_write_it(written: str, name: str) -> None:
    assert registry_name(written) == name


@pytest.mark.parametrize(
    "registry", ["lab", "lab:50", "lab:50001", "x.lab:5000", "lab:5000.evil.example", ""]
)
def test_a_login_is_for_its_own_registry_only(registry: str) -> None:
    assert login_for("lab:5000/a/b", RegistryLogin(registry, "alice", "secret")) is None
    assert login_for("lab:5000/a/b", RegistryLogin("lab:5000", "alice", "secret")) is not None


def test_images_pulled_with_a_login_are_remembered_over_a_restart(tmp_path: Path) -> None:
    PrivateImages(tmp_path / "new" / "file").add("lab:5000/a")
    again = PrivateImages(tmp_path / "new" / "file")
    assert "lab:5000/a" in again
    assert "lab:5000/b" not in again
    assert "" not in again


# a real registry

ALICE = REGISTRY_PASSWORDS["alice"]


@pytest.fixture
async def secret_image(
    docker: aiodocker.Docker, docker_host: str, private_registry: str
) -> AsyncIterator[str]:
    """Return an image of its own that is in the private registry, and not on this machine."""
    name = f"{private_registry}/{new_job_id()}"
    tiny = await asyncio.to_thread(tiny_image, docker_host)
    container = await docker.containers.run({"Image": tiny, "Cmd": ["sh", "-c", f"echo {name} > /new"]})
    await container.wait()
    await container.commit(repository=name, tag="1")
    await container.delete(force=True)
    await docker.images.push(name, tag="1", auth={"username": "alice", "password": ALICE})
    await docker.images.delete(f"{name}:1", force=True)
    yield f"{name}:1"
    with contextlib.suppress(aiodocker.DockerError):
        await docker.images.delete(f"{name}:1", force=True)


def login(image: str, user: str = "alice", password: str = ALICE) -> RegistryLogin:
    return RegistryLogin(image.partition("/")[0], user, password)


def assert_refused(ended: Ended, begin: str) -> None:
    assert (ended.cause, ended.exit_code) == (EndCause.REFUSED, None)
    said = str(ended.reason)
    assert said.startswith(begin), said
    assert not any(password in said for password in (*REGISTRY_PASSWORDS.values(), "guessed"))


async def test_the_right_login_pulls_and_leaves_no_trace_of_itself(
    docker_lab: Lab,
    docker: aiodocker.Docker,
    secret_image: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    task = await docker_lab.start("export -p; exec sleep 1000", image=secret_image, login=login(secret_image))
    await docker_lab.started(task)
    await docker_lab.printed(task, "PATH=")
    described = str(await docker.containers.container(task.name).show())
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    for place in (described, docker_lab.output(task), caplog.text, str(docker_lab.events), repr(kept)):
        assert ALICE not in place


async def test_without_the_right_login_a_private_image_is_refused_with_what_to_do_and_a_public_one_is_not(
    docker_lab: Lab, secret_image: str, debian_image: str
) -> None:
    other = RegistryLogin("registry.example", "alice", ALICE)
    (_, wrong), (_, without), (_, elsewhere), (_, public) = await docker_lab.run_gang(
        {"image": secret_image, "login": login(secret_image, password="guessed")},
        {"image": secret_image},
        {"image": secret_image, "login": other},
        {"image": debian_image, "login": other, "command": "exit 3"},
    )
    registry = secret_image.partition("/")[0]
    assert_refused(
        wrong, f"The registry {registry} does not give the image {secret_image} to the user of the authFile."
    )
    assert_refused(
        without, f"The image {secret_image} does not exist, or may not be pulled without logging in"
    )
    assert "authFile" in str(without.reason)
    assert_refused(
        elsewhere, f"The image {secret_image} may not be pulled without logging in to its registry"
    )
    assert "the authFile is for another one" in str(elsewhere.reason)
    assert public.exit_code == 3


async def test_a_private_image_that_is_here_is_given_to_those_only_who_could_pull_it(
    docker_lab: Lab, docker: aiodocker.Docker, secret_image: str
) -> None:
    _, ended = await docker_lab.run("exit 3", image=secret_image, login=login(secret_image))
    assert ended.exit_code == 3
    # with nothing, with a wrong password, by its digest, by its id
    _, ended = await docker_lab.run("true", image=secret_image)
    assert_refused(ended, f"The image {secret_image} does not exist, or may not be pulled")
    _, ended = await docker_lab.run("true", image=secret_image, login=login(secret_image, "alice", "guessed"))
    assert_refused(ended, "The registry ")
    found = await docker.images.inspect(secret_image)
    (by_digest,) = found["RepoDigests"]
    _, ended = await docker_lab.run("true", image=by_digest)
    assert_refused(ended, f"The image {by_digest} does not exist, or may not be pulled")
    for by_id in (found["Id"], found["Id"].removeprefix("sha256:")[:12]):
        _, ended = await docker_lab.run("true", image=by_id)
        assert_refused(ended, f"The image {by_id} must be given by its name in its registry.")
    # another user with an own password
    bob = login(secret_image, "bob", REGISTRY_PASSWORDS["bob"])
    _, ended = await docker_lab.run("exit 4", image=secret_image, login=bob)
    assert ended.exit_code == 4
