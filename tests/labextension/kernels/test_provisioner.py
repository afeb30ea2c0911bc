"""The provisioner of kernels that are jobs: its settings, its commands, and what holds without a job."""

from __future__ import annotations

import signal
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.kernelspec import KernelSpec
from traitlets import TraitError
from traitlets.config import Config

from pai_labextension.kernels.kernel_job import KernelJob
from pai_labextension.kernels.manager import JobKernelManager, JobKernelsManager
from pai_labextension.kernels.provisioner import PAIProvisioner

KERNEL = str(uuid.UUID(int=9))


def provisioner(
    *argv: str, settings: dict[str, Any] | None = None, env: dict[str, str] | None = None, **config: Any
) -> PAIProvisioner:
    """Make the provisioner of a kernelspec with this command, on a server with these settings."""
    owner = JobKernelsManager(config=Config({"PAIKernels": settings or {}}))
    manager = JobKernelManager(parent=owner)
    words = list(argv) or ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = KernelSpec(argv=words, env=env or {}, resource_dir="/usr/share/kernel")
    return PAIProvisioner(kernel_id=KERNEL, kernel_spec=spec, parent=manager, **config)


def test_a_kernelspec_may_leave_out_what_is_set_for_all_kernels() -> None:
    settings = {"cpus": 3, "memory_mb": 4096, "shm_mb": 256, "preemptible": True, "idle_minutes": 7}
    plain = provisioner(settings=settings)
    assert {name: getattr(plain, name) for name in settings} == settings
    assert (plain.gpus, plain.gpu_type, plain.image) == (0, "", "")
    own = provisioner(settings=settings, cpus=8, idle_minutes=0, preemptible=False)
    assert (own.cpus, own.idle_minutes, own.preemptible, own.memory_mb) == (8, 0, False, 4096)


@pytest.mark.parametrize("wrong", [{"gpus": -1}, {"cpus": 0}, {"memory_mb": 99}, {"idle_minutes": -1}])
def test_a_setting_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(TraitError):
        provisioner(**wrong)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("python", sys.executable),
        ("python3", sys.executable),
        ("python3.11", sys.executable),
        ("{prefix}/bin/R", f"{sys.prefix}/bin/R"),
        ("{resource_dir}/start", "/usr/share/kernel/start"),
        ("pythonx", "pythonx"),
    ],
)
async def test_the_command_is_the_kernelspecs_with_its_places_filled_in(written: str, meant: str) -> None:
    one = provisioner(written, "-f", "{connection_file}")
    prepared = await one.pre_launch(env={}, extra_arguments=["--more"])
    # the connection file is the task's own, so its place is kept
    assert prepared["cmd"] == [meant, "-f", "{connection_file}", "--more"]


async def test_in_another_image_its_own_python_runs_the_kernel() -> None:
    one = provisioner(settings={"python": "/opt/python"}, env={"MINE": "1"})
    start = await one._kernel([sys.executable, "-m", "x"], {"env": {"MINE": "1", "PATH": "/a"}, "cwd": "/w"})
    assert (start.argv, start.cwd) == ([sys.executable, "-m", "x"], "/w")
    assert start.env == {"MINE": "1", "PATH": "/a"}
    one._same_image = False
    start = await one._kernel([sys.executable, "-m", "x"], {"env": {"MINE": "1", "PATH": "/a"}})
    assert start.argv == ["/opt/python", "-m", "x"]
    # what the kernelspec sets goes along, a path of the server's image does not
    assert start.env == {"MINE": "1"}
    assert start.cwd == str(Path.cwd())
    # a program that is not Python is the same everywhere
    assert (await one._kernel(["/usr/bin/R"], {"env": {}})).argv == ["/usr/bin/R"]
    assert provisioner(python="/other")._python() == sys.executable


async def test_before_there_is_a_job_nothing_runs_and_nothing_can_be_ended() -> None:
    one = provisioner()
    assert not one.has_process
    assert await one.poll() is None
    assert await one.wait() is None
    await one.send_signal(signal.SIGINT)
    await one.kill()
    await one.terminate()
    await one.shutdown_requested()
    await one.cleanup()
    await one.leave()


async def test_a_kernel_that_waits_for_its_task_hears_no_signal_and_can_be_given_up(
    unfollowed_job: KernelJob,
) -> None:
    one = provisioner()
    one.job, one._launched = unfollowed_job, True
    for number in (0, signal.SIGINT):
        await one.send_signal(number)
    assert (one.has_process, await one.poll()) == (True, None)
    await one.shutdown_requested()
    assert await one.poll() == await one.wait() == -9
    assert not one.has_process


async def test_a_restart_keeps_the_task(unfollowed_job: KernelJob) -> None:
    one = provisioner()
    one.job, one._launched = unfollowed_job, True
    await one.cleanup(restart=True)
    assert one.job is unfollowed_job
    await one.leave()
    assert (one.job, one.has_process) == (None, False)


async def test_without_a_manager_of_ours_it_finds_its_own_way_to_the_scheduler() -> None:
    spec = KernelSpec(argv=["python"])
    config = Config({"PAIExtension": {"api_url": "http://scheduler.example", "token": "t"}})
    one = PAIProvisioner(kernel_id=KERNEL, kernel_spec=spec, config=config)
    service = await one._service()
    assert service.settings.api_url == "http://scheduler.example"
    await service.close()
