"""What the tasks of an attempt get, of what is known; nothing is started."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.cluster.shared_folders import SharedMount
from pai_scheduler.core.model import Job
from pai_scheduler.engine.protocol import Gang, GangMember, Launch
from pai_scheduler.job.task import TaskRef
from pai_scheduler.service.inputs import Inputs
from pai_scheduler.service.launcher import GangLaunch
from pai_scheduler.ssh.keys import JobKeys
from tests.scheduler.core.world import World, make_node
from tests.scheduler.making import make_role


class PlacesInTask:
    def __init__(self, *, own_ssh_server: bool = False) -> None:
        self.own_ssh_server = own_ssh_server

    def work_dir(self, task: TaskRef) -> str:
        return f"/place/{task.name}"

    def private_dir(self, task: TaskRef) -> str:
        return f"/private/{task.name}"

    def code_dir(self, code: Path) -> str:
        return f"/code/{code.name}"


def launches(
    *roles: dict[str, Any],
    inputs: Inputs | None = None,
    keys: JobKeys | None = None,
    gpus: tuple[Gpu, ...] = (),
    own_ssh_server: bool = False,
    **fields: Any,
) -> dict[str, Launch]:
    """Return what each task of a job gets, by its host name."""
    world = World(make_node(gpus={"P100": 4}))
    world.submit(*roles, **fields)
    job: Job = next(iter(world.core.jobs.values()))
    assert job.attempt is not None
    tasks = job.attempt.tasks.values()
    members = tuple(GangMember(task.ref, task.assignment.node, task.assignment.ports) for task in tasks)
    addresses = {task.ref: f"10.0.0.{number}" for number, task in enumerate(tasks, start=1)}
    given = GangLaunch(
        job,
        Gang(job.id, job.attempt.number, members),
        addresses,
        replace(inputs or Inputs(), default_fs_uri="http://fs:1"),
        PlacesInTask(own_ssh_server=own_ssh_server),
        told=job.spec,
        default_storage_gb=7,
        keys=keys,
    )
    return {task.ref.hostname: given.of(task, gpus) for task in tasks}


def test_every_task_is_told_the_addresses_of_all_and_has_a_folder_of_its_own() -> None:
    got = launches(make_role(name="worker", tasks=2))
    assert {name: launch.address for name, launch in got.items()} == {
        "worker-0": "10.0.0.1",
        "worker-1": "10.0.0.2",
    }
    assert got["worker-0"].hosts == {"worker-0": "10.0.0.1", "worker-1": "10.0.0.2"}
    folders = {launch.env["PAI_WORK_DIR"] for launch in got.values()}
    assert len(folders) == 2
    assert got["worker-1"].env["PAI_DEFAULT_FS_URI"] == "http://fs:1"


def test_a_role_that_names_no_disk_gets_the_clusters() -> None:
    any_size = make_role(name="any")
    any_size.pop("storageGB", None)
    got = launches(any_size, make_role(name="named", storage_gb=3))
    assert (got["any-0"].storage_gb, got["named-0"].storage_gb) == (7, 3)


def test_a_task_gets_the_gpus_that_were_chosen_for_it() -> None:
    chosen = (Gpu(2, "P100", "GPU-2"),)
    got = launches(make_role(name="main"), gpus=chosen)
    assert got["main-0"].gpus == chosen


def test_the_storages_token_is_in_a_tasks_own_files_and_nowhere_without_one(tmp_path: Path) -> None:
    inputs = Inputs(token="secret", code=tmp_path / "code")
    with_token = launches(make_role(name="main"), inputs=inputs)["main-0"]
    without = launches(make_role(name="main"))["main-0"]
    assert with_token.files
    assert with_token.code == tmp_path / "code"
    assert with_token.env["PAI_STORAGE_TOKEN"] == "secret"
    assert without.files == {}
    assert "PAI_STORAGE_TOKEN" not in without.env


def test_tasks_that_may_be_logged_into_get_the_jobs_keys_and_a_port(tmp_path: Path) -> None:
    keys = JobKeys.in_folder(tmp_path)
    got = launches(make_role(name="worker", tasks=2), keys=keys)
    assert None not in {launch.ssh_port for launch in got.values()}
    assert got["worker-0"].files.keys() == got["worker-1"].files.keys()
    assert got["worker-0"].files
    assert launches(make_role(name="worker"))["worker-0"].ssh_port is None


def test_where_the_server_is_ours_tasks_get_a_port_and_their_keys_when_it_starts(tmp_path: Path) -> None:
    keys = JobKeys.in_folder(tmp_path)
    got = launches(make_role(name="worker", tasks=2), keys=keys, own_ssh_server=True)
    assert [dict(launch.files) for launch in got.values()] == [{}, {}]
    assert None not in {launch.ssh_port for launch in got.values()}


def test_what_is_shared_with_the_user_is_given_to_each_task_and_told_to_it() -> None:
    shared = (SharedMount("sets", "/srv/sets", "/data/sets"), SharedMount("own", "/srv/alice", "/scratch"))
    got = launches(make_role(name="worker", tasks=2), inputs=Inputs(shared=shared))
    for launch in got.values():
        assert launch.shared == shared
        assert launch.env["PAI_SHARED_FOLDERS"] == "/data/sets:/scratch"
    assert "PAI_SHARED_FOLDERS" not in launches(make_role(name="main"))["main-0"].env


def test_only_a_task_whose_command_names_the_launcher_has_it() -> None:
    named = launches(make_role(name="worker", command="python3 $PAI_LAUNCH torch -- train.py"))["worker-0"]
    assert b"torch.distributed" in named.files["launch.py"]
    assert named.env["PAI_LAUNCH"] == f"{PlacesInTask().private_dir(named.task)}/launch.py"
    other = launches(make_role(name="main"))["main-0"]
    assert "launch.py" not in other.files
    assert "PAI_LAUNCH" not in other.env
