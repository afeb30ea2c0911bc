"""Parts of an HDFS that fail, and what its users see of it. One of its own: others need theirs whole."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from pai_scheduler.storage.hdfs.storage import UPLOADS, HdfsStorage
from pai_scheduler.storage.paths import Problem, StoragePath
from pai_scheduler.testing.home import Home, refuses
from pai_scheduler.testing.ports import free_port
from tests.testbed.fixtures import provide
from tests.testbed.hdfs import ACCOUNT, Hdfs

MB = 2**20


@pytest.fixture(scope="module")
def pair() -> Iterator[Hdfs]:
    """Run a high-availability pair; the first name node is active at the beginning of each test."""
    server = provide(lambda: Hdfs(name_nodes=2))
    yield server
    server.remove()


@pytest.fixture
async def home(pair: Hdfs) -> AsyncIterator[Home]:
    storage = HdfsStorage(pair.urls, ACCOUNT, patience=60)
    home = await Home.make(storage)
    yield home
    await home.remove()
    await storage.close()


def nobody() -> str:
    """Return an address where nobody listens."""
    return f"http://127.0.0.1:{free_port()}"


async def test_the_address_that_answers_is_asked(pair: Hdfs, home: Home) -> None:
    storage = HdfsStorage([nobody(), pair.urls[0]], ACCOUNT)
    await home.write("file", b"x")
    assert (await storage.status(home.at("file"), home.user)).length == 1
    assert [entry.path.name for entry in (await storage.list(home.root, home.user)).entries] == ["file"]
    await storage.close()


async def test_where_nobody_answers_the_storage_is_unavailable_in_the_end(home: Home) -> None:
    storage = HdfsStorage([nobody()], ACCOUNT, patience=0.5)
    with refuses(Problem.UNAVAILABLE):
        await storage.status(home.root, home.user)
    with refuses(Problem.UNAVAILABLE):
        await storage.make_tree(StoragePath(("bob",)), "bob", "", 0o700)
    await storage.close()


async def test_a_service_starts_without_its_hdfs(home: Home) -> None:
    storage = HdfsStorage([nobody()], ACCOUNT, patience=0.5)
    await storage.start()
    with refuses(Problem.UNAVAILABLE):
        await storage.status(home.root, home.user)
    await storage.close()


async def test_a_failover_and_the_way_back_are_not_noticed(pair: Hdfs, home: Home) -> None:
    await home.write("before", b"x")
    await asyncio.to_thread(pair.make_standby, 0)
    # nobody is active: this one has to wait
    writing = asyncio.create_task(home.write("in between", b"y"))
    await asyncio.to_thread(pair.make_active, 1)
    await writing
    assert await home.names() == ["before", "in between"]
    assert await home.read("before") == b"x"
    await asyncio.to_thread(pair.make_standby, 1)
    await asyncio.to_thread(pair.make_active, 0)
    await home.rename("in between", "after")
    assert await home.read("after") == b"y"


async def test_a_killed_name_node_is_waited_for_and_not_for_ever(pair: Hdfs, home: Home) -> None:
    await home.write("file", b"kept")
    impatient = HdfsStorage(pair.urls[:1], ACCOUNT, patience=0.5)
    await asyncio.to_thread(pair.stop_namenode, 0)
    with refuses(Problem.UNAVAILABLE):
        await impatient.status(home.at("file"), home.user)
    # a patient one gets its answer from the next server
    asking = asyncio.create_task(home.status("file"))
    await asyncio.to_thread(pair.start_namenode, 0)
    await asyncio.to_thread(pair.make_active, 0)
    assert (await asking).length == 4
    assert (await impatient.status(home.at("file"), home.user)).length == 4
    await home.write("new", b"x")
    assert await home.names() == ["file", "new"]
    await impatient.close()


@pytest.mark.parametrize("overwrite", [False, True])
async def test_a_data_node_that_dies_in_an_upload_leaves_nothing_new(
    pair: Hdfs, home: Home, overwrite: bool
) -> None:
    if overwrite:
        await home.write("file", b"old")
    before = await home.names()
    under_way, dead = asyncio.Event(), asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        for number in itertools.count():
            if number == 8:
                under_way.set()
                await dead.wait()
            yield b"x" * MB

    writing = asyncio.create_task(
        home.storage.create(home.at("file"), home.user, endless(), overwrite=overwrite)
    )
    await under_way.wait()
    await asyncio.to_thread(pair.stop_datanode)
    dead.set()
    try:
        # it is told though its pieces never end
        with refuses(Problem.UNAVAILABLE):
            await writing
        assert await home.names() == before
        assert (await home.storage.list(UPLOADS, "")).entries == []
    finally:
        await asyncio.to_thread(pair.start_datanode)
        await asyncio.to_thread(pair.wait_for_datanode)


async def test_a_download_goes_on_after_its_data_node_came_back(pair: Hdfs, home: Home) -> None:
    size = 64
    await home.write("file", *[number.to_bytes(1, "big") * MB for number in range(size)])
    read: list[bytes] = []
    async with home.storage.open(home.at("file"), home.user) as file:
        async for piece in file.pieces:
            if not read:
                await asyncio.to_thread(pair.stop_datanode)
                await asyncio.to_thread(pair.start_datanode)
            read.append(piece)
    whole = b"".join(read)
    assert [whole[number * MB] for number in range(size)] == list(range(size))
    assert len(whole) == size * MB


async def test_a_file_that_changes_in_the_middle_of_a_broken_download_is_not_mixed(
    pair: Hdfs, home: Home
) -> None:
    await home.write("file", b"x" * 64 * MB)
    with refuses(Problem.UNAVAILABLE, Problem.NOT_FOUND):
        async with home.storage.open(home.at("file"), home.user) as file:
            pieces = aiter(file.pieces)
            await anext(pieces)
            await home.write("other", b"y" * 64 * MB)
            await home.rename("other", "file", overwrite=True)
            await asyncio.to_thread(pair.stop_datanode)
            await asyncio.to_thread(pair.start_datanode)
            async for piece in pieces:
                assert set(piece) == set(b"x")
    await asyncio.to_thread(pair.wait_for_datanode)


async def test_a_name_node_that_hangs_keeps_only_those_waiting_who_ask_it(pair: Hdfs, home: Home) -> None:
    await home.write("file", b"x" * 4 * MB)
    async with home.storage.open(home.at("file"), home.user) as file:
        pieces = aiter(file.pieces)
        await anext(pieces)
        pair.signal_namenode(signal.SIGSTOP)
        try:
            asking = asyncio.create_task(home.status("file"))
            assert len(b"".join([piece async for piece in pieces])) == 3 * MB
            assert not asking.done()
        finally:
            pair.signal_namenode(signal.SIGCONT)
    assert (await asking).length == 4 * MB


class Hadoop3(BaseHTTPRequestHandler):
    """Lists folders as Hadoop 3 does (ours is 2.7): in batches of three, and says how many remain."""

    names = tuple(f"{number:02}" for number in range(10))

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        after = query.get("startAfter", [""])[0]
        left = [name for name in self.names if name > after]
        batch = {
            "partialListing": {"FileStatuses": {"FileStatus": [self.status(name) for name in left[:3]]}},
            "remainingEntries": max(0, len(left) - 3),
        }
        assert query["op"] == ["LISTSTATUS_BATCH"]
        body = json.dumps({"DirectoryListing": batch}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def status(self, name: str) -> dict[str, object]:
        return {
            "pathSuffix": name, "type": "SYMLINK" if name == "04" else "FILE", "length": 1, "owner": "alice",
            "group": "alice", "permission": "644", "accessTime": 1, "modificationTime": 2, "blockSize": 3,
            "replication": 1, "childrenNum": 0, "fileId": 16386,
        }  # fmt: skip

    def log_message(self, *_: object) -> None:
        pass


async def test_a_newer_hadoop_is_asked_for_batches() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hadoop3)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    storage = HdfsStorage([f"http://127.0.0.1:{server.server_port}"], ACCOUNT)
    try:
        folder = StoragePath(("alice",))
        whole = await storage.list(folder, "alice")
        assert [entry.path.name for entry in whole.entries] == [
            name for name in Hadoop3.names if name != "04"
        ]
        assert whole.remaining == 0
        part = await storage.list(folder, "alice", "05", 2)
        assert ([entry.path.name for entry in part.entries], part.remaining) == (["06", "07"], 2)
    finally:
        await storage.close()
        server.shutdown()
        server.server_close()
