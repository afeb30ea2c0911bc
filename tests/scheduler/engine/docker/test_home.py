"""A user's home in containers: it stays, it is theirs alone, and every image's user may write to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import aiodocker
import pytest
from docker.errors import APIError

from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.volumes import PROBE, home_mount, home_volume, size_options
from pai_scheduler.engine.protocol import EngineError, Started
from pai_scheduler.testing.lab import PATIENCE, Lab, make_task
from tests.scheduler.engine.docker.test_engine import make_image
from tests.testbed.docker import client
from tests.testbed.homes import homes, remove_homes

OpenDocker = Callable[..., Awaitable[DockerEngine]]

HOME = "/home/me"
NAMES = ("bob", "../bob", "a b", "a-b", "a_b", "张三", "李四", "Bob", "x" * 300, "x" * 301, "", ".", "a\nb")


@pytest.fixture
def data_dir(docker_host: str, tmp_path: Path) -> Iterator[Path]:
    """Return the engine's folder, by which its homes are found, and removed in the end."""
    yield tmp_path / "data"
    remove_homes(docker_host, tmp_path / "data")


@pytest.fixture
async def lab(data_dir: Path, open_docker: OpenDocker, debian_image: str) -> AsyncIterator[Lab]:
    del data_dir  # whose homes are removed when this is over
    lab = await Lab.over(await open_docker(), debian_image)
    yield lab
    await lab.clean()


@pytest.fixture
async def not_root(docker: aiodocker.Docker, debian_image: str) -> str:
    """Return an image of user 1000 that has the folder, with a file in it."""
    recipe = (
        f"FROM {debian_image}\nRUN mkdir -p {HOME} && echo hello > {HOME}/.profile && chown -R 1000 {HOME}\n"
        "USER 1000\n"
    )
    await make_image(docker, "local/with-home", recipe)
    return "local/with-home"


def test_no_two_users_have_the_same_home_and_no_name_is_more_than_a_name() -> None:
    names = [home_volume("0123456789abcdef", user) for user in NAMES]
    assert len(set(names)) == len(NAMES)
    for name in names:
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
        assert len(name) < 120
    assert home_volume("one", "bob") != home_volume("other", "bob")


async def test_what_was_written_is_there_in_the_next_container_of_another_image(
    lab: Lab, not_root: str, debian_image: str
) -> None:
    await lab.run(f"echo mine > {HOME}/file", image=not_root, home=HOME)
    await lab.engine.release(lab.gangs.pop())
    task, ended = await lab.run("cat /data/file /data/.profile", image=debian_image, home="/data")
    assert (lab.output(task), ended.exit_code) == ("mine\nhello\n", 0)


async def test_another_user_has_another_home(lab: Lab, docker_host: str, data_dir: Path) -> None:
    await lab.run(f"echo secret > {HOME}/file", home=HOME, user="a-b")
    others = ("../bob", "a b", "bob")
    look = f"ls -A {HOME}; echo theirs > {HOME}/file"
    for task, _ in await lab.run_gang(*({"command": look, "user": user} for user in others), home=HOME):
        assert lab.output(task) == ""
    task, _ = await lab.run(f"cat {HOME}/file", home=HOME, user="a-b")
    assert lab.output(task) == "secret\n"
    found = homes(docker_host, data_dir)
    assert {owner: len(names) for owner, names in found.items()} == dict.fromkeys(("a-b", *others), 1)


async def test_an_image_that_is_not_run_as_root_may_write_whichever_user_came_first(
    lab: Lab, docker: aiodocker.Docker, not_root: str, debian_image: str
) -> None:
    await make_image(docker, "local/named", f"FROM {debian_image}\nRUN useradd -u 1000 me\nUSER me\n")
    task, _ = await lab.run(f"touch {HOME}/a && stat -c %a:%u {HOME}", image=not_root, home=HOME)
    assert lab.output(task) == "755:1000\n"  # as the image has it
    firsts = {"u0": debian_image, "u1": "local/named"}
    await lab.run_gang(
        *({"image": first, "user": user} for user, first in firsts.items()),
        command=f"touch {HOME}/root",
        home=HOME,
    )
    change = f"echo x > {HOME}/mine && mv {HOME}/mine {HOME}/b && ls {HOME}"
    for image in (not_root, "local/named"):
        ran = await lab.run_gang(*({"user": user} for user in firsts), command=change, image=image, home=HOME)
        assert [lab.output(task) for task, _ in ran] == ["b\nroot\n"] * 2


async def test_all_tasks_of_a_job_share_the_home(lab: Lab) -> None:
    job = make_task().job_id
    command = f"touch {HOME}/$0; until [ -e {HOME}/a ] && [ -e {HOME}/b ]; do sleep 0.05; done; echo both"
    first, second = await lab.prepare(
        *(
            lab.make(command.replace("$0", name), home=HOME, task=make_task(job_id=job, index=index))
            for index, name in enumerate("ab")
        )
    )
    await asyncio.gather(lab.engine.launch(first), lab.engine.launch(second))
    for task in (first.task, second.task):
        assert (await lab.ended(task)).exit_code == 0


async def test_what_is_in_a_home_does_not_count_for_the_disk(lab: Lab) -> None:
    task = await lab.start(
        f"head -c 5000000 /dev/zero > {HOME}/file; head -c 500000 /dev/zero > here; echo ready; sleep 1000",
        home=HOME,
        storage_gb=0,
    )
    await lab.printed(task, "ready")
    measured = 0.0
    async with asyncio.timeout(PATIENCE):
        while measured < 0.4:
            usage = await lab.engine.usage(task)
            measured = (usage.disk_mb or 0) if usage is not None else 0
            await asyncio.sleep(0.1)
    assert measured < 1
    assert isinstance(lab.told(task)[-1], Started)


async def test_a_daemon_on_another_machine_has_homes_too(
    data_dir: Path, tcp_docker: str, open_docker: OpenDocker, not_root: str, docker_host: str
) -> None:
    lab = await Lab.over(await open_docker(host=tcp_docker), not_root)
    task, ended = await lab.run(f"cat {HOME}/.profile && touch {HOME}/x", home=HOME)
    assert (lab.output(task), ended.exit_code) == ("hello\n", 0)
    await lab.clean()
    assert list(homes(docker_host, data_dir)) == ["alice"]


#: A volume in memory, as a file system with a limit; what is in it is there as long as a container has it.
SMALL = {"type": "tmpfs", "device": "tmpfs", "o": "size=1m,mode=1777"}


async def test_a_home_that_is_made_with_a_limit_is_full_at_it_and_says_so(
    data_dir: Path, open_docker: OpenDocker, debian_image: str
) -> None:
    del data_dir
    lab = await Lab.over(await open_docker(home_options=SMALL), debian_image)
    command = (
        f"head -c 500000 /dev/zero > {HOME}/a; head -c 900000 /dev/zero > {HOME}/b; df -k {HOME} | tail -1"
    )
    task, _ = await lab.run(command, home=HOME)
    assert "No space left on device" in lab.output(task)
    assert lab.output(task, "stdout").split()[1:4] == ["1024", "1024", "0"]
    await lab.clean()


async def test_an_engine_does_not_start_with_a_limit_that_docker_does_not_keep(
    open_docker: OpenDocker, docker: aiodocker.Docker, docker_host: str
) -> None:
    with client(docker_host) as asked:
        try:
            asked.volumes.create("pai-test-quota", driver_opts={"size": "1G"}).remove()
            pytest.skip("this Docker limits volumes")
        except APIError:
            pass
    with pytest.raises(EngineError, match="XFS that is mounted with pquota") as caught:
        await open_docker(home_options=size_options(1))
    assert "no quota support" in str(caught.value)
    assert not [one for one in (await docker.volumes.list())["Volumes"] if PROBE in one["Name"]]


def test_a_home_in_a_volume_is_made_with_its_limit() -> None:
    mount = home_mount("pai-home-x", HOME, {"a": "b"}, size_options(50))
    options = {"DriverConfig": {"Name": "local", "Options": {"size": "50G"}}, "Labels": {"a": "b"}}
    assert mount["VolumeOptions"] == options
    assert home_mount("pai-home-x", HOME, {})["VolumeOptions"] == {"Labels": {}}
