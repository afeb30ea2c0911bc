"""A notebook server without a GPU, and a kernel with one, behind a real Hub with its tasks in Docker."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.hub import Hub, wait_for
from tests.testbed.images import build_image
from tests.testbed.notebook import connected

P100 = "pai-python3-1-p100"


def server(hub: Hub, method: str, path: str, **options: Any) -> Any:
    """Ask alice's server."""
    return hub.api("alice", method, f"../../user/alice/{path}", **options)


def start_kernel(hub: Hub, path: str, name: str = P100) -> str:
    wait_for(
        lambda: name in server(hub, "GET", "api/kernelspecs").json()["kernelspecs"], "the kernel's offer"
    )
    body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": name}}
    answer = server(hub, "POST", "api/sessions", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["kernel"]["id"])


async def run_cell(hub: Hub, kernel: str, cell: str) -> str:
    """Run a cell; return what it printed."""
    address = f"{hub.url}/user/alice"
    async with connected(address, kernel, f"Bearer {hub.token('alice')}") as notebook:
        return await notebook.run(cell)


@pytest.mark.parametrize("engine", ["docker"])
def test_a_kernel_with_a_gpu_has_the_servers_files_and_outlives_the_server(hub: Hub, engine: str) -> None:
    del engine  # of the Hub
    assert hub.start_server("alice", {"memory_mb": 1024}).is_success
    hub.wait_ready("alice")
    (own,) = hub.running_jobs("alice")
    assert own["totalGpuNumber"] == 0

    kernel = start_kernel(hub, "work.ipynb")
    cell = "import os; print(os.environ['CUDA_VISIBLE_DEVICES'], os.getcwd(), os.environ['HOME']); x = 42"
    assert asyncio.run(run_cell(hub, kernel, cell)).split() == [
        "simulated-node-a-2",
        "/home/jovyan",
        "/home/jovyan",
    ]
    # the same files, and the same person
    asyncio.run(run_cell(hub, kernel, "open('made.txt', 'w').write('by the kernel')"))
    assert server(hub, "GET", "api/contents/made.txt").json()["content"] == "by the kernel"
    cell = "from pai_scheduler.client import Client; print((await Client().whoami())['username'])"
    assert asyncio.run(run_cell(hub, kernel, cell)) == "alice\n"

    hub.stop_server("alice")
    (job,) = hub.running_jobs("alice")
    assert job["name"].startswith("kernel_")
    assert hub.start_server("alice", {"memory_mb": 1024}).is_success
    hub.wait_ready("alice")
    (session,) = server(hub, "GET", "api/sessions").json()
    assert (session["path"], session["kernel"]["id"]) == ("work.ipynb", kernel)
    assert asyncio.run(run_cell(hub, kernel, "print(x)")) == "42\n"

    assert server(hub, "DELETE", f"api/kernels/{kernel}").status_code == 204
    wait_for(lambda: len(hub.running_jobs("alice")) == 1, "the kernel's GPU to be free")


async def run_out_of_memory(hub: Hub, kernel: str) -> None:
    address = f"{hub.url}/user/alice"
    async with connected(address, kernel, f"Bearer {hub.token('alice')}") as notebook:
        await notebook.begin("hog = bytearray(2**30)")
        await notebook.status("restarting")


@pytest.mark.parametrize("engine", ["docker"])
def test_a_kernel_in_another_image_has_the_servers_files_and_its_own_memory(
    hub: Hub, engine: str, docker_host: str, notebook_image: str
) -> None:
    del engine  # of the Hub
    other = "local/notebook-with-more"
    build_image(
        docker_host, other, {"Dockerfile": f"FROM {notebook_image}\nENV MORE=there PYTHONPATH=\n".encode()}
    )
    assert hub.start_server("alice", {"memory_mb": 1024}).is_success
    hub.wait_ready("alice")
    spec = {
        "argv": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Another image",
        "language": "python",
        "metadata": {
            "kernel_provisioner": {
                "provisioner_name": "pai-provisioner",
                "config": {"image": other, "memory_mb": 256, "shm_mb": 64, "cpus": 1},
            }
        },
    }
    beside = start_kernel(hub, "beside.ipynb", "python3")
    folder = "os.path.expanduser('~/.local/share/jupyter/kernels/another')"
    write = f"open('kernel.json', 'w').write({json.dumps(spec)!r})"
    cell = (
        f"import os; os.makedirs({folder}); open('seen.txt', 'w').write('same'); os.chdir({folder}); {write}"
    )
    asyncio.run(run_cell(hub, beside, cell))

    kernel = start_kernel(hub, "work.ipynb", "another")
    cell = "import os; print(os.environ['MORE'], os.getcwd(), open('seen.txt').read())"
    assert asyncio.run(run_cell(hub, kernel, cell)).split() == ["there", "/home/jovyan", "same"]

    def told() -> str:
        states = server(hub, "GET", "pai/kernels").json()["kernels"]
        return next(str(state["death"] or state["reason"]) for state in states if state["id"] == kernel)

    asyncio.run(run_out_of_memory(hub, kernel))
    wait_for(lambda: "more than its 256 MB of memory" in told(), "the kernel to say why it died", told)
    # its task goes on
    assert asyncio.run(run_cell(hub, kernel, "print('back')")) == "back\n"
