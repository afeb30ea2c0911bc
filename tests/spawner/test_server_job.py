"""The job that a server is."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pai_spawner.options import Options
from pai_spawner.server_job import new_job_name, server_job

OPTIONS = Options("pai/notebook:1", 2, 4096, 1, "P100", "vision")


@pytest.mark.parametrize(
    ("server", "pattern"),
    [
        ("", r"notebook_[0-9a-f]{8}"),
        ("gpu-2", r"notebook\.gpu-2_[0-9a-f]{8}"),
        ("a b/..", r"notebook\.a-b---_[0-9a-f]{8}"),
    ],
)
def test_the_job_is_named_after_the_server(server: str, pattern: str) -> None:
    assert re.fullmatch(pattern, new_job_name(server))


def test_no_two_starts_share_a_name() -> None:
    assert new_job_name("") != new_job_name("")


def test_the_job_asks_for_what_was_chosen_and_is_never_taken_away() -> None:
    job = server_job("n_1", "gpu-2", OPTIONS, {"A": "b"}, command=["srv"], address="127.0.0.1", shm_mb=512)
    (role,) = job["taskRoles"]
    assert (job["image"], job["gpuType"], job["virtualCluster"]) == ("pai/notebook:1", "P100", "vision")
    assert (role["cpuNumber"], role["memoryMB"], role["gpuNumber"], role["shmMB"]) == (2, 4096, 1, 512)
    assert job["extras"] == {"session": {"server": "gpu-2"}, "preemptible": False}
    assert job["jobEnvs"] == {"A": "b"}


def test_shared_memory_never_exceeds_the_memory() -> None:
    options = Options("i", 1, 256, 0, "", "default")
    job = server_job("n", "", options, {}, command=["srv"], address="127.0.0.1", shm_mb=512)
    assert job["taskRoles"][0]["shmMB"] == 256


def test_the_server_is_told_its_address_by_the_task_and_nothing_is_read_by_the_shell(tmp_path: Path) -> None:
    prefix = "/user/$(touch%20hacked)/;`id`/"
    program = tmp_path / "srv"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$JUPYTERHUB_SERVICE_URL" "$@"\n')
    program.chmod(0o755)
    job = server_job(
        "n", "", OPTIONS, {}, command=[str(program), "--a=$HOME b"], address="127.0.0.1", shm_mb=64
    )
    done = subprocess.run(
        ["sh", "-c", job["taskRoles"][0]["command"]],
        env={"PAI_CONTAINER_HOST_http_PORT_LIST": "4321", "JUPYTERHUB_SERVICE_PREFIX": prefix},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [f"http://127.0.0.1:4321{prefix}", "--a=$HOME b"]
    assert list(tmp_path.iterdir()) == [program]


@pytest.mark.parametrize("home", ["{tmp}/home", "{tmp}/missing", ""])
def test_the_server_begins_in_its_persons_home_folder_where_there_is_one(tmp_path: Path, home: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    home = home.format(tmp=tmp_path)
    job = server_job("n", "", OPTIONS, {}, command=["/bin/pwd"], address="127.0.0.1", shm_mb=64)
    done = subprocess.run(
        ["sh", "-c", job["taskRoles"][0]["command"]],
        env={"HOME": home} if home else {},
        cwd=tmp_path / "work",
        capture_output=True,
        text=True,
        check=True,
    )
    expected = tmp_path / ("home" if home.endswith("/home") else "work")
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")
