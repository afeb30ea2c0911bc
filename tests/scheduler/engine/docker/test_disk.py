"""What a container writes is measured, and ends it where it is more than it may be."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.engine.disk_usage import is_beyond
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.volumes import storage_gb
from pai_scheduler.engine.protocol import EndCause, Ended, Usage
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.lab import PATIENCE, Lab
from tests.scheduler.engine.docker.test_engine import make_image

OpenDocker = Callable[..., Awaitable[DockerEngine]]

#: With a limit of 0 GB a container may write 1 MiB.
TOO_MUCH = "head -c 5000000 /dev/zero"


async def measured(lab: Lab, task: TaskRef, least_mb: float) -> Usage:
    """Wait until a task's disk is found to be so full."""
    async with asyncio.timeout(PATIENCE):
        while True:
            usage = await lab.engine.usage(task)
            if usage is not None and (usage.disk_mb or 0) >= least_mb:
                return usage
            await asyncio.sleep(0.1)


def assert_disk_full(ended: Ended) -> None:
    assert (ended.cause, ended.exit_code) == (EndCause.DISK, 137)
    assert str(ended.reason).startswith("The task wrote more than its 0 GB to its disk, and was ended.")


async def test_a_task_that_writes_more_than_it_may_is_ended_for_that_held_or_not_and_wherever_it_writes(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str
) -> None:
    await make_image(docker, "local/volume", f"FROM {debian_image}\nVOLUME /data\n")
    ends = await docker_lab.run_gang(
        f"trap '' TERM; {TOO_MUCH} > file; sleep 100000",
        {"command": f"(sleep 0.5; {TOO_MUCH} > file) & exit 3", "hold_on_failure": True},
        # (a volume that the image asks for counts too)
        {"command": f"{TOO_MUCH} > /data/file; sleep 100000", "image": "local/volume"},
        storage_gb=0,
    )
    for _, ended in ends:
        assert_disk_full(ended)


async def test_what_is_written_within_the_limit_or_without_one_is_measured_and_ends_nothing(
    docker_lab: Lab,
) -> None:
    within, unlimited = await docker_lab.start_gang(
        {
            "command": "head -c 600000 /dev/zero > a; ln a b; truncate -s 10G holes; exec sleep 100000",
            "storage_gb": 0,
        },
        {"command": f"{TOO_MUCH} > file; exec sleep 100000", "storage_gb": None},
    )
    usage = await measured(docker_lab, within, 0.5)
    assert usage.disk_mb is not None
    assert usage.disk_mb < 1
    await measured(docker_lab, unlimited, 4)
    for task in (within, unlimited):
        await docker_lab.engine.kill(task, 0)
        assert (await docker_lab.ended(task)).cause is EndCause.KILLED


async def test_where_the_folders_cannot_be_looked_into_the_daemon_is_asked(
    docker_lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.volumes._folders", lambda _found: ())
    monkeypatch.setattr("pai_scheduler.engine.docker.volumes._LEAST_PAUSE", 0.1)
    task = await docker_lab.start("echo ready; cat /dev/zero | head -c 400000 > file; exec sleep 1000")
    await measured(docker_lab, task, 0.3)
    _, ended = await docker_lab.run(f"{TOO_MUCH} > file; sleep 100000", storage_gb=0)
    assert_disk_full(ended)


async def test_a_task_is_watched_after_a_restart_too(
    open_docker: OpenDocker, docker: aiodocker.Docker, debian_image: str
) -> None:
    lab = await Lab.over(await open_docker(), debian_image)
    command = f"trap '{TOO_MUCH} > file' USR1; echo ready; while :; do sleep 0.05; done"
    task = await lab.start(command, storage_gb=0)
    await lab.printed(task, "ready")
    await lab.stop_listening()
    later = await Lab.over(await open_docker(), debian_image)
    await later.adopt([task])
    await later.started(task)
    await docker.containers.container(task.name).kill(signal="SIGUSR1")
    assert_disk_full(await later.ended(task))
    later.gangs = lab.gangs
    await later.clean()


async def test_a_kill_of_the_service_does_not_hide_why_a_task_was_ended(
    open_docker: OpenDocker, docker: aiodocker.Docker, debian_image: str, tmp_path: Path
) -> None:
    lab = await Lab.over(await open_docker(), debian_image)
    task = await lab.start("exec sleep 100000", storage_gb=0)
    await lab.started(task)
    await lab.stop_listening()
    await lab.engine.close()
    # the service dies after it made its intent durable
    (tmp_path / "data" / "disk-full").mkdir()
    (tmp_path / "data" / "disk-full" / task.name).touch()
    await docker.containers.container(task.name).kill(signal="SIGKILL")
    later = await Lab.over(await open_docker(), debian_image)
    await later.adopt([task])
    assert_disk_full(await later.ended(task))
    later.gangs = lab.gangs
    await later.clean()
    assert not list((tmp_path / "data" / "disk-full").iterdir())


def test_a_limit_that_the_storage_driver_keeps_is_left_to_it() -> None:
    found = {"HostConfig": {}, "Config": {"Labels": {"pai.storage-gb": "7"}}}
    assert storage_gb(found) == 7
    assert storage_gb({**found, "HostConfig": {"StorageOpt": {"size": "7G"}}}) is None
    assert storage_gb({"HostConfig": {}, "Config": {"Labels": {}}}) is None


def test_a_gb_is_what_docker_calls_so() -> None:
    assert not is_beyond(2 * 2**30, 2)
    assert is_beyond(2 * 2**30 + 1, 2)
    assert not is_beyond(2**20, 0)
    assert is_beyond(2**20 + 1, 0)
