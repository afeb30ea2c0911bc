"""Shared folders in containers: read-only or not as they are given, wherever their files are."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.cluster.definition import parse_definition
from pai_scheduler.cluster.shared_folders import SharedMount
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.volumes import find_missing, shared_mount
from pai_scheduler.engine.protocol import EndCause
from pai_scheduler.testing.lab import Lab
from tests.scheduler.engine.docker.test_engine import make_image

OpenDocker = Callable[..., Awaitable[DockerEngine]]


@pytest.fixture
def sets(tmp_path: Path) -> SharedMount:
    """Return a folder with a file, which may only be read."""
    folder = tmp_path / "sets"
    folder.mkdir()
    (folder / "mnist").write_text("numbers\n")
    folder.chmod(0o777)
    return SharedMount("sets", str(folder), "/data/sets")


@pytest.fixture
async def volume(docker: aiodocker.Docker) -> AsyncIterator[str]:
    """Return the name of a volume, which is gone in the end."""
    made = await docker.volumes.create({"Name": "lab-shared"})
    yield "lab-shared"
    await made.delete()


async def test_what_may_only_be_read_refuses_writes_of_root_and_of_others(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str, sets: SharedMount
) -> None:
    await make_image(docker, "local/not-root", f"FROM {debian_image}\nUSER 1234\n")
    command = "cat /data/sets/mnist; touch /data/sets/x || rm -f /data/sets/mnist || echo kept"
    *tasks, mounts = await docker_lab.start_gang(
        {"command": command},
        {"command": command, "image": "local/not-root"},
        # root cannot make it writable
        "mount -o remount,rw /data/sets; touch /data/sets/x || echo kept",
        shared=(sets,),
    )
    for task in tasks:
        await docker_lab.ended(task)
        assert docker_lab.output(task, "stdout") == "numbers\nkept\n"
        assert "Read-only file system" in docker_lab.output(task)
    await docker_lab.ended(mounts)
    assert docker_lab.output(mounts, "stdout") == "kept\n"
    assert [file.name for file in Path(sets.source).iterdir()] == ["mnist"]


async def test_who_may_write_leaves_files_for_others_and_who_is_given_nothing_sees_none(
    docker_lab: Lab, sets: SharedMount
) -> None:
    writing = replace(sets, read_only=False)
    await docker_lab.run("echo new > /data/sets/new", user="alice", shared=(writing,))
    (reads, _), (without, _) = await docker_lab.run_gang(
        {"command": "cat /data/sets/new", "user": "bob", "shared": (sets,)},
        "ls -A /data || echo nothing",
    )
    assert docker_lab.output(reads) == "new\n"
    assert docker_lab.output(without, "stdout") == "nothing\n"


@pytest.fixture
def mounted_within(sets: SharedMount) -> Iterator[Path]:
    """Mount a file system within the folder."""
    place = Path(sets.source) / "within"
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=False, capture_output=True)
    if made.returncode:
        pytest.skip("mounting a file system needs root")
    (place / "file").write_text("on another file system")
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


async def test_a_file_system_within_a_folder_that_may_only_be_read_is_not_written_to(
    docker_lab: Lab, sets: SharedMount, mounted_within: Path
) -> None:
    task, _ = await docker_lab.run("touch /data/sets/within/x || ls -A /data/sets/within", shared=(sets,))
    assert docker_lab.output(task, "stdout") == ""
    assert [file.name for file in mounted_within.iterdir()] == ["file"]


async def test_a_volume_of_docker_is_shared_too_and_stays(volume: str, docker_lab: Lab) -> None:
    mount = SharedMount("models", volume, "/models", is_volume=True, read_only=False)
    await docker_lab.run("echo weights > /models/a", shared=(mount,))
    await docker_lab.engine.release(docker_lab.gangs.pop())
    reading = replace(mount, read_only=True)
    task, _ = await docker_lab.run(
        "cat /models/a; touch /models/b || echo kept", user="bob", shared=(reading,)
    )
    assert docker_lab.output(task, "stdout") == "weights\nkept\n"


async def test_a_folder_that_is_missing_is_made_where_that_is_asked_for_and_only_then(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str, tmp_path: Path
) -> None:
    await make_image(docker, "local/not-root", f"FROM {debian_image}\nUSER 1234\n")
    own = SharedMount("scratch", str(tmp_path / "alice"), "/scratch", read_only=False, create=True)
    for _ in range(2):
        _, ended = await docker_lab.run("echo x >> /scratch/x", image="local/not-root", shared=(own,))
        assert ended.exit_code == 0
    assert (tmp_path / "alice" / "x").read_text() == "x\nx\n"

    missing = SharedMount("sets", str(tmp_path / "nowhere"), "/data")
    _, ended = await docker_lab.run("true", shared=(missing,))
    assert ended.cause is EndCause.LAUNCH_FAILED
    assert str(ended.reason) == (
        f"The shared folder sets is not on the machine {docker_lab.node}: there is no {missing.source}. An "
        "administrator has to make or mount it there."
    )


async def test_a_folder_is_not_made_in_what_is_not_there_and_the_task_says_so(
    docker_lab: Lab, tmp_path: Path
) -> None:
    mount = SharedMount("scratch", str(tmp_path / "not" / "mounted"), "/scratch", create=True)
    _, ended = await docker_lab.run("true", shared=(mount,))
    assert (ended.cause, list(tmp_path.glob("not"))) == (EndCause.LAUNCH_FAILED, [])
    assert str(tmp_path) in str(ended.reason)


async def test_a_group_without_a_folder_has_none(docker_lab: Lab, sets: SharedMount, tmp_path: Path) -> None:
    groups = [
        SharedMount("groups", str(tmp_path / name), f"/groups/{name}", optional=True)
        for name in ("students", "all")
    ]
    task, ended = await docker_lab.run("ls /data; ls /groups", shared=(groups[0], sets, groups[1]))
    assert docker_lab.output(task, "stdout") == "sets\n"
    assert ended.exit_code != 0


async def test_the_folder_of_a_group_of_any_name_is_found(docker_lab: Lab, tmp_path: Path) -> None:
    document = {
        "sharedFolders": [
            {
                "name": "groups",
                "source": f"{tmp_path}/{{group}}",
                "target": "/data/groups/{group}",
                "write": True,
                "create": True,
            }
        ]
    }
    # (the folder of the tests is one of /tmp)
    names = ("../x", "a/b", "视觉组", "a:b", "x" * 300, "a b", "$HOME", "..")
    (folder,) = parse_definition(document).shared_folders
    shared = tuple(folder.mounts("alice", names))
    command = 'IFS=:; for folder in $PAI_SHARED_FOLDERS; do touch "$folder/it is here" || exit 1; done'
    _, ended = await docker_lab.run(
        command, shared=shared, env={"PAI_SHARED_FOLDERS": ":".join(mount.target for mount in shared)}
    )
    assert ended.exit_code == 0
    assert len(list(tmp_path.glob("*/it is here"))) == len(names)
    assert (tmp_path / "视觉组").is_dir()
    assert (tmp_path / "%2E.%2Fx").is_dir()


async def test_what_is_written_to_a_shared_folder_is_not_the_tasks_disk(
    volume: str, docker_lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "open").mkdir()
    shared = (
        SharedMount("models", volume, "/models", is_volume=True, read_only=False),
        SharedMount("scratch", str(tmp_path / "open"), "/scratch", read_only=False),
    )
    command = (
        "head -c 9000000 /dev/zero > /models/x; head -c 9000000 /dev/zero > /scratch/x; sleep 3; echo kept"
    )
    task, ended = await docker_lab.run(command, shared=shared, storage_gb=0)
    assert (docker_lab.output(task), ended.exit_code) == ("kept\n", 0)


async def test_a_daemon_on_another_machine_mounts_what_is_there(
    tcp_docker: str, open_docker: OpenDocker, debian_image: str, sets: SharedMount
) -> None:
    lab = await Lab.over(await open_docker(host=tcp_docker), debian_image)
    task, _ = await lab.run("cat /data/sets/mnist", shared=(sets,))
    assert lab.output(task) == "numbers\n"
    await lab.clean()


def test_only_what_docker_names_as_missing_is_left_out(sets: SharedMount) -> None:
    error = f'invalid mount config for type "bind": bind source path does not exist: {sets.source}'
    assert find_missing([sets], error) == sets
    assert find_missing([sets], error + "/deeper") is None
    assert find_missing([replace(sets, is_volume=True)], error) is None
    assert shared_mount(sets)["ReadOnly"] is True
