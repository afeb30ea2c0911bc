"""What a real Docker Engine and this machine say of themselves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pai_scheduler.server.doctor import node_probe
from pai_scheduler.server.doctor.node_probe import look_at_machine
from tests.testbed.docker import client


def test_the_report_has_what_docker_and_the_disk_say(docker_host: str) -> None:
    with client(docker_host) as engine:
        report = look_at_machine(engine, "127.0.0.1:9/no/image:1")
        info = engine.info()
    assert report.docker == info["ServerVersion"]
    usage = shutil.disk_usage(info["DockerRootDir"])
    assert report.disk_gb == pytest.approx(usage.total / 2**30, rel=0.01)
    assert 0 < report.disk_free_gb < report.disk_gb
    assert report.gpu_runtime == ("nvidia" in info["Runtimes"])
    assert "127.0.0.1:9" in report.registry_error


def test_gpus_are_counted_on_the_bus_whether_or_not_there_is_a_driver(tmp_path: Path) -> None:
    for number, (vendor, kind) in enumerate(
        [("0x10de", "0x030200"), ("0x10de", "0x030000"), ("0x10de", "0x040300"), ("0x8086", "0x030000")]
    ):
        device = tmp_path / f"0000:00:0{number}.0"
        device.mkdir()
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text(f"{kind}\n")
    # two: an audio device of NVIDIA's and a graphics processor of another maker do not count
    assert node_probe._gpus_on_bus(tmp_path) == 2
    assert node_probe._gpus_on_bus(tmp_path / "no bus") == 0
    version = tmp_path / "version"
    version.write_text("NVRM version: NVIDIA UNIX  x86_64\nGCC version: 12\n")
    assert node_probe._gpu_driver(version) == "NVRM version: NVIDIA UNIX x86_64"
    assert node_probe._gpu_driver(tmp_path / "none") == ""
