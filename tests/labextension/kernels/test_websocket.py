"""Notebooks that stay connected while their kernel waits, dies and comes back, before a real scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pai_labextension.kernels.channels import KernelChannels, OpenChannel
from pai_labextension.kernels.websocket import JobKernelConnection
from pai_scheduler.client.rest import Client
from tests.labextension.kernels.conftest import PATIENCE, NotebookServer, StartServer, stop_all
from tests.testbed.notebook import Notebook


class Overheard:
    """Reads of a kernel's channel, and notices its first answer."""

    def __init__(self, reader: Any, replied: asyncio.Event) -> None:
        self._reader, self._replied = reader, replied

    async def read(self, size: int) -> bytes:
        data: bytes = await self._reader.read(size)
        if b"_reply" in data:
            self._replied.set()
        return data


@pytest.fixture
def output_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the channel for output come when another one has brought an answer.

    They are connections of their own, which come back in any order.
    """
    let_through = KernelChannels.open

    def let_through_late(channels: KernelChannels, ports: Mapping[str, int], through: OpenChannel) -> None:
        replied = asyncio.Event()

        async def open_channel(host: str, port: int) -> tuple[Any, Any]:
            if port == ports["iopub_port"]:
                await replied.wait()
            reader, writer = await through(host, port)
            return Overheard(reader, replied), writer

        let_through(channels, ports, open_channel)

    monkeypatch.setattr(KernelChannels, "open", let_through_late)


@asynccontextmanager
async def restarting(server: NotebookServer, kernel: str) -> AsyncIterator[Notebook]:
    """Connect a notebook whose kernel has died just now."""
    async with server.notebook(kernel) as notebook:
        await notebook.run("import os, signal")
        await notebook.begin("os.kill(os.getpid(), signal.SIGKILL)")
        await notebook.status("restarting")
        yield notebook


@pytest.mark.usefixtures("output_last")
async def test_what_a_kernel_prints_first_after_its_death_is_shown(start_server: StartServer) -> None:
    server = start_server()
    kernel = await server.start()
    async with restarting(server, kernel) as notebook:
        assert await notebook.run("print('first')") == "first\n"
        assert await notebook.run("print('second')") == "second\n"


async def test_a_cell_that_waits_for_its_kernel_to_come_back_runs_though_its_notebook_is_closed(
    start_server: StartServer, tmp_path: Path
) -> None:
    server = start_server()
    kernel = await server.start()
    proof = tmp_path / "ran"
    async with restarting(server, kernel) as notebook:
        await notebook.begin(f"open({str(proof)!r}, 'x')")
    async with server.notebook(kernel) as notebook:
        await notebook.run("pass")
    await exists(proof)


async def exists(proof: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while not proof.exists():  # noqa: ASYNC110 - nobody is there who could be told
            await asyncio.sleep(0.05)


async def test_a_cell_that_waits_in_the_queue_runs_though_its_notebook_is_closed(
    start_server: StartServer, holder: Client, tmp_path: Path
) -> None:
    server = start_server()
    kernel = await server.start_waiting()
    proof = tmp_path / "ran"
    async with server.notebook(kernel) as notebook:
        await notebook.status("starting")
        await notebook.begin(f"x = open({str(proof)!r}, 'x')")
    await stop_all(holder, "bob")
    await exists(proof)
    # the notebook is opened again, and has what was made without it
    async with server.notebook(kernel) as notebook:
        assert await notebook.run("print(x.name)") == f"{proof}\n"
    again: Any = server.kernels.get_kernel(kernel)
    assert again.execution_state == "idle"


async def test_a_notebook_whose_kernel_was_idle_for_too_long_hears_of_no_restart(
    start_server: StartServer,
) -> None:
    server = start_server(idle_minutes=0.05)
    kernel = await server.start()
    states = []
    async with server.notebook(kernel) as notebook, asyncio.timeout(PATIENCE):
        while "dead" not in states:
            said = await notebook.hear()
            if said["msg_type"] == "status":
                states.append(said["content"]["execution_state"])
    assert "restarting" not in states


@pytest.mark.usefixtures("holder")
async def test_nothing_is_left_of_a_closed_notebook_whose_kernel_was_cancelled(
    start_server: StartServer,
) -> None:
    server = start_server()
    kernel = await server.start_waiting()
    async with server.notebook(kernel) as notebook:
        await notebook.status("starting")
        await notebook.begin("print('never')")
    assert (await server.browser.delete(f"/api/kernels/{kernel}")).status_code == 204
    async with asyncio.timeout(PATIENCE):
        while any(kernel in session for session in JobKernelConnection._open_sessions):  # noqa: ASYNC110
            await asyncio.sleep(0.05)


@pytest.mark.usefixtures("holder")
async def test_a_notebook_whose_kernel_ends_before_its_turn_hears_that_it_is_dead(
    start_server: StartServer, alice: Client
) -> None:
    server = start_server()
    kernel = await server.start_waiting()
    async with server.notebook(kernel) as notebook:
        await notebook.status("starting")
        await notebook.begin("print('never')")
        await stop_all(alice, "alice")
        await notebook.status("dead")
