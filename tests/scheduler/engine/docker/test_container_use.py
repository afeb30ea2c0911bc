"""What a container uses, as the kernel's files say it, beside what Docker says."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import aiodocker
import pytest

from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.usage import ContainerProcess, ContainerUse, UsageMeter, read_use
from pai_scheduler.testing.lab import Lab

_BUSY = "head -c 300000 /dev/urandom >/dev/null; echo ready; exec sleep 100000"


async def _process(docker_host: str, name: str) -> ContainerProcess:
    async with aiodocker.Docker(url=docker_host) as docker:
        found = await docker.containers.container(name).show()
    return ContainerProcess(found["Id"], found["State"]["Pid"])


async def test_a_containers_use_is_read_as_docker_tells_it(docker_lab: Lab, docker_host: str) -> None:
    task = await docker_lab.start(_BUSY)
    await docker_lab.printed(task, "ready")
    process = await _process(docker_host, task.name)
    use = read_use(process)
    assert use is not None
    api = DockerApi(docker_host)
    await api.open()
    told = await api.stats(task.name)
    await api.close()
    later = read_use(process)
    assert told is not None
    assert later is not None
    # (after it has printed it has something to do yet: it takes the place of the shell, and is smaller)
    assert 0 < use.cpu_ns <= told["cpu_stats"]["cpu_usage"]["total_usage"] <= later.cpu_ns
    memory = told["memory_stats"]
    assert min(use.memory_bytes, later.memory_bytes) <= memory["usage"]
    assert later.memory_bytes == pytest.approx(
        memory["usage"] - memory["stats"]["total_inactive_file"], abs=2**20
    )
    # (something may arrive meanwhile)
    assert 0 <= use.net_rx_bytes <= told["networks"]["eth0"]["rx_bytes"]
    assert 0 <= use.net_tx_bytes <= told["networks"]["eth0"]["tx_bytes"]


async def test_a_process_that_is_not_the_containers_is_not_believed(
    docker_lab: Lab, docker_host: str
) -> None:
    task = await docker_lab.start("echo ready; exec sleep 100000")
    await docker_lab.printed(task, "ready")
    process = await _process(docker_host, task.name)
    assert read_use(ContainerProcess(process.container, os.getpid())) is None
    assert read_use(ContainerProcess("0" * 64, process.pid)) is None
    assert read_use(ContainerProcess("", process.pid)) is None


async def test_docker_is_asked_only_where_the_kernel_does_not_tell(
    docker_lab: Lab, docker_host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = await docker_lab.start(_BUSY)
    await docker_lab.printed(task, "ready")
    process = await _process(docker_host, task.name)
    api = DockerApi(docker_host)
    await api.open()
    meter = UsageMeter(api)
    asked: list[str] = []
    ask = api.stats

    async def stats(name: str) -> dict[str, Any] | None:
        asked.append(name)
        return await ask(name)

    monkeypatch.setattr(api, "stats", stats)
    read = await meter.measure(task.name, process=process)
    assert asked == []
    told = await meter.measure(task.name, process=ContainerProcess(process.container, os.getpid()))
    meter.close()
    await api.close()
    assert asked == [task.name]
    assert read is not None
    assert told is not None
    assert read.memory_mb == pytest.approx(told.memory_mb, abs=1)


def make_version_2(folder: Path, groups: str) -> Path:
    """Make the files of one container, c0ffee, with the process 7; return the folder of processes."""
    group = folder / "cgroup" / "system.slice" / "docker-c0ffee.scope"
    group.mkdir(parents=True)
    (group / "cpu.stat").write_text("usage_usec 5\nuser_usec 3\n")
    (group / "memory.current").write_text("1000\n")
    (group / "memory.stat").write_text("anon 800\ninactive_file 100\n")
    own = folder / "proc" / "7"
    (own / "net").mkdir(parents=True)
    (own / "cgroup").write_text(groups)
    row = "{}: {} 1 0 0 0 0 0 0 {} 1 0 0 0 0 0 0\n"
    (own / "net" / "dev").write_text("head\nhead\n" + row.format("lo", 5, 5) + row.format("eth0", 30, 40))
    (folder / "proc" / "self").mkdir()
    (folder / "proc" / "self" / "mountinfo").write_text(
        f"30 1 0:26 / {folder / 'cgroup'} rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
    )
    return folder / "proc"


_LIMITS = "0::/system.slice/docker-c0ffee.scope\n"


@pytest.mark.parametrize(
    ("groups", "use"),
    [
        (_LIMITS, ContainerUse(5_000, 900, 30, 40)),
        # what a container makes inside is its own too
        ("0::/system.slice/docker-c0ffee.scope/inner\n", ContainerUse(5_000, 900, 30, 40)),
        ("0::/system.slice/docker-other.scope\n", None),
        ("0::/\n", None),
    ],
)
def test_version_2_of_control_groups_is_read_too(
    tmp_path: Path, groups: str, use: ContainerUse | None
) -> None:
    proc = make_version_2(tmp_path, groups)
    assert read_use(ContainerProcess("c0ffee", 7), proc) == use


def test_what_changes_is_read_anew(tmp_path: Path) -> None:
    process, proc = ContainerProcess("c0ffee", 7), make_version_2(tmp_path, _LIMITS)
    assert read_use(process, proc) == ContainerUse(5_000, 900, 30, 40)
    (tmp_path / "cgroup/system.slice/docker-c0ffee.scope/memory.current").write_text("2000\n")
    assert read_use(process, proc) == ContainerUse(5_000, 1_900, 30, 40)


def test_a_number_that_has_become_another_process_is_not_believed_any_more(tmp_path: Path) -> None:
    process, proc = ContainerProcess("c0ffee", 7), make_version_2(tmp_path, _LIMITS)
    assert read_use(process, proc) is not None
    (proc / "7" / "cgroup").write_text("0::/system.slice/docker-other.scope\n")
    assert read_use(process, proc) is None


def test_a_container_that_is_not_seen_yet_is_looked_for_again(tmp_path: Path) -> None:
    process, proc = ContainerProcess("c0ffee", 7), make_version_2(tmp_path, "0::/\n")
    assert read_use(process, proc) is None
    (proc / "7" / "cgroup").write_text(_LIMITS)
    assert read_use(process, proc) is not None
