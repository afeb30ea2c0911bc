"""What Docker is told to run for a task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.engine.docker.containers import container_config, find_too_long, is_image_name
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.protocol import Launch
from pai_scheduler.testing.lab import make_launch, make_task

LAUNCH = make_launch("true", task=make_task("worker", 1), node="node-a", image="local/debian:bookworm")
PUBLISHED = DockerSettings(instance="i", publish_ssh="192.0.2.7")
REAL = (Gpu(0, "H100", "GPU-aaaa"), Gpu(3, "H100", "GPU-bbbb"))


def config(launch: Launch, **options: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {"settings": DockerSettings(instance="i"), "network": "pai-job-0", "node_cpus": 4}
    return container_config(launch, **{**usual, "limits_storage": False, **options})


def environment(launch: Launch) -> dict[str, str]:
    return dict(line.split("=", 1) for line in config(launch)["Env"])


def test_real_gpus_are_asked_for_by_their_identifiers_and_are_all_that_is_visible() -> None:
    launch = replace(LAUNCH, gpus=REAL, env={"CUDA_VISIBLE_DEVICES": "0,3", "NVIDIA_VISIBLE_DEVICES": "0,3"})
    assert config(launch)["HostConfig"]["DeviceRequests"] == [
        {"Driver": "nvidia", "DeviceIDs": ["GPU-aaaa", "GPU-bbbb"], "Capabilities": [["gpu"]]}
    ]
    assert environment(launch)["NVIDIA_VISIBLE_DEVICES"] == "GPU-aaaa,GPU-bbbb"
    assert environment(launch)["CUDA_VISIBLE_DEVICES"] == "GPU-aaaa,GPU-bbbb"


def test_gpus_without_identifiers_are_asked_for_by_number_and_numbered_anew_inside() -> None:
    launch = replace(LAUNCH, gpus=(Gpu(2, "P100"), Gpu(5, "P100")))
    assert config(launch)["HostConfig"]["DeviceRequests"][0]["DeviceIDs"] == ["2", "5"]
    assert environment(launch)["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_simulated_gpus_ask_docker_for_nothing() -> None:
    launch = replace(LAUNCH, gpus=(Gpu(0, "P100", simulated=True),), env={"CUDA_VISIBLE_DEVICES": "0"})
    assert "DeviceRequests" not in config(launch)["HostConfig"]
    assert environment(launch)["NVIDIA_VISIBLE_DEVICES"] == "void"
    assert environment(launch)["CUDA_VISIBLE_DEVICES"] == "0"


def test_the_working_folder_is_the_tasks_own_unless_the_job_names_another() -> None:
    assert environment(LAUNCH)["PAI_WORK_DIR"] == "/pai"
    assert (
        environment(replace(LAUNCH, env={"PAI_WORK_DIR": "/home/jovyan"}))["PAI_WORK_DIR"] == "/home/jovyan"
    )


def test_a_disk_is_limited_only_where_the_storage_driver_can() -> None:
    launch = replace(LAUNCH, storage_gb=5)
    assert config(launch, limits_storage=True)["HostConfig"]["StorageOpt"] == {"size": "5G"}
    assert "StorageOpt" not in config(launch)["HostConfig"]


def test_a_host_name_that_linux_would_refuse_is_left_to_docker() -> None:
    launch = replace(LAUNCH, task=make_task("r" * 70))
    assert "Hostname" not in config(launch)
    assert config(LAUNCH)["Hostname"] == "worker-1"


def test_the_others_of_the_gang_are_known_by_name_before_they_start() -> None:
    launch = replace(LAUNCH, hosts={"worker-0": "10.201.0.2", "worker-1": "10.201.0.3"})
    assert config(launch)["HostConfig"]["ExtraHosts"] == ["worker-0:10.201.0.2"]


def test_an_ssh_server_needs_a_port_and_the_runtime() -> None:
    plain = config(LAUNCH)
    with_port = replace(LAUNCH, ssh_port=10022)
    assert config(with_port, settings=PUBLISHED) == plain
    assert config(LAUNCH, runtime="pai-runtime-0", settings=PUBLISHED) == plain
    found = config(with_port, runtime="pai-runtime-0")
    assert found["Labels"] == {**plain["Labels"], "pai.ssh-port": "10022"}
    assert found["Entrypoint"][2].endswith(plain["Entrypoint"][2])
    assert "ExposedPorts" not in found
    assert "PortBindings" not in found["HostConfig"]


def test_a_published_server_gets_a_free_port_of_the_named_address_only() -> None:
    found = config(replace(LAUNCH, ssh_port=10022), runtime="pai-runtime-0", settings=PUBLISHED)
    assert found["HostConfig"]["PortBindings"] == {"10022/tcp": [{"HostIp": "192.0.2.7", "HostPort": ""}]}
    assert found["ExposedPorts"] == {"10022/tcp": {}}


@given(st.text(min_size=1))
def test_a_command_stands_in_one_argument_and_nowhere_else(command: str) -> None:
    plain = config(LAUNCH)
    found = config(replace(LAUNCH, command=command))
    assert found["Entrypoint"][-1] == command
    found["Entrypoint"] = plain["Entrypoint"]
    assert found == plain


@pytest.mark.parametrize(
    "image",
    [
        "debian",
        "local/debian:bookworm",
        "sitonholy/tensorflow:16.04-9.0-3.5-1.8.0",
        "your_docker_registry/pai.run.tensorflow",
        "registry.example.com:5000/a/b__c:latest",
        "127.0.0.1:5000/x@sha256:" + "0" * 64,
    ],
)
def test_names_of_images_are_recognized(image: str) -> None:
    assert is_image_name(image)


@pytest.mark.parametrize("image", ["", "a b", "../x", "a/../../info", "a?b=c", "a#b", "a\n", "/a", "a%2e"])
def test_what_is_no_name_of_an_image_is_recognized(image: str) -> None:
    assert not is_image_name(image)


def test_lengths_are_measured_in_bytes() -> None:
    assert find_too_long(replace(LAUNCH, command="训" * 43_690)) is None
    assert find_too_long(replace(LAUNCH, command="训" * 43_691)) is not None


def test_the_storage_has_a_name_of_its_own_in_a_container() -> None:
    launch = replace(LAUNCH, hosts={"worker-0": "10.0.0.2", "worker-1": "10.0.0.3"})
    hosts = config(launch, storage_address="172.17.0.1")["HostConfig"]["ExtraHosts"]
    assert hosts == ["worker-0:10.0.0.2", "pai-storage:172.17.0.1", "pai-hub:172.17.0.1"]
    assert config(launch)["HostConfig"]["ExtraHosts"] == ["worker-0:10.0.0.2"]
