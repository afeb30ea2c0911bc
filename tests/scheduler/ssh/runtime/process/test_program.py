"""The program, as the supervisor starts it: what it says to clients of the task."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from pai_scheduler.engine.process import ssh_server
from pai_scheduler.testing.lab import eventually
from pai_scheduler.testing.ports import free_port
from tests.scheduler.ssh.runtime.process.test_task import make

PROGRAM = [sys.executable, "-m", "pai_scheduler.ssh.runtime.process"]


@pytest.fixture
def port() -> int:
    return free_port()


async def test_it_says_where_it_listens_and_a_second_one_goes_at_once(tmp_path: Path, port: int) -> None:
    make(tmp_path, ssh_port=port)
    process = await asyncio.create_subprocess_exec(*PROGRAM, str(tmp_path))
    try:
        await eventually(lambda: ssh_server.look(tmp_path) == (True, {"port": port}), "it listens")
        second = await asyncio.create_subprocess_exec(*PROGRAM, str(tmp_path))
        assert await second.wait() == 0
        assert ssh_server.look(tmp_path) == (True, {"port": port})
        process.terminate()
        assert await process.wait() == 0
        assert not ssh_server.look(tmp_path).alive
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_a_port_that_another_program_has_is_its_problem(tmp_path: Path, port: int) -> None:
    make(tmp_path, ssh_port=port)
    with socket.create_server(("127.0.0.1", port)):
        subprocess.run([*PROGRAM, str(tmp_path)], timeout=60, check=True)
    told = ssh_server.look(tmp_path)
    assert not told.alive
    assert told.answer == {"problem": "Address already in use", "taken": True}


def test_what_else_is_wrong_is_told_in_a_line(tmp_path: Path, port: int) -> None:
    make(tmp_path, ssh_port=port)
    (tmp_path / "private" / "ssh_host_key").write_text("no key")
    subprocess.run([*PROGRAM, str(tmp_path)], timeout=60, check=True)
    told = ssh_server.look(tmp_path).answer
    assert "key" in told["problem"]
    assert "\n" not in told["problem"]
