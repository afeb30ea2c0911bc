"""Shared folders on a real Hub with Docker: in servers and jobs, for members of groups and nobody else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.hub import Hub, open_hub, wait_for
from tests.spawner.test_homes_on_docker import Server
from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image

GROUPS = {"vision": ["alice"], "speech": ["bob"], "all": ["alice", "bob"]}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the machine's folder of data: sets, a folder of the group vision, room for scratch folders."""
    data = tmp_path_factory.mktemp("data")
    for folder in ("sets", "groups/vision", "groups/speech", "scratch", "weights"):
        (data / folder).mkdir(parents=True)
        (data / folder).chmod(0o777)
    (data / "sets" / "mnist").write_text("numbers")
    (data / "groups" / "vision" / "plan").write_text("secret of vision")
    (data / "weights" / "plan").write_text("secret of vision")
    return data


@pytest.fixture(scope="module")
def sharing_hub(docker_host: str, notebook_image: str, data: Path) -> Iterator[Hub]:
    cluster = {
        "sharedFolders": [
            {"name": "sets", "source": f"{data}/sets", "target": "/data/sets"},
            {
                "name": "groups",
                "source": f"{data}/groups/{{group}}",
                "target": "/data/groups/{group}",
                "write": True,
            },
            {
                "name": "scratch",
                "source": f"{data}/scratch/{{username}}",
                "target": "/scratch",
                "write": True,
                "create": True,
            },
            {"name": "weights", "source": f"{data}/weights", "target": "/w", "groups": ["vision"]},
        ]
    }
    file = data / "cluster.yaml"
    file.write_text(yaml.safe_dump(cluster))
    provide(tiny_image, docker_host)
    environment = {"DOCKER_HOST": docker_host, "PAI_NOTEBOOK_IMAGE": notebook_image}
    with open_hub(data / "hub", "docker", "--cluster", str(file), "--admin", "root", **environment) as hub:
        for group in GROUPS:
            assert hub.api("root", "POST", f"groups/{group}").is_success
        yield hub


@pytest.fixture
def hub(sharing_hub: Hub) -> Iterator[Hub]:
    for group, members in GROUPS.items():
        for member in members:
            sharing_hub.token(member)
        added = sharing_hub.api("root", "POST", f"groups/{group}/users", json={"users": members})
        assert added.is_success
    yield sharing_hub
    sharing_hub.clear()


def run(hub: Hub, user: str, name: str, command: str, **extras: Any) -> tuple[dict[str, Any], str]:
    """Run a job of one task; return how it ended, and what it wrote."""
    role = {"name": "main", "memoryMB": 128, "command": command}
    job = {"jobName": name, "image": TINY, "taskRoles": [role], "extras": extras}
    answer = hub.scheduler(user, "POST", "jobs", json=job)
    assert answer.status_code == 202, answer.text
    path = f"user/{user}/jobs/{name}"

    def ended() -> dict[str, Any] | None:
        found = dict(hub.scheduler(user, "GET", path).json())
        return found if found["jobStatus"]["subState"] == "ENDED" else None

    wait_for(ended, f"{name} to end")
    log = hub.scheduler(user, "GET", f"{path}/taskRoles/main/tasks/0/logs/all")
    detail = ended()
    assert detail is not None
    return detail, log.text if log.is_success else ""


def test_members_find_what_is_shared_with_them_and_nobody_else_does(hub: Hub, data: Path) -> None:
    alice, bob = Server(hub, "alice"), Server(hub, "bob")
    alice.start()
    assert alice.read("shared/data/sets/mnist") == "numbers"
    assert alice.read("shared/data/groups/vision/plan") == "secret of vision"
    alice.write("shared/data/groups/vision/reply", "from alice")
    alice.write("shared/scratch/mine", "large")
    assert (data / "groups/vision/reply").read_text() == "from alice"
    assert (data / "scratch/alice/mine").read_text() == "large"
    model = {"type": "file", "format": "text", "content": "x"}
    assert not alice.contents("PUT", "shared/data/sets/new", json=model).is_success

    bob.start()
    assert bob.read("shared/data/sets/mnist") == "numbers"
    assert bob.contents("GET", "shared/data/groups/vision").status_code == 404
    listed = bob.contents("GET", "shared/data/groups").json()["content"]
    assert [entry["name"] for entry in listed] == ["speech"]
    assert bob.contents("GET", "shared/scratch").json()["content"] == []
    assert sorted(entry.name for entry in (data / "sets").iterdir()) == ["mnist"]


def test_who_left_a_group_has_its_folder_no_more_from_the_next_start_on(hub: Hub) -> None:
    alice = Server(hub, "alice")
    alice.start()
    assert alice.read("shared/data/groups/vision/plan") == "secret of vision"
    alice.stop()
    body = {"users": ["alice"]}
    assert hub.api("root", "DELETE", "groups/vision/users", json=body).is_success
    alice.start()
    assert alice.contents("GET", "shared/data/groups/vision/plan").status_code == 404
    listed = alice.contents("GET", "shared/data/groups").json()["content"]
    assert listed == []


def test_a_job_has_what_is_open_to_its_user_and_can_name_nothing_else(hub: Hub, data: Path) -> None:
    files = "/data/sets/mnist /data/groups/*/plan /w/plan"
    look = f'for file in {files}; do read line < "$file"; echo "$line"; done; echo $PAI_SHARED_FOLDERS'
    _, log = run(hub, "alice", "all-of-alice", look, sharedFolders=["*"])
    assert log.startswith("numbers\nsecret of vision\nsecret of vision\n")
    assert "/data/sets:/data/groups/vision:/scratch:/w" in log.replace("/data/groups/all:", "")
    _, log = run(hub, "bob", "all-of-bob", look, sharedFolders=["*"])
    assert "secret" not in log
    _, log = run(hub, "bob", "none-of-bob", "echo /data/* /scratch/*")
    assert log == "/data/* /scratch/*\n"

    for number, wanted in enumerate(("weights", "nothing", "../../etc", f"{data}/groups/vision", "/etc")):
        config = {"sharedFolders": [wanted[:40]]}
        detail, log = run(hub, "bob", f"foreign-{number}", "read line < /w/plan; echo $line", **config)
        assert detail["jobStatus"]["state"] == "FAILED"
        assert "Open to you are: sets, groups, scratch" in str(detail)
        assert "secret" not in log
    for wrong in (
        {"sharedFolders": [{"source": "/etc", "target": "/x"}]},
        {"sharedFolders": "/etc"},
        {"mounts": [{"source": "/etc", "target": "/x", "readOnly": False}]},
    ):
        role = {"name": "main", "memoryMB": 128, "command": "true"}
        job: dict[str, Any] = {"jobName": "wrong", "image": TINY, "taskRoles": [role], "extras": wrong}
        answer = hub.scheduler("bob", "POST", "jobs", json=job)
        assert answer.status_code == 400, answer.text
    # nor for alice, whose folders they are
    role = {"name": "main", "memoryMB": 128, "command": "cat /w/plan"}
    job = {"jobName": "for-alice", "image": TINY, "taskRoles": [role], "extras": {"sharedFolders": ["*"]}}
    assert hub.scheduler("bob", "POST", "user/alice/jobs", json=job).status_code == 403
