"""The job that a server is."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pai_spawner.options import Options
from pai_spawner.server_job import SINGLEUSER, new_job_name, server_job

OPTIONS = Options("", "pai/notebook:1", "P100", 1, 2, 4096, 512, "vision", 0)


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
    job = server_job("n_1", "gpu-2", OPTIONS, {"A": "b"}, command=["srv"], address="127.0.0.1")
    (role,) = job["taskRoles"]
    assert (job["image"], job["gpuType"], job["virtualCluster"]) == ("pai/notebook:1", "P100", "vision")
    assert (role["cpuNumber"], role["memoryMB"], role["gpuNumber"], role["shmMB"]) == (2, 4096, 1, 512)
    assert job["extras"] == {"session": {"server": "gpu-2"}, "preemptible": False}
    assert job["jobEnvs"] == {"A": "b"}


def test_shared_memory_never_exceeds_the_memory() -> None:
    options = replace(OPTIONS, memory_mb=256)
    job = server_job("n", "", options, {}, command=["srv"], address="127.0.0.1")
    assert job["taskRoles"][0]["shmMB"] == 256


def test_the_server_is_told_its_address_by_the_task_and_nothing_is_read_by_the_shell(tmp_path: Path) -> None:
    prefix = "/user/$(touch%20hacked)/;`id`/"
    program = tmp_path / "srv"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$JUPYTERHUB_SERVICE_URL" "$@"\n')
    program.chmod(0o755)
    job = server_job("n", "", OPTIONS, {}, command=[str(program), "--a=$HOME b"], address="127.0.0.1")
    env = {"PAI_CONTAINER_HOST_http_PORT_LIST": "4321", "JUPYTERHUB_SERVICE_PREFIX": prefix}
    done = run_command(job, env, tmp_path)
    assert done.stdout.splitlines() == [f"http://127.0.0.1:4321{prefix}", "--a=$HOME b"]
    assert list(tmp_path.iterdir()) == [program]


def test_a_home_in_a_container_gets_the_tutorials_that_it_lacks(tmp_path: Path) -> None:
    image, home = tmp_path / "of the 'image'", tmp_path / "home"
    (image / "data").mkdir(parents=True)
    (home / "tutorials").mkdir(parents=True)
    for name in ("01.ipynb", "02.ipynb", "data/digits.csv"):
        (image / name).write_text("new")
    (home / "tutorials" / "01.ipynb").write_text("changed by alice")
    job = server_job(
        *("n", "", OPTIONS, {}),
        command=["true"],
        address="127.0.0.1",
        home="/home/jovyan",
        tutorials=str(image),
    )
    assert job["extras"]["home"] == "/home/jovyan"
    for _ in range(2):
        run_command(job, {"HOME": str(home)}, tmp_path)
    found = {str(file.relative_to(home)): file.read_text() for file in home.rglob("*") if file.is_file()}
    assert found == {
        "tutorials/01.ipynb": "changed by alice",
        "tutorials/02.ipynb": "new",
        "tutorials/data/digits.csv": "new",
    }


@pytest.mark.parametrize("hindrance", ["no tutorials", "a file in their place"])
def test_a_server_starts_without_tutorials_too(tmp_path: Path, hindrance: str) -> None:
    if hindrance == "a file in their place":
        (tmp_path / "image").mkdir()
        (tmp_path / "tutorials").write_text("mine")
    job = server_job(
        *("n", "", OPTIONS, {}),
        command=["echo", "started"],
        address="127.0.0.1",
        home="/home/jovyan",
        tutorials=str(tmp_path / "image"),
    )
    assert run_command(job, {"HOME": str(tmp_path)}, tmp_path).stdout == "started\n"


def run_command(job: dict[str, Any], env: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a server's command as a task does."""
    return subprocess.run(
        ["sh", "-c", job["taskRoles"][0]["command"]],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )


def test_a_time_limit_ends_the_job() -> None:
    limited = replace(OPTIONS, run_minutes=90)
    job = server_job("n", "", limited, {}, command=["srv"], address="127.0.0.1")
    assert job["extras"]["maxRunSeconds"] == 5400


@pytest.mark.parametrize("home", ["{tmp}/home", "{tmp}/missing", ""])
def test_the_server_begins_in_its_persons_home_folder_where_there_is_one(tmp_path: Path, home: str) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    home = home.format(tmp=tmp_path)
    job = server_job("n", "", OPTIONS, {}, command=["/bin/pwd"], address="127.0.0.1")
    done = run_command(job, {"HOME": home} if home else {}, tmp_path / "work")
    expected = tmp_path / ("home" if home.endswith("/home") else "work")
    assert (done.stdout, done.stderr) == (f"{expected}\n", "")


def test_shared_folders_are_linked_in_the_home_and_what_is_gone_is_not(tmp_path: Path) -> None:
    home, data = tmp_path / "home", tmp_path / "data"
    for folder in (home, data / "sets", data / "groups" / "视觉 组", data / "old"):
        folder.mkdir(parents=True)
    (data / "sets" / "mnist").write_text("numbers")
    job = server_job(
        *("n", "", OPTIONS, {}),
        command=["true"],
        address="127.0.0.1",
        home="/home/jovyan",
        shared_folders=["sets", "groups"],
    )
    assert job["extras"]["sharedFolders"] == ["sets", "groups"]
    links = home / "shared" / str(data)[1:]

    def start(*folders: Path) -> None:
        text = ":".join(map(str, folders))
        run_command(job, {"HOME": str(home), "PAI_SHARED_FOLDERS": text}, tmp_path)

    start(data / "sets", data / "old", data / "not there")
    assert (links / "sets" / "mnist").read_text() == "numbers"
    (links / "own.txt").write_text("of alice")
    (data / "old").rmdir()
    for _ in range(2):
        start(data / "sets", data / "groups" / "视觉 组")
    assert sorted(
        str(file.relative_to(links)) for file in links.rglob("*") if file.parent != links / "sets"
    ) == [
        "groups",
        "groups/视觉 组",
        "own.txt",
        "sets",
    ]
    start()
    assert not (home / "shared" / "*").exists()


def test_a_server_without_shared_folders_makes_no_links(tmp_path: Path) -> None:
    job = server_job(*("n", "", OPTIONS, {}), command=["true"], address="127.0.0.1", home="/h")
    assert "sharedFolders" not in job["extras"]
    run_command(job, {"HOME": str(tmp_path), "PAI_SHARED_FOLDERS": "/usr"}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_server_in_a_home_with_room_keeps_its_files_there(tmp_path: Path) -> None:
    job = server_job(
        *("n", "", OPTIONS, {}),
        command=["sh", "-c", 'echo "runtime: $JUPYTER_RUNTIME_DIR"'],
        address="127.0.0.1",
        home="/home/jovyan",
    )
    done = run_command(job, {"HOME": str(tmp_path)}, tmp_path)
    assert (done.stdout, done.stderr) == ("runtime: \n", "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("programs", [["pai-singleuser", "jupyterhub-singleuser"], ["jupyterhub-singleuser"]])
def test_an_image_without_our_server_runs_jupyterhubs(tmp_path: Path, programs: list[str]) -> None:
    for name in programs:
        program = tmp_path / name
        program.write_text('#!/bin/sh\necho "$(basename "$0")" "$@"\n')
        program.chmod(0o755)
    job = server_job("n", "", OPTIONS, {}, command=[SINGLEUSER, "--a=$HOME b"], address="127.0.0.1")
    done = run_command(job, {"PATH": f"{tmp_path}:/usr/bin:/bin"}, tmp_path)
    assert done.stdout == f"{programs[0]} --a=$HOME b\n"
