"""The agent as a program: what it begins with, what it says where it cannot, how it ends."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.swarm.connection import AgentConnection, AgentRefusedError, AgentUnreachableError
from pai_scheduler.engine.swarm.protocol import Open, Opened
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.testing.ports import free_port

from .small_agent import LAB

NO_DOCKER = "unix:///nowhere/docker.sock"


async def begin(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "pai_scheduler.engine.agent", "--listen", "127.0.0.1", *arguments),
        stderr=asyncio.subprocess.PIPE,
    )


async def refused(*arguments: str) -> str:
    """Begin one that cannot; return its last line."""
    agent = await begin(*arguments)
    async with asyncio.timeout(60):
        _, said = await agent.communicate()
    assert agent.returncode == 2
    assert b"Traceback" not in said
    return said.decode().splitlines()[-1]


@pytest.fixture
def credentials(tmp_path: Path) -> Path:
    return LAB.agent().write(tmp_path / "credentials")


async def test_it_answers_schedulers_of_its_authority_and_ends_when_it_is_told_to(
    tmp_path: Path, credentials: Path
) -> None:
    port, folder = free_port(), tmp_path / "agent"
    options = ("--port", str(port), "--folder", str(folder), "--credentials", str(credentials))
    agent = await begin(*options, "--docker", NO_DOCKER)
    assert agent.stderr is not None
    connection = AgentConnection("127.0.0.1", port, scheduler_tls(LAB.scheduler().write(tmp_path / "ours")))
    await connection.open()
    try:
        async with asyncio.timeout(60):
            while f"listening at port {port}" not in (await agent.stderr.readline()).decode():
                assert agent.returncode is None
        # which Docker it has, it finds out for each scheduler that comes
        with pytest.raises(AgentRefusedError, match="nowhere"):
            await connection.call("open", Open("0123456789abcdef", LogKeeping()), Opened)
        assert folder.is_dir()
        agent.send_signal(signal.SIGTERM)
        async with asyncio.timeout(60):
            _, said = await agent.communicate()
        assert (agent.returncode, b"Traceback" in said) == (0, False)
        with pytest.raises(AgentUnreachableError):
            await connection.call("open", Open("0123456789abcdef", LogKeeping()), Opened)
    finally:
        await connection.close()
        if agent.returncode is None:
            agent.kill()
            await agent.wait()


async def test_credentials_that_are_missing_or_none_are_named(tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    for content in (None, "no PEM"):
        if content is not None:
            file.write_text(content)
        line = await refused("--credentials", str(file), "--folder", str(tmp_path / "agent"))
        assert f"The credentials cannot be used (--credentials {file}): " in line
    assert not (tmp_path / "agent").exists()


async def test_a_port_that_is_taken_is_named(tmp_path: Path, credentials: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = await refused("--credentials", str(credentials), "--port", port, "--folder", str(tmp_path))
    assert f"Nobody can listen at 127.0.0.1, port {port}: " in line


async def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, credentials: Path) -> None:
    (tmp_path / "file").touch()
    folder = str(tmp_path / "file" / "agent")
    line = await refused("--credentials", str(credentials), "--port", str(free_port()), "--folder", folder)
    assert f"The folder {folder} cannot be used (--folder): " in line
