"""Jobs whose tasks go from one to the other by `ssh`, as MPI and Horovod do, in images without any SSH.

Everything is real: the service, Docker, the runtime, Open MPI, PyTorch, OpenSSH's client outside.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any
from urllib.request import ProxyHandler, build_opener

import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.fixtures import provide
from tests.testbed.images import training_image
from tests.testbed.machine import apt_install
from tests.testbed.scheduler import RunningScheduler

#: Sums up over all processes by MPI itself, whose library needs no binding for that.
ALLREDUCE = """
import ctypes, os, socket
mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
named = lambda name: ctypes.byref(ctypes.c_char.in_dll(mpi, name))
mpi.MPI_Init(None, None)
mine, total = ctypes.c_int(int(os.environ["OMPI_COMM_WORLD_RANK"]) + 1), ctypes.c_int()
mpi.MPI_Allreduce(
    ctypes.byref(mine), ctypes.byref(total), 1, named("ompi_mpi_int"), named("ompi_mpi_op_sum"),
    named("ompi_mpi_comm_world"),
)
print(f"{mine.value} of {total.value} on {socket.gethostname()} of {os.environ['PAI_JOB_NAME']}", flush=True)
mpi.MPI_Finalize()
"""

#: Trains y = 2x + 1 from two halves of the data; each process says what it learned and from which machine.
TRAIN = """
import socket, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.manual_seed(0)
dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
model = DistributedDataParallel(torch.nn.Linear(1, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.linspace(-1, 1, 200).unsqueeze(1)[rank::size]
for step in range(200):
    optimizer.zero_grad()
    loss = ((model(x) - (2 * x + 1)) ** 2).mean()
    loss.backward()
    optimizer.step()
weight, bias = model.module.weight.item(), model.module.bias.item()
print(f"{socket.gethostname()} is {rank} of {size}: y = {weight:.2f}x + {bias:.2f}", flush=True)
dist.destroy_process_group()
"""


MakeJob = Callable[..., dict[str, Any]]
#: three nodes get an image of 1.6 GB for it, which takes a minute
TRAINING_ENGINES = pytest.mark.parametrize(
    "engine", ["docker", pytest.param("swarm", marks=pytest.mark.long)], indirect=True
)


@pytest.fixture(params=["docker", "swarm"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def training(docker_host: str, engine: str, request: pytest.FixtureRequest) -> str:
    image = provide(training_image, docker_host)
    if engine == "swarm":
        request.getfixturevalue("three_nodes").load(docker_host, image)
    return image


@pytest.fixture
def scheduler(
    engine: str,
    request: pytest.FixtureRequest,
    docker_host: str,
    runtime_image: str,
    own_scheduler: Callable[..., RunningScheduler],
    monkeypatch: pytest.MonkeyPatch,
) -> RunningScheduler:
    del runtime_image  # its name is the one of this version
    if engine == "swarm":
        start: Callable[..., RunningScheduler] = request.getfixturevalue("swarm_scheduler")
        return start(cluster="registries: ['*']\n")
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    return own_scheduler("--engine", "docker", "--publish-ssh", "127.0.0.1")


@pytest.fixture
async def alice(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


@pytest.fixture
def job(engine: str) -> MakeJob:
    """Make a job of two workers with a command each; in a Swarm each is on a node of its own."""

    def make(name: str, image: str, *commands: str, **fields: Any) -> dict[str, Any]:
        first, second = commands
        command = f'if [ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" = 0 ]; then\n{first}\nelse\n{second}\nfi'
        worker = {"name": "worker", "taskNumber": 2, "command": command, "memoryMB": 2048}
        if engine == "swarm":
            worker["cpuNumber"] = os.cpu_count()
        return {"jobName": name, "image": image, "taskRoles": [worker], **fields}

    return make


async def happened(client: Client, name: str, what: str) -> None:
    """Wait until a job has an event of some kind."""
    async with asyncio.timeout(180):
        async for event in client.events("alice", name):
            if event["type"] == what:
                return


async def outcome(client: Client, config: dict[str, Any]) -> list[str]:
    """Run a job to its success; return what its tasks printed."""
    name = config["jobName"]
    await client.submit(config)
    await happened(client, name, "ended")
    printed = [(await client.log("alice", name, "worker", index)).decode() for index in range(2)]
    found = await client.job("alice", name)
    assert found["jobStatus"]["state"] == "SUCCEEDED", printed
    if config["taskRoles"][0].get("cpuNumber") is not None:
        assert len({status["node"] for status in found["taskRoles"]["worker"]["taskStatuses"]}) == 2
    return printed


async def test_tasks_reach_each_other_at_once_and_find_the_environment_of_the_other(
    alice: Client, debian_image: str, job: MakeJob
) -> None:
    ask = 'echo "$(hostname) as task $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX of $PAI_USER_NAME: $GREETING"'
    # the first command of each, whichever is there first; who is asked later is still there. (That the other
    # may leave is said in a connection of its own, as the other ends at once and takes that one along.)
    meet = (
        "ssh worker-{0} '{1}' || exit 1; ssh worker-{0} touch /tmp/asked 2>/dev/null; "
        "until [ -e /tmp/asked ]; do sleep 0.1; done"
    )
    config = job(
        "meet", debian_image, meet.format(1, ask), meet.format(0, ask), jobEnvs={"GREETING": "it is 你好"}
    )
    assert await outcome(alice, config) == [
        "worker-1 as task 1 of alice: it is 你好\n",
        "worker-0 as task 0 of alice: it is 你好\n",
    ]


@TRAINING_ENGINES
async def test_mpirun_starts_its_processes_in_all_tasks(alice: Client, training: str, job: MakeJob) -> None:
    run = (
        "! [ -e /usr/bin/ssh ] || exit 9\n"
        "mpirun --allow-run-as-root --oversubscribe -H worker-0:2,worker-1:2 -x PAI_JOB_NAME "
        "python3 /pai/allreduce.py | sort; code=$?\nssh worker-1 touch /tmp/done 2>/dev/null; exit $code"
    )
    write = f"cat > /pai/allreduce.py <<'END'\n{ALLREDUCE}\nEND"
    # (mpirun comes when the other task has its program too)
    first = f"{write}\nuntil ssh worker-1 test -e /pai/allreduce.py; do sleep 0.1; done\n{run}"
    second = f"{write}\nuntil [ -e /tmp/done ]; do sleep 0.1; done"
    assert await outcome(alice, job("mpi", training, first, second)) == [
        "1 of 10 on worker-0 of mpi\n2 of 10 on worker-0 of mpi\n"
        "3 of 10 on worker-1 of mpi\n4 of 10 on worker-1 of mpi\n",
        "",
    ]


@TRAINING_ENGINES
async def test_pytorch_trains_in_two_tasks_that_one_of_them_starts_by_ssh(
    alice: Client, training: str, job: MakeJob
) -> None:
    start = (
        "MASTER_ADDR=$PAI_HOST_IP_worker_0 MASTER_PORT=$PAI_PORT_LIST_worker_0_ddp WORLD_SIZE=2 "
        "OMP_NUM_THREADS=1 GLOO_SOCKET_IFNAME=eth0 RANK={rank} python3 /pai/train.py"
    )
    write = f"cat > /pai/train.py <<'END'\n{TRAIN}\nEND"
    first = (
        f"{write}\nuntil ssh worker-1 test -e /pai/train.py; do sleep 0.1; done\n"
        f"ssh worker-1 '{start.format(rank=1)}' > other &\n{start.format(rank=0)} && wait $! && cat other\n"
        "code=$?; ssh worker-1 touch /tmp/done 2>/dev/null; exit $code"
    )
    second = f"{write}\nuntil [ -e /tmp/done ]; do sleep 0.1; done"
    config = job("ddp", training, first, second)
    config["taskRoles"][0]["portList"] = [{"label": "ddp", "beginAt": 0, "portNumber": 1}]
    assert await outcome(alice, config) == [
        "worker-0 is 0 of 2: y = 2.00x + 1.00\nworker-1 is 1 of 2: y = 2.00x + 1.00\n",
        "",
    ]


@pytest.mark.parametrize("engine", ["docker"], indirect=True)  # (the others publish nothing)
async def test_the_documents_line_logs_into_a_task_with_the_downloaded_key(
    alice: Client, debian_image: str, tmp_path: Path, job: MakeJob
) -> None:
    apt_install({"ssh": "openssh-client"})
    await alice.submit(job("train", debian_image, "sleep 100000", "sleep 100000"))
    await happened(alice, "train", "running")
    info = await alice.ssh("alice", "train")
    key = tmp_path / info["keyPair"]["privateKeyFileName"]
    assert key.name == "alice~train"
    link = info["keyPair"]["privateKeyDirectDownloadLink"]
    download = build_opener(ProxyHandler({})).open
    key.write_bytes(await asyncio.to_thread(lambda: download(link, timeout=10).read()))
    key.chmod(0o600)
    assert [(each["task"], each["sshUser"], each["published"]) for each in info["containers"]] == [
        ("worker-0", "root", True),
        ("worker-1", "root", True),
    ]
    for each in info["containers"]:
        hosts = ("-o", "StrictHostKeyChecking=accept-new", "-o", f"UserKnownHostsFile={tmp_path / 'known'}")
        line = ("ssh", "-F", "none", *hosts, "-i", str(key), "-p", each["sshPort"], f"root@{each['sshIp']}")
        done = await asyncio.to_thread(
            subprocess.run,
            (*line, "hostname; exit 6"),
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.stdout, done.returncode) == (f"{each['task']}\n", 6), done.stderr
