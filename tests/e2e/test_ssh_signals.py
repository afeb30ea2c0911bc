"""Signals that a client sends over SSH reach what its session runs in a container, and nothing else there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from itertools import count
from typing import Any

import asyncssh
import paramiko
import pytest
from paramiko.common import cMSG_CHANNEL_REQUEST

from tests.testbed.fixtures import provide
from tests.testbed.odd_images import NAMELESS, odd_images

from .ssh_house import PATIENCE, House, eventually

#: the last part of an address for each connection whose events are counted
_ADDRESSES = count(1)
#: says what it hears, and ends by it; what it started ends with it
COMMAND = "trap 'echo got TERM; exit 7' TERM; sleep 5811 & echo up; wait; echo no"


@pytest.fixture(scope="module", params=["root", "uid 1000"])
def login(
    house: House, request: pytest.FixtureRequest, docker_host: str, runtime_image: str
) -> Iterator[str]:
    """Return a task whose image runs as root, and one of an image that runs as somebody without a name."""
    if request.param == "root":
        yield "alice+train+worker-0"
        return
    provide(lambda: odd_images(docker_host, runtime_image, [NAMELESS]))
    role = {
        "name": "worker",
        "taskNumber": 1,
        "command": "exec sleep 100000",
        "memoryMB": 256,
        "cpuNumber": 1,
    }
    house.begin("alice", {"jobName": "nobody", "image": NAMELESS, "taskRoles": [role]})
    yield "alice+nobody+worker-0"
    house.end("alice", "nobody")


def connect(
    house: House, login: str, address: str = "127.0.0.1"
) -> AbstractAsyncContextManager[asyncssh.SSHClientConnection]:
    return asyncssh.connect(
        "127.0.0.1", house.port, local_addr=(address, 0), username=login,
        client_keys=[str(house.key("alice", login.split("+")[1]))],
        known_hosts=str(house.known), config=None, agent_path=None,
    )  # fmt: skip


@pytest.mark.parametrize("terminal", [None, "xterm"])
async def test_a_signal_reaches_what_a_session_runs_and_leaves_the_rest(
    house: House, login: str, terminal: str | None
) -> None:
    job = login.split("+")[1]
    container = house.container("alice", job)
    command = "http.server" if job == "train" else "sleep 100000"
    # an address of its own: the gateway tells of an end when it has noticed it, so that those of tests before
    # this one may still come
    address = f"127.0.5.{next(_ADDRESSES)}"
    async with connect(house, login, address) as connection:
        process = await connection.create_process(COMMAND, term_type=terminal)
        other = await connection.create_process("echo up; exec sleep 5822", term_type=terminal)
        for each in (process, other):
            assert (await each.stdout.readline()).strip() == "up"
        # those that it does not know are nobody's
        process.send_signal("NONE")
        process.send_signal("TERM; kill -KILL -1")
        process.send_signal("TERM")
        ended = await process.wait(timeout=PATIENCE)
        assert isinstance(ended.stdout, str)
        assert (ended.stdout.splitlines()[-1], ended.exit_status) == ("got TERM", 7)
        eventually(lambda: not house.running(container, "sleep 5811"), "what it started has ended")
        assert house.running(container, "sleep 5822")
        assert house.running(container, command)
        other.kill()
        killed = await other.wait(timeout=PATIENCE)
        # (without a terminal a program stands between, which ends with the code that shells have for it)
        assert killed.exit_status == 128 + 9 or killed.exit_signal is not None
        assert house.running(container, command)
    assert house.state("alice", job) == "RUNNING"

    def told() -> list[str]:
        return [event for event in house.access_events("alice", job) if f"from {address}" in event]

    eventually(lambda: any(" left " in event for event in told()), "job events for begin and end")
    assert [" opened " in event for event in told()] == [True, False]


def test_paramiko_sends_them_too(house: House, login: str) -> None:
    client = paramiko.SSHClient()
    client.load_host_keys(str(house.known))
    client.set_missing_host_key_policy(paramiko.RejectPolicy())
    client.connect(
        "127.0.0.1", house.port, login, key_filename=str(house.key("alice", login.split("+")[1])),
        look_for_keys=False, allow_agent=False, timeout=PATIENCE,
    )  # fmt: skip
    try:
        _, stdout, _ = client.exec_command(COMMAND, timeout=PATIENCE)
        assert stdout.readline() == "up\n"
        # which Paramiko has no method for
        request = paramiko.Message()
        request.add_byte(cMSG_CHANNEL_REQUEST)
        request.add_int(stdout.channel.remote_chanid)
        request.add_string("signal")
        request.add_boolean(False)
        request.add_string("TERM")
        transport: Any = stdout.channel.transport
        transport._send_user_message(request)
        assert stdout.read() == b"got TERM\n"
        assert stdout.channel.recv_exit_status() == 7
    finally:
        client.close()
