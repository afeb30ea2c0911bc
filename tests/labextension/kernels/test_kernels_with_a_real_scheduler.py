"""Kernels that are jobs: a notebook server, a scheduler, its SSH gateway and ipykernel, as in a lab."""

from __future__ import annotations

import asyncio
from pathlib import Path

import psutil
import pytest

from pai_scheduler.client.rest import Client
from tests.labextension.kernels.conftest import P100, PATIENCE, NotebookServer, StartServer, running, stop_all
from tests.testbed.warm import WarmScheduler


async def test_a_kernel_gets_its_gpu_from_the_scheduler_and_is_as_any_other(
    start_server: StartServer, alice: Client
) -> None:
    server = start_server(idle_minutes=10)
    titles = await server.offers(lambda titles: P100 in titles)
    assert titles[P100] == "Python 3 on 1 × P100 (simulated)"
    kernel = await server.start(path="work.ipynb")
    async with server.notebook(kernel) as notebook:
        await notebook.run("import os; env = os.environ")
        home = server.app.root_dir
        shown = await notebook.run("print(env['CUDA_VISIBLE_DEVICES'], os.getcwd(), env['JPY_SESSION_NAME'])")
        assert shown == f"2 {home} {home}/work.ipynb\n"
        # who the person is goes along, so that the scheduler can be asked from there
        assert await notebook.run("print(os.environ['PAI_JOB_NAME'][:7])") == "kernel_\n"

        forever = await notebook.begin("import time\nprint('on')\nwhile True: time.sleep(0.01)")
        # (an interrupt that comes before the code runs is lost, as in any notebook)
        await notebook.prints(forever)
        assert (await server.browser.post(f"/api/kernels/{kernel}/interrupt")).status_code == 204
        assert await notebook.printed(forever) == "KeyboardInterrupt"

        # who wants it longer says so
        await server.until(kernel, lambda state: (state.get("idleLeft") or 600) < 599)
        assert (await server.browser.post(f"/pai/kernels/{kernel}/keep")).status_code == 204
        await server.until(kernel, lambda state: state["idleLeft"] == 600)

        # its job says nothing of the kernel's key or the person's token
        (job,) = await running(alice)
        config = str(await alice.config("alice", job))
        assert server.kernels.get_kernel(kernel).session.key.decode() not in config
        assert "token-of-alice" not in config

        await notebook.run("x = 5")
        assert (await server.browser.post(f"/api/kernels/{kernel}/restart")).status_code == 200
    # JupyterLab connects anew, too
    async with server.notebook(kernel) as notebook:
        assert await notebook.run("print('x' in globals())") == "False\n"
        # the task was kept, and the GPU with it
        assert await running(alice) == [job]
    assert (await server.browser.delete(f"/api/kernels/{kernel}")).status_code == 204
    await until_state(alice, job, "SUCCEEDED")


async def until_state(client: Client, job: str, state: str) -> None:
    async with asyncio.timeout(PATIENCE):
        async for _ in client.events("alice", job):
            pass
    assert (await client.job("alice", job))["jobStatus"]["state"] == state


async def test_a_notebook_waits_with_the_reason_and_runs_its_cells_when_it_is_its_turn(
    start_server: StartServer, holder: Client
) -> None:
    server = start_server()
    kernel = await server.start_waiting()
    state = await server.state(kernel)
    assert state["phase"] == "waiting"
    assert "asks for 1 × P100, none is free" in state["reason"]
    async with server.notebook(kernel) as notebook:
        await notebook.status("starting")
        first, second = await notebook.begin("x = 3"), await notebook.begin("print(x * 2)")
        await stop_all(holder, "bob")
        assert await notebook.printed(first) == ""
        assert await notebook.printed(second) == "6\n"
    assert (await server.state(kernel))["phase"] == "running"


@pytest.mark.usefixtures("holder")
async def test_a_kernel_that_waits_says_why_in_the_readers_language_and_can_be_cancelled(
    start_server: StartServer, alice: Client
) -> None:
    server = start_server()
    kernel = await server.start()
    server.browser.headers["Accept-Language"] = "zh-CN"
    state = await server.until(kernel, lambda state: "排" in state["reason"])
    assert (state["phase"], state["place"]) == ("waiting", 1)
    (job,) = await running(alice)
    assert (await server.browser.delete(f"/api/kernels/{kernel}")).status_code == 204
    await until_state(alice, job, "STOPPED")
    assert await server.state(kernel) == {}


async def test_a_kernel_that_can_never_be_is_refused_with_the_reason(start_server: StartServer) -> None:
    server = start_server(choices=[{"title": "much", "name": "much", "memory_mb": 10_000_000}])
    await server.offers(lambda titles: "pai-python3-much" in titles)
    answer = await server.try_to_start("pai-python3-much")
    assert answer.status_code == 500
    assert "never" in answer.json()["message"].lower() or "at most" in answer.json()["message"].lower()
    assert (await server.browser.get("/api/kernels")).json() == []


async def test_a_kernel_outlives_the_notebook_server_with_all_that_it_knows(
    start_server: StartServer, alice: Client
) -> None:
    server = start_server()
    kernel = await server.start(path="long.ipynb")
    async with server.notebook(kernel) as notebook:
        await notebook.run("x = 42")
    (job,) = await running(alice)
    await server.close()
    assert await running(alice) == [job]

    again = start_server()
    assert await again.sessions() == [("long.ipynb", kernel)]
    async with again.notebook(kernel) as notebook:
        assert await notebook.run("print(x)") == "42\n"
    assert await running(alice) == [job]


async def test_when_the_gateway_dies_the_kernel_runs_on_and_is_connected_again(
    start_server: StartServer, gpu_lab: WarmScheduler
) -> None:
    server = start_server()
    kernel = await server.start()
    async with server.notebook(kernel) as notebook:
        await notebook.run("x = 7")
        gateways = [
            process
            for process in psutil.Process(gpu_lab.process.pid).children()
            if "pai_scheduler.ssh.gateway" in process.cmdline()
        ]
        assert gateways
        for process in gateways:
            process.kill()
        await server.until(kernel, lambda state: state["phase"] != "running")
        await server.until(kernel, lambda state: state["phase"] == "running")
    async with server.notebook(kernel) as notebook:
        assert await notebook.run("print(x)") == "7\n"
    assert (await server.state(kernel))["deaths"] == 0


async def test_a_kernel_that_waits_is_found_again_too(start_server: StartServer, holder: Client) -> None:
    server = start_server()
    kernel = await server.start()
    await server.until(kernel, lambda state: state.get("phase") == "waiting")
    await server.close()

    again = start_server()
    assert [one["id"] for one in (await again.browser.get("/api/kernels")).json()] == [kernel]
    async with again.notebook(kernel) as notebook:
        cell = await notebook.begin("print('at last')")
        await stop_all(holder, "bob")
        assert await notebook.printed(cell) == "at last\n"


async def test_a_kernel_that_dies_is_started_again_in_its_task_and_says_why_it_died(
    start_server: StartServer, alice: Client
) -> None:
    server = start_server()
    kernel = await server.start()
    async with server.notebook(kernel) as notebook:
        await notebook.run("import os, signal")
        (job,) = await running(alice)
        await notebook.begin("os.kill(os.getpid(), signal.SIGSEGV)")
        await notebook.status("restarting")
        state = await server.until(kernel, lambda state: state["deaths"] == 1 and state["phase"] == "running")
        assert state["death"] == "The kernel was ended by signal 11. What it knew is lost."
    async with server.notebook(kernel) as notebook:
        assert await notebook.run("print('back')") == "back\n"
    assert await running(alice) == [job]


async def test_a_kernel_whose_job_was_stopped_is_dead_and_says_so(
    start_server: StartServer, alice: Client
) -> None:
    server = start_server()
    kernel = await server.start()
    async with server.notebook(kernel) as notebook:
        await notebook.run("x = 1")
        await stop_all(alice, "alice")
        await notebook.status("dead")
    state = await server.until(kernel, lambda state: state.get("phase") == "ended")
    assert state["reason"] == "The job of this kernel was stopped."
    # nothing takes its place by itself: the notebook asks for another one
    assert await running(alice) == []
    other = await server.start()
    async with server.notebook(other) as notebook:
        assert await notebook.run("print('new')") == "new\n"


@pytest.mark.parametrize("server_stays", [True, False])
async def test_an_idle_kernel_gives_its_gpu_back_whether_the_server_is_there_or_not(
    start_server: StartServer, alice: Client, server_stays: bool
) -> None:
    server = start_server(idle_minutes=0.1)
    kernel = await server.start()
    async with server.notebook(kernel) as notebook:
        # work counts, however long it takes
        assert await notebook.run("import time; time.sleep(8); print('done')") == "done\n"
    (job,) = await running(alice)
    if not server_stays:
        await server.close()
    await until_state(alice, job, "SUCCEEDED")
    if server_stays:
        state = await server.until(kernel, lambda state: state.get("phase") == "ended")
        assert state["reason"].startswith("Nobody used this kernel for 1 minute: it has ended")
        server.browser.headers["Accept-Language"] = "zh-CN"
        assert (await server.state(kernel))["reason"].startswith("此内核已有 1 分钟无人使用：它已结束")
    assert b"Nobody has used the kernel for 6 s" in await alice.log("alice", job, "kernel", 0)


@pytest.mark.usefixtures("start_server")
async def test_without_a_scheduler_only_the_kernels_of_this_machine_are_offered(tmp_path: Path) -> None:
    server = NotebookServer(tmp_path, "http://127.0.0.1:9")
    try:
        assert list((await server.browser.get("/api/kernelspecs")).json()["kernelspecs"]) == ["python3"]
        assert (await server.browser.get("/api/kernels")).json() == []
    finally:
        await server.close()
