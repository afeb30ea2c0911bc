"""A real HDFS as the users' storage: what every storage does, in the users' own names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import hdfs as library
import pytest

from pai_scheduler.storage.hdfs.storage import UPLOADS, HdfsStorage
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import Storage
from pai_scheduler.testing.home import Broken, Home, Stuck, breaking, giving, refuses
from pai_scheduler.testing.storage import StorageConformance
from tests.testbed.hdfs import ACCOUNT, Hdfs

MB = 2**20


@pytest.fixture
async def storage(hdfs: Hdfs) -> AsyncIterator[HdfsStorage]:
    opened = HdfsStorage([hdfs.url], ACCOUNT)
    await opened.start()
    yield opened
    await opened.close()


@pytest.fixture
async def home(storage: HdfsStorage) -> AsyncIterator[Home]:
    made = await Home.make(storage)
    yield made
    await made.remove()


@pytest.fixture
async def team(storage: HdfsStorage) -> AsyncIterator[StoragePath]:
    """Return a tree of the group `vision`, in which alice is and bob is not."""
    root = StoragePath(("Shared", "vision"))
    await storage.make_tree(root, "", "vision", 0o770)
    yield root
    await storage.delete(root, "", recursive=True)


def as_user(hdfs: Hdfs, user: str) -> library.InsecureClient:
    """Talk to HDFS past the storage."""
    return library.InsecureClient(hdfs.url, user=user)


async def uploads(storage: Storage) -> list[str]:
    return [entry.path.name for entry in (await storage.list(UPLOADS, "")).entries]


async def until(true: Callable[[], Awaitable[object]]) -> None:
    """Wait until it is."""
    while not await true():  # noqa: ASYNC110 - a server's state has no event
        await asyncio.sleep(0.01)


class TestConformance(StorageConformance):
    """An HDFS does what every storage does."""


async def test_what_a_user_writes_is_the_users_to_hdfs_itself(hdfs: Hdfs, home: Home) -> None:
    await home.write("folder/file", b"mine")
    for name in ("folder", "folder/file"):
        assert as_user(hdfs, home.user).status(str(home.at(name)))["owner"] == home.user


async def test_hdfs_itself_refuses_other_users(hdfs: Hdfs, storage: HdfsStorage, home: Home) -> None:
    await home.write("file", b"mine")
    with refuses(Problem.DENIED):
        await storage.list(home.root, "bob")
    with refuses(Problem.DENIED):
        await storage.create(home.at("other"), "bob", giving([b"x"]))
    with refuses(Problem.DENIED):
        await storage.delete(home.at("file"), "bob")
    with pytest.raises(library.HdfsError, match="Permission denied: user=bob"):
        as_user(hdfs, "bob").status(str(home.at("file")))
    assert await uploads(storage) == []


async def test_a_group_shares_its_tree_as_hdfs_knows_the_group(
    storage: HdfsStorage, team: StoragePath
) -> None:
    await storage.create(team / "file", "alice", giving([b"ours"]))
    assert (await storage.status(team / "file", "alice")).group == "vision"
    with refuses(Problem.DENIED):
        await storage.status(team / "file", "bob")


async def test_a_new_file_and_its_copy_have_the_permission_that_is_said(
    storage: HdfsStorage, team: StoragePath
) -> None:
    await storage.create(team / "file", "alice", giving([b"ours"]), permission=0o666)
    assert (await storage.status(team / "file", "alice")).permission == 0o666
    await storage.copy(team / "file", team / "copy", "alice")
    assert (await storage.status(team / "copy", "alice")).permission == 0o666


async def test_who_may_not_act_for_others_is_told_what_to_set(hdfs: Hdfs, home: Home) -> None:
    storage = HdfsStorage([hdfs.url], "bob")
    with pytest.raises(StorageError, match=r"hadoop\.proxyuser\.bob\.hosts") as refused:
        await storage.status(home.root, home.user)
    assert refused.value.problem is Problem.DENIED
    await storage.close()


async def test_a_name_that_the_library_would_expand_stands_for_itself(home: Home) -> None:
    await home.write("older", b"x")
    await home.write("#LATEST", b"itself")
    assert await home.read("#LATEST") == b"itself"


@pytest.mark.parametrize("name", ["a:b", "\udc80"])
async def test_a_name_that_hdfs_cannot_have_is_refused_as_such(home: Home, name: str) -> None:
    await home.write("file", b"x")
    for attempt in (
        home.storage.create(home.root / name, home.user, giving([b"x"])),
        home.storage.status(home.root / name, home.user),
        home.storage.mkdirs(home.root / name, home.user),
        home.storage.rename(home.at("file"), home.root / name, home.user),
    ):
        with refuses(Problem.INVALID):
            await attempt


async def test_an_append_before_which_another_landed_unseen_is_not_confirmed(
    hdfs: Hdfs, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = HdfsStorage([hdfs.url], ACCOUNT)
    check = home.storage.check_access

    async def land(path: StoragePath, actor: str, access: str) -> None:
        """Let it land when the length has been looked at already."""
        await check(path, actor, access)
        await late.append(path, actor, giving([b"late"]))

    await home.write("file", b"one ")
    monkeypatch.setattr(home.storage, "check_access", land)
    with refuses(Problem.UNAVAILABLE):
        await home.append("file", b"two", offset=4)
    monkeypatch.undo()
    assert await home.read("file") == b"one latetwo"
    await late.close()


async def test_a_broken_or_cancelled_upload_leaves_nothing_anywhere(storage: HdfsStorage, home: Home) -> None:
    with pytest.raises(Broken):
        await storage.create(home.at("file"), home.user, breaking(b"x" * MB, b"y" * MB))
    assert await uploads(storage) == []
    stuck = Stuck(b"x" * MB)
    writing = asyncio.create_task(storage.create(home.at("file"), home.user, aiter(stuck)))
    await stuck.reached.wait()
    await until(lambda: uploads(storage))
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert await uploads(storage) == []


async def test_no_user_sees_what_others_are_uploading(storage: HdfsStorage, home: Home) -> None:
    stuck = Stuck(b"secret")
    writing = asyncio.create_task(storage.create(home.at("file"), home.user, aiter(stuck)))
    await stuck.reached.wait()
    with refuses(Problem.DENIED):
        await storage.list(UPLOADS, "bob")
    stuck.go.set()
    await writing


async def test_uploads_that_were_left_behind_are_removed_after_a_day(
    hdfs: Hdfs, storage: HdfsStorage
) -> None:
    now = int(time.time() * 1000)
    for name, hours in (("old", 25), ("young", 23)):
        await storage.create(UPLOADS / name, "", giving([b"x"]))
        await storage.set_times(UPLOADS / name, "", now - hours * 3_600_000, None)
    again = HdfsStorage([hdfs.url], ACCOUNT)
    await again.start()

    async def gone() -> bool:
        return "old" not in await uploads(again)

    await until(gone)
    assert await uploads(again) == ["young"]
    await storage.delete(UPLOADS / "young", "")
    await again.close()


async def test_many_slow_transfers_keep_no_control_call_waiting(storage: HdfsStorage, home: Home) -> None:
    await home.write("file", b"x" * 4 * MB)
    stuck = [Stuck(b"x") for _ in range(34)]
    writing = [
        asyncio.create_task(storage.create(home.at(f"new/{number}"), home.user, aiter(pieces)))
        for number, pieces in enumerate(stuck)
    ]

    async def as_many_as_there_may_be() -> bool:
        return sum(pieces.reached.is_set() for pieces in stuck) >= 32

    await until(as_many_as_there_may_be)
    async with storage.open(home.at("file"), home.user):
        # all of them wait for us, and everything else goes on
        assert await home.names("new") == []
        assert len(await home.read("file")) == 4 * MB
    for pieces in stuck:
        pieces.go.set()
    await asyncio.gather(*writing)
    assert len(await home.names("new")) == 34


async def test_what_is_being_transferred_is_broken_off_when_the_storage_is_closed(
    hdfs: Hdfs, home: Home
) -> None:
    storage = HdfsStorage([hdfs.url], ACCOUNT)
    stuck = Stuck(b"x")
    writing = asyncio.create_task(storage.create(home.at("file"), home.user, aiter(stuck)))
    await stuck.reached.wait()
    await until(lambda: uploads(home.storage))
    await storage.close()
    with refuses(Problem.UNAVAILABLE):
        await writing
    with refuses(Problem.UNAVAILABLE):
        await storage.status(home.root, home.user)
    assert await home.names() == []
    assert await uploads(home.storage) == []
