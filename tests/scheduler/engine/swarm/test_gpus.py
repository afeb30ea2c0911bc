"""GPUs of a node elsewhere: its agent tells them, and a task gets the very ones that it was given.

Where there is a GPU, NVML and NVIDIA's container toolkit are the real ones. Elsewhere two parts stand in:
NVML's answers, and the toolkit's hook, for which Docker looks when it starts, and which makes devices appear
in a container.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.engine.hardware import find_gpus
from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.node_engine import RemoteEngine
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.testing.lab import Lab
from tests.scheduler.engine.swarm.gangs import ASKED
from tests.scheduler.engine.swarm.test_node_engine import Agent
from tests.testbed.docker import Daemon, socket_folder
from tests.testbed.fixtures import provide
from tests.testbed.images import tiny_image
from tests.testbed.nvml import Device, StandInNvml

DEVICES = (
    Device("GPU-aaaa", 10, 2**30),
    Device("GPU-bbbb", 50, 2**30),
    Device("GPU-cccc", 70, 2**31),
)


@pytest.fixture
def docker_with_gpus(docker_host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return a Docker Engine that takes requests for GPUs; its containers get no device."""
    del docker_host  # only where Docker can be had at all
    hook = tmp_path / "programs" / "nvidia-container-runtime-hook"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    own = Daemon(tmp_path / "root", socket_folder(), own_network=True)

    def start() -> str:
        with monkeypatch.context() as environ:
            environ.setenv("PATH", str(hook.parent), prepend=":")
            own.start()
        return tiny_image(own.host)

    provide(start)
    yield own.host
    own.remove()


async def over_an_agent(folder: Path, docker_host: str, image: str) -> AsyncIterator[Lab]:
    """Work through an agent in this process."""
    agent = Agent(folder / "agent", docker_host, "local/no-runtime")
    agent.start()
    connection = AgentConnection("127.0.0.1", agent.port, None)
    engine = RemoteEngine(folder / "data", connection, tunnel_servers(None), ASKED)
    await engine.start()
    lab = await Lab.over(engine, image)
    await lab.adopt([])
    yield lab
    await lab.clean()
    await engine.close()
    await agent.stop()


@pytest.fixture
async def lab(docker_with_gpus: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Lab]:
    StandInNvml(monkeypatch, DEVICES)
    async for lab in over_an_agent(tmp_path, docker_with_gpus, "local/tiny"):
        yield lab


@pytest.fixture
async def lab_with_a_gpu(docker_host: str, debian_image: str, tmp_path: Path) -> AsyncIterator[Lab]:
    if not find_gpus():
        pytest.skip("a GPU of NVIDIA's: NVML knows of none on this machine")
    async for lab in over_an_agent(tmp_path, docker_host, debian_image):
        yield lab


async def test_an_agent_tells_its_gpus_and_docker_there_is_asked_for_those_of_the_task(
    lab: Lab, docker_with_gpus: str
) -> None:
    (node,) = await lab.engine.nodes()
    assert node.gpus == tuple(
        Gpu(number, "H100", device.uuid, memory_mb=81_920) for number, device in enumerate(DEVICES)
    )
    task = await lab.start("echo $NVIDIA_VISIBLE_DEVICES; exec sleep 100000", gpus=node.gpus[1:])
    await lab.printed(task, "GPU-bbbb,GPU-cccc\n")
    async with aiodocker.Docker(url=docker_with_gpus) as docker:
        found = await docker.containers.container(task.name).show()
    (request,) = found["HostConfig"]["DeviceRequests"]
    assert (request["Driver"], request["DeviceIDs"]) == ("nvidia", ["GPU-bbbb", "GPU-cccc"])
    assert request["Capabilities"] == [["gpu"]]
    usage = await lab.engine.usage(task)
    assert usage is not None
    assert (usage.gpu_percent, usage.gpu_memory_mb) == (60.0, 3072.0)


async def test_a_task_without_gpus_asks_docker_for_none_and_sees_none(
    lab: Lab, docker_with_gpus: str
) -> None:
    task = await lab.start("echo $NVIDIA_VISIBLE_DEVICES; exec sleep 100000")
    await lab.printed(task, "void\n")
    async with aiodocker.Docker(url=docker_with_gpus) as docker:
        found = await docker.containers.container(task.name).show()
    assert not found["HostConfig"]["DeviceRequests"]


async def test_a_task_sees_the_real_gpu_that_it_was_given_and_no_other(lab_with_a_gpu: Lab) -> None:
    (node,) = await lab_with_a_gpu.engine.nodes()
    given = node.gpus[-1]
    task, ended = await lab_with_a_gpu.run("nvidia-smi --query-gpu=uuid --format=csv,noheader", gpus=(given,))
    assert ended.exit_code == 0, ended.reason
    assert lab_with_a_gpu.output(task).split() == [given.uuid]
