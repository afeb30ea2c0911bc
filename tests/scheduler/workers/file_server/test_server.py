"""The file servers of a real scheduler: what goes through them, and what becomes of it when one dies."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import pytest

from tests.scheduler.workers.file_server.clients import Files, is_file_server
from tests.testbed.scheduler import RunningScheduler

MB = 2**20
CREATE, OPEN = {"op": "CREATE", "data": "true", "overwrite": "true"}, {"op": "OPEN", "data": "true"}


class Sender:
    """A body that stops in the middle until it may go on."""

    def __init__(self, size: int) -> None:
        self._half = os.urandom(size // 2)
        self.contents = 2 * self._half
        self.half_sent, self.may_go_on = asyncio.Event(), asyncio.Event()

    async def body(self) -> AsyncIterator[bytes]:
        yield self._half
        self.half_sent.set()
        await self.may_go_on.wait()
        yield self._half


async def two_servers(files: Files) -> list[int]:
    async with asyncio.timeout(60):
        while len(pids := files.servers()) < 2:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)
    return pids


def holds_a_file_of(pid: int, folder: Path) -> bool:
    """Return whether a process has a file below a folder open for writing."""
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target, flags = link.readlink(), Path(f"/proc/{pid}/fdinfo/{link.name}").read_text()
        except OSError:
            continue
        if (
            target.is_relative_to(folder)
            and target.is_file()
            and int(flags.split("flags:")[1].split()[0], 8) & 3
        ):
            return True
    return False


async def the_writer(files: Files, among: list[int]) -> int:
    folder = files.scheduler.data_dir / "storage"
    async with asyncio.timeout(60):
        while not (writers := [pid for pid in among if holds_a_file_of(pid, folder)]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return writers[0]


async def test_the_bytes_of_a_file_go_through_a_file_server_and_not_through_the_scheduler(
    files: Files,
) -> None:
    pids, sender = await two_servers(files), Sender(4 * MB)
    async with files.client() as alice:
        upload = asyncio.create_task(alice.put("/alice/through", params=CREATE, content=sender.body()))
        await sender.half_sent.wait()
        writer = await the_writer(files, [*pids, files.scheduler.process.pid])
        sender.may_go_on.set()
        assert (await upload).status_code == 201
        back = await alice.get("/alice/through", params=OPEN)
    assert writer in pids
    assert back.content == sender.contents


async def test_a_file_server_that_is_killed_leaves_no_half_file_and_takes_nobody_else_with_it(
    files: Files,
) -> None:
    pids, senders = await two_servers(files), [Sender(4 * MB), Sender(4 * MB)]
    async with files.client() as alice:
        uploads = [
            asyncio.create_task(alice.put(f"/alice/half-{number}", params=CREATE, content=sender.body()))
            for number, sender in enumerate(senders)
        ]
        for sender in senders:
            await sender.half_sent.wait()
        killed = await the_writer(files, pids)
        os.kill(killed, signal.SIGKILL)
        for sender in senders:
            sender.may_go_on.set()
        outcomes = await asyncio.gather(*uploads, return_exceptions=True)
        there = (await alice.get("/alice", params={"op": "LISTSTATUS"})).json()["FileStatuses"]["FileStatus"]
        # the two servers had one upload each
        [lost] = [
            number for number, outcome in enumerate(outcomes) if isinstance(outcome, httpx.TransportError)
        ]
        names = {status["pathSuffix"] for status in there}
        assert f"half-{lost}" not in names
        assert f"half-{1 - lost}" in names
        again = await alice.put(f"/alice/half-{lost}", params=CREATE, content=b"whole")
        assert again.status_code == 201
    assert killed not in await two_servers(files)


@pytest.mark.parametrize(("user", "status"), [("bob", 403), ("nobody", 401)])
async def test_who_may_not_read_a_file_gets_nothing_of_it_from_a_file_server(
    files: Files, user: str, status: int
) -> None:
    async with files.client() as alice, files.client(user) as other:
        await alice.put("/alice/secret", params=CREATE, content=b"for alice only")
        for answer in (
            await other.get("/alice/secret", params=OPEN),
            await other.put("/alice/secret", params=CREATE, content=b"mine" * MB),
            await other.post("/alice/secret", params={"op": "APPEND", "data": "true"}, content=b"mine"),
            await other.get("/alice", params={"op": "ARCHIVE", "data": "true"}),
        ):
            assert (answer.status_code, b"for alice only" in answer.content) == (status, False)
            assert answer.headers["Connection"] == "close"
        assert (await alice.get("/alice/secret", params=OPEN)).content == b"for alice only"


async def test_a_ticket_opens_the_file_that_it_was_given_for_and_no_other(files: Files) -> None:
    async with files.client() as alice:
        for name in ("one", "two"):
            await alice.put(f"/alice/{name}", params=CREATE, content=name.encode())
        location = (await alice.get("/alice/one", params={"op": "OPEN"})).headers["Location"]
    async with httpx.AsyncClient(trust_env=False) as anybody:
        assert (await anybody.get(location)).content == b"one"
        other = await anybody.get(location.replace("/alice/one", "/alice/two"))
        assert (other.status_code, other.json()["RemoteException"]["exception"]) == (403, "InvalidToken")


async def test_what_file_servers_send_is_counted_by_the_scheduler(files: Files) -> None:
    async def counted(name: str) -> float:
        async with httpx.AsyncClient(trust_env=False) as root:
            headers = {"Authorization": "Bearer token-of-root"}
            text = (await root.get(f"{files.scheduler.url}/metrics", headers=headers)).text
        lines = [line for line in text.splitlines() if line.startswith(name) and "WebHdfsHandler" in line]
        return sum(float(line.split()[-1]) for line in lines)

    async with files.client() as alice:
        await alice.put("/alice/counted", params=CREATE, content=b"x" * 12345)
        before = await counted("pai_stream_bytes_total")
        await alice.get("/alice/counted", params=OPEN)
    async with asyncio.timeout(60):
        while await counted("pai_stream_bytes_total") < before + 12345:  # noqa: ASYNC110 - a report comes
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("how", ["killed", "ended"])
async def test_no_file_server_outlives_its_scheduler(
    own_scheduler: Callable[..., RunningScheduler], how: str
) -> None:
    scheduler = await asyncio.to_thread(own_scheduler, "--file-processes", "2")
    pids, sender = await two_servers(Files(scheduler)), Sender(4 * MB)
    async with Files(scheduler).client() as alice:
        upload = asyncio.create_task(alice.put("/alice/f", params=CREATE, content=sender.body()))
        await sender.half_sent.wait()
        await asyncio.to_thread(scheduler.kill if how == "killed" else scheduler.terminate)
        async with asyncio.timeout(60):
            while any(is_file_server(pid) for pid in pids):  # noqa: ASYNC110 - the kernel tells nobody
                await asyncio.sleep(0.02)
        sender.may_go_on.set()
        with pytest.raises(httpx.TransportError):
            await upload
    assert not (scheduler.data_dir / "storage" / "alice" / "f").exists()
