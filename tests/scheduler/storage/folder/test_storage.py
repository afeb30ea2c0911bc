"""A folder as the users' storage: what every storage does, and what only a folder must look out for."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_scheduler.storage.folder.resolve import move_new, move_new_by_link
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.testing.home import Broken, Home, Stuck, breaking, giving, refuses
from pai_scheduler.testing.storage import StorageConformance
from tests.testbed.properties import examples

MB = 2**20


@pytest.fixture
def root(tmp_path: Path) -> Path:
    # a name that must be encoded in a URI
    return tmp_path / "the storage 100%"


@pytest.fixture
async def storage(root: Path) -> AsyncIterator[FolderStorage]:
    storage = FolderStorage(root)
    await storage.start()
    yield storage
    await storage.close()


@pytest.fixture
async def home(storage: FolderStorage) -> Home:
    return await Home.make(storage)


@pytest.fixture
def here(root: Path, home: Home) -> Path:
    """Return the user's folder as the machine knows it."""
    return root / home.user


class TestFolderStorage(StorageConformance):
    """A folder does what every storage does."""

    async def test_the_service_itself_is_kept_from_nothing(self, home: Home) -> None:
        if os.geteuid() == 0:
            await super().test_the_service_itself_is_kept_from_nothing(home)
        else:
            await home.write("file", b"secret")
            await home.chmod("file", 0o000)
            with refuses(Problem.DENIED):
                await home.read("file")


def test_its_uri_is_encoded(root: Path) -> None:
    assert FolderStorage(root).root_uri == root.as_uri()
    assert root.as_uri().endswith("/the%20storage%20100%25")


# symbolic links, and what is no file


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Put a secret outside the storage."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


async def test_links_are_not_listed_counted_or_found(home: Home, here: Path, secret: Path) -> None:
    await home.write("file", b"x")
    (here / "link").symlink_to(secret / "secret")
    (here / "folder").symlink_to(secret)
    (here / "up").symlink_to("..")
    (here / "loop").symlink_to("loop")
    assert await home.names() == ["file"]
    assert (await home.status()).children == 1
    summary = await home.storage.summary(home.root, home.user)
    assert (summary.files, summary.folders, summary.length) == (1, 1, 1)
    for name in ("link", "folder", "folder/secret", "up", f"up/{home.user}/file", "loop", "loop/x"):
        for attempt in (
            home.status(name),
            home.read(name),
            home.names(name),
            home.append(name, b"x"),
            home.chmod(name, 0o777),
            home.storage.set_times(home.at(name), home.user, 1, 1),
            home.storage.summary(home.at(name), home.user),
            home.storage.checksum(home.at(name), home.user),
            home.copy(name, "copy"),
            home.rename(name, "moved"),
        ):
            with refuses(Problem.NOT_FOUND):
                await attempt
        assert not await home.delete(name, recursive=True)
    with pytest.raises(StorageError) as caught:
        await home.read("link")
    assert "symbolic links are not followed" in str(caught.value)


async def test_nothing_is_written_over_a_link(home: Home, here: Path, secret: Path) -> None:
    await home.write("file", b"x")
    (here / "link").symlink_to(secret / "secret")
    (here / "folder").symlink_to(secret)
    with refuses(Problem.EXISTS):
        await home.write("link", b"new")
    for name in ("folder/new", "folder/deep/new"):
        with refuses(Problem.NOT_FOUND):
            await home.write(name, b"new")
        with refuses(Problem.NOT_FOUND):
            await home.mkdirs(name)
        with refuses(Problem.NOT_FOUND):
            await home.rename("file", name)
        with refuses(Problem.NOT_FOUND):
            await home.copy("file", name)
    with refuses(Problem.EXISTS):
        await home.mkdirs("folder")
    with refuses(Problem.EXISTS):
        await home.rename("file", "folder")
    # the link itself may be replaced, like any name
    await home.write("link", b"new", overwrite=True)
    assert await home.read("link") == b"new"
    assert [entry.name for entry in secret.iterdir()] == ["secret"]
    assert (secret / "secret").read_text() == "secret"


async def test_removing_a_folder_removes_the_links_in_it_and_not_where_they_lead(
    home: Home, here: Path, secret: Path
) -> None:
    await home.mkdirs("folder/below")
    (here / "folder/link").symlink_to(secret)
    (here / "folder/below/link").symlink_to(secret / "secret")
    assert await home.delete("folder", recursive=True)
    assert list(here.iterdir()) == []
    assert (secret / "secret").read_text() == "secret"


async def test_pipes_sockets_and_devices_count_for_nothing_and_are_not_waited_for(
    home: Home, here: Path
) -> None:
    os.mkfifo(here / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        descriptor = os.open(here, os.O_PATH)
        # the path of a socket must be short
        listener.bind(f"/proc/self/fd/{descriptor}/socket")
        os.close(descriptor)
    assert {entry.name for entry in here.iterdir()} == {"pipe", "socket"}
    assert await home.names() == []
    for name in ("pipe", "socket"):
        with refuses(Problem.NOT_FOUND):
            await home.read(name)
        with refuses(Problem.NOT_FOUND):
            await home.append(name, b"x")


async def test_a_folder_that_turns_into_a_link_under_ones_hands_leads_nowhere(
    home: Home, here: Path, secret: Path
) -> None:
    await home.write("folder/secret", b"mine")
    (here / "link").symlink_to(secret)
    stop = threading.Event()

    def exchange() -> None:
        libc, exchange_names, here_and_now = ctypes.CDLL(None), 2, -100
        names = os.fsencode(here / "folder"), os.fsencode(here / "link")
        while not stop.is_set():
            assert libc.renameat2(here_and_now, names[0], here_and_now, names[1], exchange_names) == 0
            # give others a chance
            time.sleep(0)

    exchanging = threading.Thread(target=exchange)
    exchanging.start()
    try:
        seen: list[bytes | Problem] = []
        for number in range(5000):
            if number >= 300 and len(set(seen)) > 1:
                break
            try:
                seen.append(await home.read("folder/secret"))
            except StorageError as error:
                seen.append(error.problem)
            try:
                await home.write(f"folder/{number}", b"x")
            except StorageError as error:
                seen.append(error.problem)
    finally:
        stop.set()
        exchanging.join()
    assert set(seen) == {b"mine", Problem.NOT_FOUND}
    assert [entry.name for entry in secret.iterdir()] == ["secret"]


# whatever path is asked for

_PARTS = ["..", ".", "alice", "out", "up", "deep", "secret", "outside", ".uploads", "%2e%2e", "\0", "", "x"]
_PATHS = st.lists(st.sampled_from(_PARTS) | st.text(max_size=3), max_size=6).map("/".join)


@settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(_PATHS, min_size=1, max_size=4), st.sampled_from(["", "alice"]))
def test_whatever_path_is_asked_for_nothing_outside_is_read_or_touched(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], actor: str
) -> None:
    base = Path(tempfile.mkdtemp(dir=tmp_path_factory.getbasetemp()))
    (base / "outside").mkdir()
    (base / "outside" / "secret").write_text("secret")
    (base / "root" / "alice" / "deep").mkdir(parents=True)
    (base / "root" / "alice" / "out").symlink_to(base / "outside")
    (base / "root" / "out").symlink_to("../outside")
    (base / "root" / "up").symlink_to("..")
    (base / "root" / "alice" / "secret").symlink_to("../../outside/secret")
    read: list[bytes] = []

    async def try_everything() -> None:
        storage = FolderStorage(base / "root")
        await storage.start()
        for text in texts:
            try:
                path = StoragePath.parse(text)
            except StorageError:
                continue

            async def reading(path: StoragePath = path) -> None:
                async with storage.open(path, actor) as file:
                    read.extend([piece async for piece in file.pieces])

            for attempt in (
                reading(),
                storage.set_permission(path, actor, 0o700),
                storage.set_times(path, actor, 1, 1),
                storage.append(path, actor, giving([b"mine"])),
                storage.truncate(path, actor, 0),
                storage.concat(path, [path.parent / "secret"], actor),
                storage.create(path, actor, giving([b"mine"]), overwrite=True),
                storage.mkdirs(path, actor),
                storage.copy(path, path / "copy", actor),
                storage.rename(path, StoragePath(("alice", "moved")), actor, overwrite=True),
                storage.delete(path, actor, recursive=True),
                reading(),
            ):
                with suppress(StorageError):
                    await attempt
        await storage.close()

    asyncio.run(try_everything())
    assert b"secret" not in b"".join(read)
    assert sorted(entry.name for entry in base.iterdir()) == ["outside", "root"]
    assert [entry.name for entry in (base / "outside").iterdir()] == ["secret"]
    secret = base / "outside" / "secret"
    assert secret.read_text() == "secret"
    assert secret.stat().st_mode & 0o777 == 0o644
    assert secret.stat().st_mtime > 1_000_000


# names


async def test_names_that_are_no_utf_8_are_files_as_any_other(home: Home, here: Path) -> None:
    (here / os.fsdecode(b"\xff\xfe")).write_bytes(b"here")
    names = await home.names()
    assert [os.fsencode(name) for name in names] == [b"\xff\xfe"]
    assert await home.read(names[0]) == b"here"
    await home.rename(names[0], "plain")
    assert await home.names() == ["plain"]


async def test_permissions_do_not_depend_on_the_umask(home: Home, here: Path) -> None:
    before = os.umask(0o077)
    try:
        await home.write("a/file", b"x")
        await home.storage.mkdirs(home.at("b"), home.user, 0o777)
    finally:
        os.umask(before)
    assert [(here / name).stat().st_mode & 0o777 for name in ("a", "a/file", "b")] == [0o755, 0o644, 0o777]


@pytest.mark.parametrize("permission", [-1, 0o1000, 0o7777])
async def test_a_permission_has_nine_bits(home: Home, permission: int) -> None:
    with refuses(Problem.INVALID):
        await home.chmod("", permission)


async def test_a_time_that_there_cannot_be_is_refused(home: Home) -> None:
    with refuses(Problem.INVALID):
        await home.storage.set_times(home.root, home.user, 10**30, None)


async def test_a_refusal_names_what_has_the_permission_that_refuses(home: Home) -> None:
    await home.write("closed/below/file", b"x")
    await home.chmod("closed", 0o600)
    with pytest.raises(StorageError) as caught:
        await home.read("closed/below/file")
    assert str(caught.value) == (
        f"/{home.user}/closed has the permission 600, so it cannot be read: give it another first."
    )


async def test_in_the_public_tree_others_bits_count_for_users(storage: FolderStorage) -> None:
    public = StoragePath(("Public",))
    await storage.make_tree(public, "", "", 0o755)
    await storage.create(public / "open", "", giving([b"x"]))
    await storage.create(public / "closed", "", giving([b"x"]), permission=0o640)
    async with storage.open(public / "open", "alice") as file:
        assert file.status.owner == "pai"
    with refuses(Problem.DENIED):
        async with storage.open(public / "closed", "alice"):
            pass


async def test_in_a_groups_tree_all_members_may_what_the_owner_may(storage: FolderStorage) -> None:
    group = StoragePath(("Shared", "vision"))
    await storage.make_tree(group, "", "vision", 0o770)
    await storage.create(group / "file", "alice", giving([b"x"]), permission=0o600)
    await storage.append(group / "file", "bob", giving([b"y"]))
    status = await storage.status(group / "file", "bob")
    assert (status.length, status.owner, status.group) == (2, "pai", "vision")


# what is not whole


def uploads(root: Path) -> list[str]:
    return sorted(entry.name for entry in (root / ".uploads").iterdir())


async def test_what_is_not_whole_is_kept_where_nobody_looks(root: Path, home: Home) -> None:
    pieces = Stuck(b"x" * MB)
    writing = asyncio.create_task(home.storage.create(home.at("file"), home.user, aiter(pieces)))
    await pieces.reached.wait()
    assert len(uploads(root)) == 1
    assert (root / ".uploads").stat().st_mode & 0o777 == 0o700
    top = StoragePath()
    assert [entry.path.name for entry in (await home.storage.list(top, "")).entries] == [home.user]
    assert (await home.storage.status(top, "")).children == 1
    summary = await home.storage.summary(top, "")
    assert (summary.files, summary.folders) == (0, 2)
    for path in (top / ".uploads", top / ".uploads" / uploads(root)[0]):
        with refuses(Problem.NOT_FOUND):
            await home.storage.status(path, "")
        with refuses(Problem.NOT_FOUND, Problem.EXISTS, Problem.IS_A_FOLDER):
            await home.storage.create(path, "", giving([b"x"]))
        assert not await home.storage.delete(path, "", recursive=True)
    with refuses(Problem.NOT_FOUND):
        await home.storage.rename(top / ".uploads", top / "taken", "")
    pieces.go.set()
    await writing
    assert uploads(root) == []


async def test_nothing_is_left_of_uploads_that_break_or_are_refused(root: Path, home: Home) -> None:
    await home.write("file", b"x")
    with pytest.raises(Broken):
        await home.storage.create(home.at("new"), home.user, breaking(b"x"))
    with refuses(Problem.EXISTS):
        await home.write("file", b"y")
    with refuses(Problem.NOT_A_FOLDER):
        await home.write("file/y", b"y")
    assert uploads(root) == []


async def test_a_start_removes_what_was_left_for_a_day_and_what_was_being_removed(root: Path) -> None:
    first = FolderStorage(root)
    await first.start()
    await first.close()
    for name, hours in (("old", 25), ("young", 23)):
        (root / ".uploads" / name).write_text("x")
        os.utime(root / ".uploads" / name, (time.time() - hours * 3600,) * 2)
    (root / ".uploads" / "gone-1" / "a" / "b").mkdir(parents=True)
    (root / ".uploads" / "gone-1" / "a" / "file").write_text("x")
    second = FolderStorage(root)
    await second.start()
    for _ in range(1000):
        if uploads(root) == ["young"]:
            break
        await asyncio.sleep(0.01)
    await second.close()
    assert uploads(root) == ["young"]


async def test_a_killed_service_leaves_no_half_file_under_its_name(root: Path, home: Home) -> None:
    script = f"""
import asyncio, sys
from pathlib import Path
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import StoragePath

async def pieces():
    yield b"half"
    print("half", flush=True)
    await asyncio.sleep(1000)

async def main():
    storage = FolderStorage(Path({str(root)!r}))
    await storage.start()
    await storage.create(StoragePath(({home.user!r}, "file")), {home.user!r}, pieces(), overwrite=True)

asyncio.run(main())
"""
    await home.write("file", b"old")
    service = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=asyncio.subprocess.PIPE
    )
    assert service.stdout is not None
    assert await service.stdout.readline() == b"half\n"
    service.kill()
    await service.wait()
    assert await home.names() == ["file"]
    assert await home.read("file") == b"old"
    assert len(uploads(root)) == 1


async def test_closing_breaks_off_what_is_being_transferred(root: Path) -> None:
    storage = FolderStorage(root)
    await storage.start()
    home = await Home.make(storage)
    await home.write("old", b"x" * 2 * MB)
    pieces = Stuck(b"x")
    writing = asyncio.create_task(storage.create(home.at("new"), home.user, aiter(pieces)))
    await pieces.reached.wait()
    with refuses(Problem.UNAVAILABLE):
        async with storage.open(home.at("old"), home.user) as file:
            async for _ in file.pieces:
                await storage.close()
    pieces.go.set()
    with refuses(Problem.UNAVAILABLE):
        await writing
    with refuses(Problem.UNAVAILABLE):
        await home.status()
    assert uploads(root) == []
    assert [entry.name for entry in (root / home.user).iterdir()] == ["old"]


async def test_what_had_not_begun_when_the_storage_was_closed_is_refused_too(root: Path) -> None:
    storage = FolderStorage(root)
    await storage.start()
    home = await Home.make(storage)
    await home.write("file", b"x" * MB)
    asked = [asyncio.create_task(home.read("file")) for _ in range(100)]
    await asyncio.sleep(0)
    await storage.close()
    for result in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(result, bytes) or (
            isinstance(result, StorageError) and result.problem is Problem.UNAVAILABLE
        )


async def test_uploads_and_downloads_that_wait_keep_nobody_waiting(home: Home) -> None:
    await home.write("file", b"x" * 2 * MB)
    waiting = [Stuck(b"x") for _ in range(50)]
    writing = [
        asyncio.create_task(home.storage.create(home.at(f"new/{number}"), home.user, aiter(pieces)))
        for number, pieces in enumerate(waiting)
    ]
    async with AsyncExitStack() as reading:
        for _ in range(50):
            file = await reading.enter_async_context(home.storage.open(home.at("file"), home.user))
            assert await anext(aiter(file.pieces))
        for pieces in waiting:
            await pieces.reached.wait()
        assert await home.read("file") == b"x" * 2 * MB
        await home.write("other", b"x")
    for pieces in waiting:
        pieces.go.set()
    await asyncio.gather(*writing)
    assert len(await home.names("new")) == 50


async def test_a_disk_that_is_not_mounted_is_not_taken_for_an_empty_storage(root: Path, home: Home) -> None:
    await home.write("file", b"kept")
    root.rename(root.parent / "elsewhere")
    for make in (False, True):
        if make:
            root.mkdir()
        for attempt in (
            home.status("file"),
            home.status(),
            home.read("file"),
            home.write("new", b"x"),
            home.mkdirs("new"),
            home.delete("file"),
            home.storage.make_tree(home.root, home.user, "", 0o700),
        ):
            with refuses(Problem.UNAVAILABLE):
                await attempt
    assert list(root.iterdir()) == []
    root.rmdir()
    (root.parent / "elsewhere").rename(root)
    assert await home.read("file") == b"kept"


async def test_only_one_appends_at_a_time(home: Home) -> None:
    await home.write("file", b"0")
    pieces = Stuck(b"1")
    first = asyncio.create_task(home.storage.append(home.at("file"), home.user, aiter(pieces)))
    await pieces.reached.wait()
    with refuses(Problem.UNAVAILABLE):
        await home.append("file", b"2")
    pieces.go.set()
    await first
    await home.append("file", b"2")
    assert await home.read("file") == b"012"


async def test_a_file_that_becomes_shorter_while_it_is_read_is_an_error(home: Home, here: Path) -> None:
    await home.write("file", b"x" * 3 * MB)
    with refuses(Problem.UNAVAILABLE):
        async with home.storage.open(home.at("file"), home.user) as file:
            async for _ in file.pieces:
                os.truncate(here / "file", 10)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_descriptor_stays_open(home: Home) -> None:
    await home.write("warm", b"x")
    before = descriptors()
    await home.write("a/b/file", b"x")
    await home.append("a/b/file", b"x")
    await home.copy("a/b/file", "copy")
    await home.names("a")
    await home.storage.summary(home.root, home.user)
    with refuses(Problem.NOT_FOUND):
        await home.read("a/b/c/d")
    with refuses(Problem.EXISTS):
        await home.write("copy", b"x")
    with refuses(Problem.IS_A_FOLDER):
        await home.append("a", b"x")
    with refuses(Problem.INVALID):
        await home.read("copy", 100)
    async with home.storage.open(home.at("copy"), home.user):
        pass
    cancelled = [asyncio.create_task(home.read("copy")) for _ in range(20)]
    await asyncio.sleep(0)
    for task in cancelled:
        task.cancel()
    await asyncio.gather(*cancelled, return_exceptions=True)
    await home.delete("a", recursive=True)
    for _ in range(500):
        if descriptors() == before:
            break
        await asyncio.sleep(0.01)
    assert descriptors() == before


# large and deep


async def test_a_tree_of_any_depth_is_counted_and_removed(root: Path, home: Home, here: Path) -> None:
    descriptor = os.open(here, os.O_RDONLY)
    for _ in range(1010):
        os.mkdir("deep", dir_fd=descriptor)
        below = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
    assert (await home.storage.summary(home.root, home.user)).folders == 1011
    assert await home.delete("deep", recursive=True)
    assert list(here.iterdir()) == []
    assert uploads(root) == []


async def test_a_tree_that_is_written_to_meanwhile_is_removed_all_the_same(root: Path, home: Home) -> None:
    for number in range(100):
        await home.write(f"tree/{number % 10}/{number}", b"x")

    async def write_on() -> None:
        for number in range(100):
            # the folder may be removed between the looking and the naming
            with suppress(StorageError):
                await home.write(f"tree/{number % 10}/new-{number}", b"x")

    writing = asyncio.create_task(write_on())
    assert await home.delete("tree", recursive=True)
    await writing
    await home.delete("tree", recursive=True)
    assert await home.names() == []
    assert uploads(root) == []


# other disks


@contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """Mount a disk of 1 MB in memory on a folder."""
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=755", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mount.returncode:
        reason = f"a tmpfs (mounting one needs root): {mount.stderr.strip()}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


async def test_a_full_disk_is_said_and_leaves_nothing(root: Path) -> None:
    root.mkdir()
    with mounted(root):
        storage = FolderStorage(root)
        await storage.start()
        home = await Home.make(storage)
        await home.write("file", b"old")
        with refuses(Problem.NO_SPACE):
            await home.write("new", *[b"x" * 2**18] * 8)
        with refuses(Problem.NO_SPACE):
            await home.write("file", *[b"x" * 2**18] * 8, overwrite=True)
        assert await home.names() == ["file"]
        assert await home.read("file") == b"old"
        assert uploads(root) == []
        with refuses(Problem.NO_SPACE):
            await home.append("file", *[b"x" * 2**18] * 8)
        # what had come stays
        assert (await home.status("file")).length >= 2**18
        await storage.close()


async def test_another_disk_within_the_storage_is_used_as_well(root: Path, home: Home, here: Path) -> None:
    await home.write("file", b"here")
    await home.mkdirs("disk")
    with mounted(here / "disk"):
        await home.write("disk/a/file", b"there")
        with refuses(Problem.EXISTS):
            await home.write("disk/a/file", b"new")
        await home.write("disk/a/file", b"new", overwrite=True)
        with pytest.raises(Broken):
            await home.storage.create(home.at("disk/broken"), home.user, breaking(b"x"))
        await home.copy("file", "disk/copy")
        assert await home.names("disk") == ["a", "copy"]
        assert await home.read("disk/a/file") == b"new"
        with refuses(Problem.UNSUPPORTED):
            await home.rename("file", "disk/moved")
        assert await home.delete("disk/a", recursive=True)
        assert await home.names("disk") == ["copy"]
        assert uploads(root) == []
    assert await home.read("file") == b"here"


# file systems that cannot do everything


@pytest.mark.parametrize("move", [move_new, move_new_by_link])
def test_a_name_is_moved_only_to_where_nothing_is(tmp_path: Path, move: Callable[..., None]) -> None:
    (tmp_path / "file").write_text("file")
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("nowhere")
    descriptor = os.open(tmp_path, os.O_PATH)
    try:
        for source, target in (
            ("file", "folder"), ("folder", "file"), ("folder", "empty"), ("file", "link"), ("folder", "link"),
        ):  # fmt: skip
            with pytest.raises(FileExistsError):
                move(descriptor, source, descriptor, target)
        move(descriptor, "file", descriptor, "moved")
        move(descriptor, "folder", descriptor, "moved folder")
        with pytest.raises(FileNotFoundError):
            move(descriptor, "file", descriptor, "new")
        with pytest.raises(OSError, match="Invalid argument"):
            move(descriptor, "moved folder", descriptor, "moved folder/below")
    finally:
        os.close(descriptor)
    assert {entry.name for entry in tmp_path.iterdir()} == {"moved", "moved folder", "empty", "link"}
    assert (tmp_path / "moved").read_text() == "file"


async def test_a_folder_that_cannot_be_made_keeps_it_from_starting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    storage = FolderStorage(tmp_path / "file" / "below")
    with refuses(Problem.NOT_A_FOLDER):
        await storage.start()
    await storage.close()


# a service that is not root


def test_a_service_that_is_not_root_does_the_same() -> None:
    async def use(root: Path) -> None:
        storage = FolderStorage(root)
        await storage.start()
        home = await Home.make(storage)
        suite = TestFolderStorage()
        for test in (
            suite.test_a_file_that_may_not_be_read_is_not,
            suite.test_a_file_that_may_not_be_written_to_is_not,
            suite.test_a_folder_that_may_not_be_entered_is_not,
            suite.test_in_a_folder_that_may_not_be_changed_nothing_is,
            suite.test_a_folder_with_something_in_it_is_removed_only_if_that_is_said,
        ):
            await test(await Home.make(storage))
        # the service removes what its user has closed
        await home.write("a/b/file", b"x")
        await home.chmod("a/b", 0o000)
        await home.chmod("a", 0o500)
        assert await storage.delete(home.at("a"), "", recursive=True)
        await storage.close()

    in_a_child_that_is_nobody(use)


def in_a_child_that_is_nobody(use: Callable[[Path], Coroutine[Any, Any, None]]) -> None:
    """Run `use` on a folder in a process without root's rights; where we have none, in this one."""
    with tempfile.TemporaryDirectory() as base:
        if os.geteuid() != 0:
            asyncio.run(use(Path(base)))
            return
        os.chown(base, 65534, 65534)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                asyncio.run(use(Path(base)))
                status = 0
            except BaseException as error:
                os.write(2, f"{error!r}\n".encode())
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
