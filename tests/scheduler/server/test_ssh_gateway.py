"""The SSH gateway as a scheduler runs it, entered with OpenSSH's own client; and options that cannot be."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.server.main import main
from tests.testbed.machine import apt_install
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler


@pytest.fixture(scope="module", autouse=True)
def _ssh() -> None:
    apt_install({"ssh": "openssh-client"})


@pytest.fixture
async def scheduler(tmp_path: Path) -> AsyncIterator[RunningScheduler]:
    running = await asyncio.to_thread(WarmScheduler, tmp_path, "--ssh-processes", "1", ssh=True)
    yield running
    await asyncio.to_thread(running.close)


async def begin(client: Client, name: str) -> None:
    await client.submit(hello_job(name, "exec sleep 1000"))
    async for event in client.events("alice", name):
        if event["type"] == "running":
            return


async def ssh(folder: Path, user: str, info: Any, command: str) -> tuple[int, str]:
    """Log in with the key in `folder` and the known gateway; give exit code and output."""
    known = folder / "known_hosts"
    known.write_text(f"[127.0.0.1]:{info['gateway']['port']} {info['gateway']['hostKey']}\n")
    process = await asyncio.create_subprocess_exec(
        "ssh",
        *("-F", "none", "-i", str(folder / "key"), "-o", "IdentitiesOnly=yes", "-o", "BatchMode=yes"),
        *("-o", f"UserKnownHostsFile={known}", "-o", "StrictHostKeyChecking=yes"),
        *("-p", str(info["gateway"]["port"]), f"{user}@127.0.0.1", command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def save_key(client: Client, folder: Path, name: str) -> None:
    (folder / "key").write_text(await client.ssh_key("alice", name))
    (folder / "key").chmod(0o600)


async def test_a_user_logs_into_a_task_with_the_downloaded_key_and_job_events_say_so(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        await begin(alice, "one")
        info = await alice.ssh("alice", "one")
        about = await alice.about()
        assert about["ssh"] == info["gateway"]
        await save_key(alice, tmp_path, "one")
        code, output = await ssh(
            tmp_path, "alice+one+main-0", info, "echo $PAI_JOB_NAME $PAI_TASK_INDEX; exit 7"
        )
        assert (code, output) == (7, "one 0\n")
        async for event in alice.events("alice", "one"):
            if event["type"] == "access" and event["data"]["event"] == "closed":
                break
        events = [
            told["message"] for told in await alice.list_events("alice", "one") if told["type"] == "access"
        ]
        assert events[0] == "alice opened a command in main-0 from 127.0.0.1 (the job's key)."
        assert events[1].startswith("alice left main-0 after ")


async def test_the_key_of_a_job_opens_no_other_and_not_after_its_end(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        await begin(alice, "one")
        await begin(alice, "two")
        info = await alice.ssh("alice", "one")
        await save_key(alice, tmp_path, "one")
        assert (await ssh(tmp_path, "alice+one", info, "true"))[0] == 0
        for user in ("alice+two", "bob", "root", "alice+..+etc"):
            code, output = await ssh(tmp_path, user, info, "true")
            assert code == 255
            assert "Permission denied" in output
        await alice.stop("alice", "one")
        async for _ in alice.events("alice", "one"):
            pass
        assert "Permission denied" in (await ssh(tmp_path, "alice+one", info, "true"))[1]


async def test_the_gateway_is_known_by_the_same_key_after_kill_9_of_the_scheduler(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        await begin(alice, "one")
        await save_key(alice, tmp_path, "one")
        before = (await alice.about())["ssh"]
        scheduler.kill()
        await asyncio.to_thread(scheduler.start)
        after = (await alice.about())["ssh"]
        assert before is not None
        assert after is not None
        assert after["hostKey"] == before["hostKey"]
        assert (await ssh(tmp_path, "alice+one", await alice.ssh("alice", "one"), "true"))[0] == 0


async def test_without_a_gateway_it_is_said_that_there_is_none(
    own_scheduler: Callable[..., RunningScheduler],
) -> None:
    running = await asyncio.to_thread(own_scheduler)
    async with Client(running.url, "token-of-alice") as alice:
        assert (await alice.about())["ssh"] is None
        await begin(alice, "one")
        (container,) = (await alice.ssh("alice", "one"))["containers"]
        assert container["off"] == "This scheduler has no SSH gateway."


def started(tmp_path: Path, *options: str) -> int:
    (tmp_path / "tokens.json").write_text('{"t": {"name": "a"}}')
    place = ("--data-dir", str(tmp_path / "data"), "--port", "0", "--tokens", str(tmp_path / "tokens.json"))
    return main([*place, *options])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--ssh-host", "::"), "listens on this machine only"),
        (("--ssh-host", "192.0.2.1"), "listens on this machine only"),
        (("--publish-ssh", "127.0.0.1"), "is for --engine docker"),
        (("--ssh-port", "65536"), "--ssh-port must be from 0 to 65535"),
        (("--ssh-processes", "0"), "--ssh-processes must be from 1 to"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert started(tmp_path, *options) == 2
    assert said in capsys.readouterr().err


def test_a_port_that_was_asked_for_and_is_taken_keeps_it_from_starting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert started(tmp_path, "--ssh-port", str(port)) == 2
    assert f"port {port}: it is taken. Choose another with --ssh-port" in capsys.readouterr().err


def test_a_scheduler_that_is_told_to_end_leaves_no_gateway_behind(scheduler: RunningScheduler) -> None:
    # it is ready a moment before the gateway has its process
    while not (gateways := children(scheduler.process.pid)):
        time.sleep(0.05)
    (gateway,) = gateways
    scheduler.terminate()
    assert select.select([gateway], [], [], 30)[0], "the gateway is still there"
    os.close(gateway)


def children(pid: int) -> list[int]:
    """Return descriptors of the processes of a scheduler's gateway, readable once they have ended."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    gateways = [
        one for one in listed if b"pai_scheduler.ssh.gateway" in Path(f"/proc/{one}/cmdline").read_bytes()
    ]
    return [os.pidfd_open(int(one)) for one in gateways]
