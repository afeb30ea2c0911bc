"""The runtime's volume: filled once for all who ask, also after a break, and gone when nobody has it."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiodocker
import pytest

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.runtime import Runtime, has_its_own
from pai_scheduler.engine.protocol import NoSshEndpointError
from pai_scheduler.testing.engine import FOREVER
from pai_scheduler.testing.lab import Lab
from pai_scheduler.testing.ssh_tasks import run_in, with_ssh

#: Says how many files there are, and how many of them are empty.
COUNT = "find /volume -type f ! -name .complete | wc -l; test -x /volume/boot && echo boot; ls -A /volume"

MakeImage = Callable[..., Awaitable[str]]
OpenDocker = Callable[..., Awaitable[DockerEngine]]


@pytest.fixture
async def api(docker_host: str) -> AsyncIterator[DockerApi]:
    api = DockerApi(docker_host)
    await api.open()
    yield api
    await api.close()


@pytest.fixture
async def make_image(docker: aiodocker.Docker, runtime_image: str) -> AsyncIterator[MakeImage]:
    """Make a runtime image of the same contents that no volume is of yet; all of it goes after the test."""
    names: set[str] = set()

    async def make(name: str = "", base: str = runtime_image) -> str:
        tag = name.rpartition(":")[2] or uuid.uuid4().hex[:12]
        container = await docker.containers.create({"Image": base, "Cmd": ["none"]})
        label = f"LABEL made={uuid.uuid4().hex}"
        await container.commit(repository="local/runtime", tag=tag, changes=label)
        await container.delete()
        names.add(f"local/runtime:{tag}")
        return f"local/runtime:{tag}"

    yield make
    for name in names:
        filters = {"label": [f"pai.runtime={name}"]}
        for container in await docker.containers.list(all=1, filters=aiodocker.utils.clean_filters(filters)):
            volume = (await container.show())["Name"].removeprefix("/")
            await container.delete(force=True)
            await remove_volume(docker, volume)
        await docker.images.delete(name, force=True)


async def remove_volume(docker: aiodocker.Docker, name: str) -> None:
    async with docker._query(f"volumes/{name}", method="DELETE"):
        pass


async def names_of_volumes(docker: aiodocker.Docker) -> set[str]:
    return {volume["Name"] for volume in (await docker.volumes.list())["Volumes"] or ()}


async def in_volume(docker: aiodocker.Docker, image: str, volume: str, command: str) -> str:
    """Run a command in a container that has a volume at /volume."""
    mount = {"Type": "volume", "Source": volume, "Target": "/volume", "VolumeOptions": {"NoCopy": True}}
    config: dict[str, Any] = {"Image": image, "Cmd": ["sh", "-c", command], "HostConfig": {"Mounts": [mount]}}
    container = await docker.containers.create(config)
    try:
        await container.start()
        await container.wait()
        return "".join(await container.log(stdout=True))
    finally:
        await container.delete(force=True)


async def volume_of(docker: aiodocker.Docker, image: str) -> str:
    return f"pai-runtime-{(await docker.images.inspect(image))['Id'].removeprefix('sha256:')[:12]}"


async def test_the_volume_is_named_after_what_is_in_it_and_has_all_of_it(
    api: DockerApi, docker: aiodocker.Docker, make_image: MakeImage, debian_image: str
) -> None:
    runtime = Runtime(api, await make_image())
    name = await runtime.volume()
    assert name == await volume_of(docker, runtime.image)
    assert runtime.why_not is None
    files, boot, *entries = (await in_volume(docker, debian_image, name, COUNT)).split()
    assert int(files) > 30
    assert boot == "boot"
    assert {"bin", "lib", "libexec", "tools"} < set(entries)


async def test_schedulers_that_start_at_once_fill_it_once(
    api: DockerApi, docker: aiodocker.Docker, make_image: MakeImage, debian_image: str
) -> None:
    image = await make_image()
    names = await asyncio.gather(*(Runtime(api, image).volume() for _ in range(4)))
    assert set(names) == {await volume_of(docker, image)}
    mark = "stat -c %Z /volume/.complete; stat -c %Z /volume/boot"
    before = await in_volume(docker, debian_image, str(names[0]), mark)
    assert await Runtime(api, image).volume() == names[0]
    assert await in_volume(docker, debian_image, str(names[0]), mark) == before


async def test_a_volume_that_tasks_have_is_not_written_again_when_somebody_tidied_up(
    api: DockerApi, docker: aiodocker.Docker, make_image: MakeImage, debian_image: str
) -> None:
    image = await make_image()
    name = str(await Runtime(api, image).volume())
    before = await in_volume(docker, debian_image, name, "stat -c '%i %z' /volume/boot")
    await docker.containers.container(name).delete()
    assert await Runtime(api, image).volume() == name
    assert await in_volume(docker, debian_image, name, "stat -c '%i %z' /volume/boot") == before


@pytest.mark.parametrize("container", ["none", "made", "ended"])
async def test_what_was_broken_off_half_way_is_finished(
    api: DockerApi, docker: aiodocker.Docker, make_image: MakeImage, debian_image: str, container: str
) -> None:
    image = await make_image()
    name = await volume_of(docker, image)
    await in_volume(docker, debian_image, name, "mkdir -p /volume/libexec; echo half > /volume/libexec/sshd")
    if container != "none":
        made = await Runtime(api, image)._made(name)
        if container == "ended":
            broken_off = docker.containers.container(made["Id"])
            await broken_off.start()
            with contextlib.suppress(aiodocker.DockerError):  # it was faster
                await broken_off.kill()
            await broken_off.wait()
    assert await Runtime(api, image).volume() == name
    compare = "wc -c < /volume/libexec/sshd; ls -A /volume"
    size, *entries = (await in_volume(docker, debian_image, name, compare)).split()
    assert int(size) > 100_000
    assert ".complete" in entries


async def test_an_image_that_is_no_runtime_is_said_to_be_none_and_not_tried_at_once_again(
    api: DockerApi, docker: aiodocker.Docker, make_image: MakeImage, debian_image: str
) -> None:
    image = await make_image(base=debian_image)
    runtime = Runtime(api, image)
    assert await runtime.volume() is None
    assert f"The runtime of {image} could not be put into the volume" in str(runtime.why_not)
    assert await runtime.volume() is None
    with pytest.raises(aiodocker.DockerError):
        await docker.containers.container(await volume_of(docker, image)).show()
    await remove_volume(docker, await volume_of(docker, image))


async def test_a_runtime_that_is_built_later_is_found_by_the_next_task(
    api: DockerApi, make_image: MakeImage, docker: aiodocker.Docker
) -> None:
    runtime = Runtime(api, "local/runtime:later")
    assert await runtime.volume() is None
    assert "`make runtime` builds it" in str(runtime.why_not)
    await make_image("local/runtime:later")
    assert await runtime.volume() == await volume_of(docker, runtime.image)
    assert runtime.why_not is None


async def test_tasks_that_start_together_ask_docker_once(
    api: DockerApi, make_image: MakeImage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.runtime._KNOWN_SECONDS", 60.0)
    runtime = Runtime(api, await make_image())
    name = await runtime.volume()
    asked: list[str] = []
    ask = api.docker.images.inspect

    async def inspect(image: str) -> Any:
        asked.append(image)
        return await ask(image)

    monkeypatch.setattr(api.docker.images, "inspect", inspect)
    assert [await runtime.volume() for _ in range(3)] == [name] * 3
    assert asked == []
    monkeypatch.setattr("pai_scheduler.engine.docker.runtime._KNOWN_SECONDS", 0.0)
    runtime.doubt()
    assert [await runtime.volume() for _ in range(2)] == [name] * 2
    assert asked == [runtime.image] * 2


async def test_a_newer_runtime_takes_the_place_of_an_older_one_when_no_task_has_that_any_more(
    open_docker: OpenDocker, docker: aiodocker.Docker, make_image: MakeImage, debian_image: str
) -> None:
    image = await make_image("local/runtime:newer")
    lab = await Lab.over(await open_docker(runtime_image=image), debian_image)
    (task,) = with_ssh(*await lab.prepare(lab.make(FOREVER)))
    await lab.engine.launch(task)
    assert (await run_in_started(lab, task)) == "in\n"
    old, old_id = await volume_of(docker, image), (await docker.images.inspect(image))["Id"]
    await make_image("local/runtime:newer")
    new = await volume_of(docker, image)
    runtime = lab.engine._runtime  # type: ignore[attr-defined]
    await runtime.bring()
    assert {old, new} <= await names_of_volumes(docker)
    assert (await run_in_started(lab, task)) == "in\n"
    await lab.clean()
    await runtime.bring()
    assert old not in await names_of_volumes(docker)
    assert new in await names_of_volumes(docker)
    with pytest.raises(aiodocker.DockerError):
        await docker.images.inspect(old_id)


async def test_a_volume_that_somebody_removed_is_missed_and_filled_anew(
    open_docker: OpenDocker, docker: aiodocker.Docker, make_image: MakeImage, debian_image: str
) -> None:
    image = await make_image()
    lab = await Lab.over(await open_docker(runtime_image=image), debian_image)
    name = await lab.engine._runtime.volume()  # type: ignore[attr-defined]
    await docker.containers.container(name).delete()
    await remove_volume(docker, name)
    (without,) = with_ssh(*await lab.prepare(lab.make(f"echo $PATH; {FOREVER}")))
    await lab.engine.launch(without)
    await lab.printed(without.task, "ready")
    assert "/opt/pai" not in lab.output(without.task)
    with pytest.raises(NoSshEndpointError, match="Start the job again to have it back"):
        await lab.engine.ssh_endpoint(without.task)
    (task,) = with_ssh(*await lab.prepare(lab.make(FOREVER)))
    await lab.engine.launch(task)
    assert (await run_in_started(lab, task)) == "in\n"
    await lab.clean()


async def run_in_started(lab: Lab, launch: Any) -> str:
    await lab.started(launch.task)
    return str((await run_in(lab.engine, launch, "echo in")).stdout)


@pytest.mark.parametrize(
    ("config", "own"),
    [
        ({"Env": ["PATH=/opt/pai/bin:/usr/bin"]}, True),
        ({"Env": ["HOME=/opt/pai"]}, True),
        ({"WorkingDir": "/opt/pai/work"}, True),
        ({"Volumes": {"/opt/pai": {}}}, True),
        (
            {"Env": ["PATH=/opt/paint/bin:/usr/bin", "X"], "WorkingDir": "/opt", "Volumes": {"/data": {}}},
            False,
        ),
        ({"Env": None, "Volumes": None, "WorkingDir": ""}, False),
    ],
)
def test_an_image_that_has_the_place_for_itself_is_recognized(config: dict[str, Any], own: bool) -> None:
    assert has_its_own({"Config": config}) is own
