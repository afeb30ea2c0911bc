"""Whole jobs on real containers, through the service: what a user submits and what comes of it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiodocker
import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.fixtures import REGISTRY_PASSWORDS
from tests.testbed.images import tiny_image
from tests.testbed.scheduler import RunningScheduler, StartScheduler

JOBS = Path(__file__).parents[1] / "fixtures" / "jobs"

#: Each task answers on its `http` port with its name until all four have asked, and asks all four by host
#: name and by PAI_HOST_IP_*, at the ports that PAI_PORT_LIST_* gives: it knows the documented variables only.
MEET = r"""
import os, socket, threading, time
env = os.environ
me = f"{env['PAI_CURRENT_TASK_ROLE_NAME']}-{env['PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX']}"
everybody = [
    (role, index)
    for role in env["PAI_TASK_ROLE_LIST"].split(",")
    for index in range(int(env[f"PAI_TASK_ROLE_TASK_COUNT_{role}"]))
]
def port_of(role, index):
    return int(env[f"PAI_PORT_LIST_{role}_{index}_http"])
def serve(server):
    for _ in range(2 * len(everybody)):
        peer, _ = server.accept()
        peer.sendall(me.encode())
        peer.close()
def ask(where, port):
    for _ in range(600):
        try:
            with socket.create_connection((where, port), timeout=5) as peer:
                return peer.recv(100).decode()
        except OSError:
            time.sleep(0.1)
    raise SystemExit(f"{where}:{port} cannot be reached")
own = [port_of(role, index) for role, index in everybody if f"{role}-{index}" == me]
thread = threading.Thread(target=serve, args=(socket.create_server(("", own[0])),))
thread.start()
for role, index in everybody:
    for where in (f"{role}-{index}", env[f"PAI_HOST_IP_{role}_{index}"]):
        assert ask(where, port_of(role, index)) == f"{role}-{index}", where
print("met", len(everybody), flush=True)
thread.join()
"""


@pytest.fixture
def scheduler(
    docker_host: str, debian_image: str, monkeypatch: pytest.MonkeyPatch, own_scheduler: StartScheduler
) -> RunningScheduler:
    del debian_image  # it carries the names of the documents' images
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    return own_scheduler("--engine", "docker")


def job(name: str, image: str, *roles: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"jobName": name, "image": image, "taskRoles": list(roles), **fields}


async def events_until(client: Client, name: str, *types: str) -> list[str]:
    """Follow a job's events until one of these happens; return the sentences."""
    told = []
    async for event in client.events("alice", name):
        told.append(event["message"])
        if event["type"] in types:
            break
    return told


async def test_two_roles_of_two_tasks_reach_each_other_by_the_documented_variables(
    alice: Client, debian_image: str
) -> None:
    command = f"python3 - <<'END'\n{MEET}\nEND"
    roles = [{"name": name, "taskNumber": 2, "command": command} for name in ("ps", "worker")]
    await alice.submit(job("meeting", debian_image, *roles))
    await events_until(alice, "meeting", "ended")
    detail = await alice.job("alice", "meeting")
    printed = {
        f"{role}-{index}": (await alice.log("alice", "meeting", role, index)).decode()
        for role in ("ps", "worker")
        for index in range(2)
    }
    assert printed == dict.fromkeys(printed, "met 4\n")
    assert detail["jobStatus"]["state"] == "SUCCEEDED"
    addresses = [
        task["containerIp"] for role in detail["taskRoles"].values() for task in role["taskStatuses"]
    ]
    assert len(set(addresses)) == 4


async def test_a_task_knows_its_container_by_the_name_that_the_api_gives(
    alice: Client, debian_image: str
) -> None:
    await alice.submit(job("named", debian_image, {"name": "main", "command": "printf $PAI_CONTAINER_ID"}))
    await events_until(alice, "named", "ended")
    (task,) = (await alice.job("alice", "named"))["taskRoles"]["main"]["taskStatuses"]
    assert task["containerId"] == (await alice.log("alice", "named", "main", 0)).decode()


async def test_the_documents_hello_world_runs_with_a_command_that_needs_no_gpu(alice: Client) -> None:
    config = json.loads((JOBS / "scm-helloworld.json").read_text())
    config["taskRoles"][0]["command"] = "echo hello from $PAI_JOB_NAME; exit 0"
    await alice.submit(config)
    await events_until(alice, config["jobName"], "ended")
    detail = await alice.job("alice", config["jobName"])
    assert (detail["jobStatus"]["state"], detail["jobStatus"]["appExitCode"]) == ("SUCCEEDED", 0)
    log = await alice.log("alice", config["jobName"], "task_1", 0)
    assert log == b"hello from helloworld_16be675e\n"


async def test_an_image_that_does_not_exist_fails_the_job_in_one_sentence(
    alice: Client, docker_registry: str
) -> None:
    image = f"{docker_registry}/no/such:image"
    await alice.submit(job("typo", image, {"name": "main", "command": "true"}))
    await events_until(alice, "typo", "ended")
    status = (await alice.job("alice", "typo"))["jobStatus"]
    assert (status["state"], status["retries"]) == ("FAILED", 0)
    assert f"The image {image} does not exist" in status["appExitDiagnostics"]


async def test_a_registry_that_cannot_be_reached_is_tried_again_and_the_job_says_why_it_waits(
    alice: Client,
) -> None:
    # nothing listens on this port of the loopback interface
    image = "127.0.0.1:9/some/image:1"
    await alice.submit(job("away", image, {"name": "main", "command": "true"}))
    await events_until(alice, "away", "retry")
    status = (await alice.job("alice", "away"))["jobStatus"]
    assert status["state"] == "WAITING"
    assert f"The image {image} could not be pulled" in status["waitingReason"]
    await alice.stop("alice", "away")
    await events_until(alice, "away", "ended")
    assert (await alice.job("alice", "away"))["jobStatus"]["state"] == "STOPPED"


async def test_a_command_that_is_not_found_is_said_with_its_exit_code_and_the_shells_words(
    alice: Client, debian_image: str
) -> None:
    await alice.submit(job("missing", debian_image, {"name": "main", "command": "no-such-command"}))
    await events_until(alice, "missing", "ended")
    status = (await alice.job("alice", "missing"))["jobStatus"]
    assert (status["state"], status["appExitCode"]) == ("FAILED", 127)
    assert b"no-such-command" in await alice.log("alice", "missing", "main", 0)


async def test_containers_outlive_a_kill_of_the_scheduler_and_end_with_their_real_exit_code(
    scheduler: RunningScheduler, alice: Client, debian_image: str
) -> None:
    role = {"name": "main", "command": "echo before; sleep 3; echo after; exit 7"}
    await alice.submit(job("long", debian_image, role))
    await events_until(alice, "long", "running")
    scheduler.kill()
    scheduler.start()
    await events_until(alice, "long", "ended")
    detail = await alice.job("alice", "long")
    assert (detail["jobStatus"]["state"], detail["jobStatus"]["appExitCode"]) == ("FAILED", 7)
    assert len(await alice.attempts("alice", "long")) == 1
    assert await alice.log("alice", "long", "main", 0) == b"before\nafter\n"


async def test_a_debugged_job_that_fails_can_be_looked_into_until_it_is_stopped(
    scheduler: RunningScheduler, alice: Client, docker: aiodocker.Docker, debian_image: str
) -> None:
    role = {"name": "main", "command": "echo what it did > file; exit 9"}
    await alice.submit(job("puzzle", debian_image, role, jobEnvs={"isDebug": True}))
    await events_until(alice, "puzzle", "held")
    scheduler.kill()
    scheduler.start()
    status = (await alice.job("alice", "puzzle"))["jobStatus"]
    assert (status["state"], status["subState"]) == ("RUNNING", "DEBUG_HELD")
    (container,) = await docker.containers.list(filters={"label": ["pai.job-name=puzzle"]})
    assert (await container.show())["State"]["Running"]
    await alice.stop("alice", "puzzle")
    await events_until(alice, "puzzle", "ended")
    assert (await alice.job("alice", "puzzle"))["jobStatus"]["state"] == "STOPPED"
    assert len(await alice.attempts("alice", "puzzle")) == 1


async def test_a_private_image_is_pulled_with_the_login_of_the_users_authfile(
    scheduler: RunningScheduler,
    alice: Client,
    docker: aiodocker.Docker,
    docker_host: str,
    private_registry: str,
) -> None:
    tiny = await asyncio.to_thread(tiny_image, docker_host)
    repository, password = f"{private_registry}/private/tiny", REGISTRY_PASSWORDS["alice"]
    await docker.images.tag(tiny, repository, tag="1")
    await docker.images.push(repository, tag="1", auth={"username": "alice", "password": password})
    await docker.images.delete(f"{repository}:1")
    home = scheduler.data_dir / "storage" / "alice"
    home.mkdir(parents=True)
    (home / "login").write_text(f"{private_registry}\nalice\n{password}\n")
    (home / "wrong").write_text(f"{private_registry}\nalice\n")
    role = {"name": "main", "command": "export -p; exit 3"}
    for name, auth_file in (("right", "login"), ("wrong", "wrong"), ("missing", "none")):
        uri = f"$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/{auth_file}"
        await alice.submit(job(name, f"{repository}:1", role, authFile=uri, retryCount=3))
        await events_until(alice, name, "ended")
    await docker.images.delete(f"{repository}:1", force=True)
    said = {
        name: (await alice.job("alice", name))["jobStatus"]["appExitDiagnostics"]
        for name in ("wrong", "missing")
    }
    assert "/alice/wrong cannot be used: line 3: the password is missing" in said["wrong"]
    assert "There is no file or folder /alice/none." in said["missing"]
    assert len(await alice.attempts("alice", "wrong")) == 1
    assert (await alice.job("alice", "right"))["jobStatus"]["appExitCode"] == 3
    log = await alice.log("alice", "right", "main", 0)
    assert b"PAI_JOB_NAME" in log
    assert password.encode() not in log
    kept = [path for path in scheduler.folder.rglob("*") if path.is_file() and path.name != "login"]
    assert not [path for path in kept if password.encode() in path.read_bytes()]


async def test_a_job_that_writes_more_than_it_asked_for_fails_for_good_with_that_reason(
    alice: Client, debian_image: str
) -> None:
    role = {"name": "main", "command": "head -c 5000000 /dev/zero > file; sleep 1000", "storageGB": 0}
    await alice.submit(job("glutton", debian_image, role, retryCount=3))
    await events_until(alice, "glutton", "ended")
    status = (await alice.job("alice", "glutton"))["jobStatus"]
    assert (status["state"], status["retries"]) == ("FAILED", 0)
    assert status["appExitSpec"] is not None
    assert status["appExitSpec"]["code"] == 198
    assert "wrote more than its 0 GB" in status["appExitDiagnostics"]


async def test_what_a_container_uses_is_recorded_its_network_too_and_goes_with_the_job(
    scheduler: RunningScheduler, alice: Client, debian_image: str
) -> None:
    await alice.submit(job("measured", debian_image, {"name": "main", "command": "sleep 600"}))
    for _ in range(600):
        series = (await alice.task_metrics("alice", "measured", "main", 0))["series"]
        if series["cpuPercent"]:
            break
        await asyncio.sleep(0.1)
    for name in ("cpuPercent", "memoryMB", "netRxBytes", "netTxBytes"):
        assert len(series[name]) >= 1, name
    assert series["memoryMB"][0][1] > 0
    job_id = (await alice.job("alice", "measured"))["jobStatus"]["appId"]
    (record,) = scheduler.data_dir.glob(f"logs/*{job_id}*/usage")
    await alice.delete("alice", "measured")
    for _ in range(600):
        if not record.exists():
            return
        await asyncio.sleep(0.1)
    pytest.fail("the record outlives its job")


#: what a container has: Python without any library, and our variables
UPLOAD = """
import os, urllib.request
storage, output = os.environ["PAI_DEFAULT_FS_URI"], os.environ["PAI_OUTPUT_DIR"]
url = f"{storage}/webhdfs/v1{output.removeprefix(storage)}/result.txt?op=CREATE&data=true"
request = urllib.request.Request(url, open("result.txt", "rb"), method="PUT")
request.add_header("Authorization", "Bearer " + os.environ["PAI_STORAGE_TOKEN"])
request.add_header("Content-Type", "application/octet-stream")
print(urllib.request.urlopen(request).status)
"""


async def test_code_goes_into_containers_and_results_come_out_through_our_own_port(
    scheduler: RunningScheduler, alice: Client
) -> None:
    scheduler.put("alice/train/upload.py", UPLOAD.encode())
    scheduler.put(
        "alice/train/train.sh", b"#!/bin/sh\necho trained on $PAI_TASK_INDEX > result.txt\n", runs=True
    )
    role = {"name": "main", "command": "cd train && ls -A /pai-code/train && ./train.sh && python3 upload.py"}
    await alice.submit(
        job("with-code", "local/debian:bookworm", role, codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/train")
    )
    sentences = await events_until(alice, "with-code", "ended")
    log = (await alice.log("alice", "with-code", "main", 0)).decode()
    assert log.split() == ["train.sh", "upload.py", "201"], (sentences, log)
    assert (scheduler.data_dir / "storage/Output/alice/with-code/result.txt").read_text() == "trained on 0\n"
    token_files = [*scheduler.data_dir.glob("private/*"), *scheduler.data_dir.glob("code/[!.]*")]
    for _ in range(600):
        if not [path for path in token_files if path.exists()]:
            break
        await asyncio.sleep(0.05)
    else:
        pytest.fail(f"these stay: {token_files}")


async def test_the_documents_couplet_job_finds_its_code_where_its_command_goes(
    scheduler: RunningScheduler, alice: Client
) -> None:
    config = json.loads((JOBS / "openpai-couplet.json").read_text())
    # but for what needs the internet
    config["taskRoles"][0]["command"] = config["taskRoles"][0]["command"].partition(" && ")[2]
    scheduler.put("alice/train_couplet_demo/train.sh", b"#!/bin/sh\necho trained\n")
    scheduler.put(
        "alice/train_couplet_demo/run_samples.py",
        b"import subprocess\nsubprocess.run(['./train.sh'], check=True)\n",
    )
    await alice.submit(config)
    sentences = await events_until(alice, config["jobName"], "ended")
    log = (await alice.log("alice", config["jobName"], "demo_001", 0)).decode()
    assert log.endswith("trained\n"), (sentences, log)
