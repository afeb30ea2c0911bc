"""What a container uses: GPUs among it, by NVML, where the task was given real ones."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.task import gpus_of
from pai_scheduler.engine.docker.usage import UsageMeter, containers_root, limits_storage, node_of
from pai_scheduler.engine.hardware import GpuMeter, GpuUse
from pai_scheduler.testing.lab import Lab


async def test_the_gpus_of_a_task_are_measured_by_their_names(
    docker_lab: Lab, docker_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(_self: GpuMeter, uuids: tuple[str, ...]) -> GpuUse | None:
        return GpuUse(40.0, 1000.0) if uuids == ("GPU-a", "GPU-b") else None

    monkeypatch.setattr(GpuMeter, "measure", measure)
    task = await docker_lab.start("echo ready; exec sleep 100000")
    await docker_lab.printed(task, "ready")
    api = DockerApi(docker_host)
    await api.open()
    meter = UsageMeter(api)
    usage = await meter.measure(task.name, 3 * 2**20, ("GPU-a", "GPU-b"))
    none = await meter.measure(task.name)
    meter.close()
    await api.close()
    assert usage is not None
    assert (usage.disk_mb, usage.gpu_percent, usage.gpu_memory_mb) == (3.0, 40.0, 1000.0)
    assert none is not None
    assert (none.disk_mb, none.gpu_percent, none.gpu_memory_mb) == (None, None, None)


def test_which_gpus_a_container_has_is_read_from_its_description() -> None:
    requests = [{"Driver": "nvidia", "DeviceIDs": ["GPU-a", "GPU-b"], "Capabilities": [["gpu"]]}]
    assert gpus_of({"HostConfig": {"DeviceRequests": requests}}) == ("GPU-a", "GPU-b")
    assert gpus_of({"HostConfig": {"DeviceRequests": None}}) == ()
    assert gpus_of({"HostConfig": {"DeviceRequests": [{"Count": -1, "DeviceIDs": None}]}}) == ()


@pytest.mark.parametrize(
    ("driver", "backing", "limits"),
    [("overlay2", "extfs", False), ("overlay2", "xfs", True), ("btrfs", None, True), ("vfs", None, False)],
)
def test_some_storage_drivers_can_limit_a_disk_by_themselves(
    driver: str, backing: str | None, limits: bool
) -> None:
    info: dict[str, Any] = {"Driver": driver, "DriverStatus": [["Backing Filesystem", backing]]}
    assert limits_storage(info) is limits


@pytest.mark.parametrize(
    ("options", "folder", "root"),
    [
        (["name=seccomp,profile=default", "name=userns"], "/var/lib/docker/231072.231072", 231072),
        (["name=seccomp,profile=default"], "/var/lib/docker/231072.231072", 0),
        (["name=userns"], "/var/lib/docker", 0),
        (None, "/var/lib/docker", 0),
    ],
)
def test_a_daemon_that_maps_users_tells_to_whom(options: list[str] | None, folder: str, root: int) -> None:
    assert containers_root({"SecurityOptions": options, "DockerRootDir": folder}) == root


def test_a_host_is_described_also_where_only_root_may_look_into_dockers_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = {"DockerRootDir": str(tmp_path / "docker" / "1.1"), "Name": "a", "NCPU": 2, "MemTotal": 2**30}
    (tmp_path / "docker" / "1.1").mkdir(parents=True)
    (tmp_path / "docker").chmod(0)
    monkeypatch.chdir("/")
    user = os.geteuid()
    # (root may look everywhere)
    os.seteuid(user or 65534)
    try:
        assert node_of(info, is_local=True, answers=True).storage_gb > 0
    finally:
        os.seteuid(user)
        (tmp_path / "docker").chmod(0o700)
