"""A notebook server without a GPU, and a kernel with one, behind a real Hub with its tasks in Docker."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.hub import PATIENCE, Hub, wait_for

P100 = "pai-python3-1-p100"


def server(hub: Hub, method: str, path: str, **options: Any) -> Any:
    """Ask alice's server."""
    return hub.api("alice", method, f"../../user/alice/{path}", **options)


def start_kernel(hub: Hub, path: str) -> str:
    wait_for(
        lambda: P100 in server(hub, "GET", "api/kernelspecs").json()["kernelspecs"], "the kernel's offer"
    )
    body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": P100}}
    answer = server(hub, "POST", "api/sessions", json=body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["kernel"]["id"])


async def run_cell(hub: Hub, kernel: str, cell: str) -> str:
    """Run a cell; return what it printed."""
    request = uuid4().hex
    url = f"{hub.url.replace('http', 'ws', 1)}/user/alice/api/kernels/{kernel}/channels?session_id={request}"
    headers = {"Authorization": f"Bearer {hub.token('alice')}"}
    connection = await websocket_connect(HTTPRequest(url, headers=headers))
    header = {"msg_id": request, "msg_type": "execute_request", "session": request, "version": "5.3"}
    content = {"code": cell, "silent": False, "store_history": False, "allow_stdin": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    await connection.write_message(json.dumps(message))
    printed = ""
    async with asyncio.timeout(PATIENCE):
        while (said := await connection.read_message()) is not None:
            answer = json.loads(said)
            if answer["parent_header"].get("msg_id") != request:
                continue
            content = answer["content"]
            printed += content.get("text", "") + "\n".join(content.get("traceback", []))
            if answer["msg_type"] == "status" and content["execution_state"] == "idle":
                break
    connection.close()
    return printed


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
