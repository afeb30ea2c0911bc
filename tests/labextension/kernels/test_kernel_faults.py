"""Kernels that are jobs when something goes wrong, or is done at a time at which nothing seems to run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.testing.ports import free_port
from tests.labextension.kernels.conftest import P100, PATIENCE, TOKEN, StartServer, running, stop_all
from tests.testbed.notebook import connected
from tests.testbed.warm import WarmProcess, WarmScheduler, run_jupyterlab

#: Prints a line a second: a computation that takes its time.
COUNT = "import time\nfor n in range(8): print(n, flush=True); time.sleep(1)\nprint('done')"


async def test_a_kernel_that_needs_more_memory_than_it_has_says_so_with_the_limit(
    start_server: StartServer, alice: Client, tmp_path: Path
) -> None:
    groups = Cgroups.find(tmp_path)
    if "memory" not in groups.parents:
        # version 2 of control groups ends the task as a whole, and the job says so
        pytest.skip(str(groups.unlimited or "control groups of version 2"))
    server = start_server(memory_mb=200)
    kernel = await server.start()
    async with server.notebook(kernel) as notebook:
        await notebook.run("x = 1")
        (job,) = await running(alice)
        await notebook.begin("x = bytearray(2**30)")
        await notebook.status("restarting")
        state = await server.until(kernel, lambda state: state["deaths"] == 1 and state["phase"] == "running")
        assert state["death"] == (
            "The kernel needed more than its 200 MB of memory, and was ended. What it knew is lost; "
            "a kernel with more memory would have room."
        )
        # its task goes on, and what dies next of something else is not put down to the memory
        assert await running(alice) == [job]
        await notebook.run("import os, signal")
        await notebook.begin("os.kill(os.getpid(), signal.SIGKILL)")
        state = await server.until(kernel, lambda state: state["deaths"] == 2)
        assert state["death"] == "The kernel was ended by signal 9. What it knew is lost."


async def test_two_servers_of_a_person_see_and_find_only_their_own_kernels(
    start_server: StartServer, alice: Client
) -> None:
    names = ("/user/alice/", "/user/alice/second/")
    cpu = [{"title": "CPU", "name": "cpu", "memory_mb": 512}]
    servers = [start_server(server=name, choices=cpu) for name in names]
    # the notebook's name is the same on both
    kernels = [await server.start("pai-python3-cpu", "same.ipynb") for server in servers]
    for server, kernel, name in zip(servers, kernels, names, strict=True):
        async with server.notebook(kernel) as notebook:
            await notebook.run(f"whose = {name!r}")
    jobs = await running(alice)
    assert len(set(jobs)) == 2
    for server in servers:
        await server.close()
    assert sorted(await running(alice)) == sorted(jobs)

    for name, own in zip(names, kernels, strict=True):
        again = start_server(server=name, choices=cpu)
        assert await again.sessions() == [("same.ipynb", own)]
        assert [state["id"] for state in (await again.browser.get("/pai/kernels")).json()["kernels"]] == [own]
        async with again.notebook(own) as notebook:
            assert await notebook.run("print(whose)") == f"{name}\n"


@asynccontextmanager
async def notebook_server(folder: Path, scheduler: WarmScheduler, port: int) -> AsyncIterator[WarmProcess]:
    """Run a notebook server of alice's as a process of its own, until it is killed."""
    environment = {
        **os.environ,
        "HOME": str(folder),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "PAI_API_URL": scheduler.url,
        "PAI_TOKEN": "token-of-alice",
    }
    arguments = [
        *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={folder}"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={TOKEN}"),
        *("--PAIKernels.cpus=1", "--PAIKernels.memory_mb=1024"),
    ]
    process = WarmProcess(run_jupyterlab, arguments, environment, folder / "server.log")
    try:
        yield process
    finally:
        process.kill()
        await asyncio.to_thread(process.wait, PATIENCE)


async def answer(
    browser: httpx.AsyncClient, path: str, wanted: Callable[[Any], object], **request: Any
) -> Any:
    """Ask until the answer is as wanted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                found = await browser.request(request.get("method", "GET"), path, json=request.get("json"))
                if found.is_success and wanted(found.json()):
                    return found.json()
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)


async def test_a_kernel_computes_on_while_its_notebook_server_is_killed_and_comes_back(
    gpu_lab: WarmScheduler, alice: Client, tmp_path: Path
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    proof = tmp_path / "proof"
    compute = f"import time\nfor n in range(100): open({str(proof)!r}, 'a').write('.'); time.sleep(0.1)"
    body = {"path": "long.ipynb", "name": "long.ipynb", "type": "notebook", "kernel": {"name": P100}}
    async with httpx.AsyncClient(
        base_url=url, headers={"Authorization": f"token {TOKEN}"}, timeout=PATIENCE, trust_env=False
    ) as browser:
        async with notebook_server(tmp_path, gpu_lab, port):
            await answer(browser, "/api/kernelspecs", lambda found: P100 in found["kernelspecs"])
            session = (await browser.post("/api/sessions", json=body)).json()
            kernel = session["kernel"]["id"]
            async with connected(url, kernel, f"token {TOKEN}") as notebook:
                await notebook.begin(f"x = 42\n{compute}")
                async with asyncio.timeout(PATIENCE):
                    while not proof.exists():  # noqa: ASYNC110
                        await asyncio.sleep(0.05)
            (job,) = await running(alice)
        # killed with -9 in the middle of the cell; where it listened for the kernel nothing is in the way
        async with notebook_server(tmp_path, gpu_lab, port):
            (session,) = await answer(browser, "/api/sessions", lambda found: found)
            assert (session["path"], session["kernel"]["id"]) == ("long.ipynb", kernel)
            async with connected(url, kernel, f"token {TOKEN}") as notebook:
                assert await notebook.run("print(x)") == "42\n"
            assert proof.read_text() == "." * 100
            assert await running(alice) == [job]
    await stop_all(alice, "alice")


async def test_a_cell_prints_on_while_the_scheduler_is_killed_and_started_anew(
    start_server: StartServer, gpu_lab: WarmScheduler, alice: Client
) -> None:
    server = start_server()
    kernel = await server.start()
    async with server.notebook(kernel) as notebook:
        cell = await notebook.begin(COUNT)
        await notebook.prints(cell)
        (job,) = await running(alice)
        gpu_lab.kill()
        await asyncio.to_thread(gpu_lab.start)
        text = await notebook.printed(cell)
    assert text.endswith("done\n")
    assert [line for line in text.splitlines() if line.isdigit()] == [str(n) for n in range(1, 8)]
    state = await server.until(kernel, lambda state: state["phase"] == "running")
    assert state["deaths"] == 0
    assert await running(alice) == [job]


@pytest.mark.parametrize("action", ["interrupt", "restart"])
async def test_a_kernel_that_waits_keeps_its_place_when_what_waits_for_it_is_called_off(
    start_server: StartServer, holder: Client, alice: Client, action: str
) -> None:
    server = start_server()
    kernel = await server.start_waiting()
    (job,) = await running(alice)
    async with server.notebook(kernel) as notebook:
        await notebook.status("starting")
        cell = await notebook.begin("before = 1")
        answer = await server.browser.post(f"/api/kernels/{kernel}/{action}")
        assert answer.status_code == {"interrupt": 204, "restart": 200}[action]
        # the notebook hears that it is over, so that its cell does not wait for ever
        assert (await notebook.reply(cell))["status"] == "aborted"
        assert await notebook.printed(cell) == ""
        state = await server.state(kernel)
        assert (state["phase"], state["place"], state["deaths"]) == ("waiting", 1, 0)
        assert await running(alice) == [job]
        cell = await notebook.begin("print('before' in globals())")
        await stop_all(holder, "bob")
        assert await notebook.printed(cell) == "False\n"
    assert await running(alice) == [job]
