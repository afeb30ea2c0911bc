"""The files as users may use them: the trees, what leads to them, and every way into other people's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import SMALL, Files, home
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StorageNames, StoragePath
from pai_scheduler.testing.home import giving, refuses

ALICE = Principal("alice", groups=("vision",))
BOB = Principal("bob", groups=("audio",))
ADMIN = Principal("ruth", admin=True, groups=("vision",))


class Noting(FolderStorage):
    """A folder that notes in whose name it is asked, and which trees are made."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.actors: list[str] = []
        self.made: list[str] = []

    async def make_tree(self, path: StoragePath, owner: str, group: str, permission: int) -> None:
        self.made.append(str(path))
        await super().make_tree(path, owner, group, permission)

    async def create(
        self,
        path: StoragePath,
        actor: str,
        pieces: AsyncIterator[bytes],
        *,
        overwrite: bool = False,
        permission: int | None = None,
    ) -> None:
        self.actors.append(actor)
        await super().create(path, actor, pieces, overwrite=overwrite, permission=permission)

    async def rename(
        self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool = False
    ) -> None:
        self.actors.append(actor)
        await super().rename(source, target, actor, overwrite=overwrite)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
async def storage(root: Path) -> AsyncIterator[Noting]:
    storage = Noting(root)
    yield storage
    await storage.close()


@pytest.fixture
async def files(storage: Noting) -> Files:
    files = Files(storage, StorageNames([storage.root_uri]))
    await files.start()
    return files


def at(text: str) -> StoragePath:
    return StoragePath.parse(text)


async def write(files: Files, principal: Principal, path: str, contents: bytes = b"x") -> None:
    await files.create(principal, at(path), giving([contents]))


async def read(files: Files, principal: Principal, path: str) -> bytes:
    return await files.read_small(principal, at(path))


async def names(
    files: Files, principal: Principal, path: str, after: str = "", limit: int | None = None
) -> list[str]:
    return [entry.path.name for entry in (await files.list(principal, at(path), after, limit)).entries]


def everything(files: Files, principal: Principal, path: StoragePath) -> list[Coroutine[Any, Any, object]]:
    """List all that can be done with a path."""
    own = home(principal.name) / "taken"

    async def opening() -> None:
        async with files.open(principal, path):
            pass

    return [
        opening(),
        files.status(principal, path),
        files.list(principal, path),
        files.read_small(principal, path),
        files.summary(principal, path),
        files.checksum(principal, path),
        files.check_access(principal, path, "r--"),
        files.copy(principal, path, own),
        files.rename(principal, path, own),
        *writing(files, principal, path),
    ]


def writing(files: Files, principal: Principal, path: StoragePath) -> list[Coroutine[Any, Any, object]]:
    """List all that can be done to a path."""
    own = home(principal.name) / "own"
    return [
        files.create(principal, path, giving([b"new"])),
        files.create(principal, path, giving([b"new"]), overwrite=True),
        files.append(principal, path, giving([b"new"])),
        files.truncate(principal, path, 0),
        files.concat(principal, path, [own]),
        files.concat(principal, own, [path]),
        files.check_access(principal, path, "-w-"),
        files.mkdirs(principal, path),
        files.mkdirs(principal, path / "below"),
        files.copy(principal, own, path),
        files.copy(principal, own, path, overwrite=True),
        files.rename(principal, own, path),
        files.rename(principal, own, path, overwrite=True),
        files.delete(principal, path),
        files.delete(principal, path, recursive=True),
        files.set_permission(principal, path, 0o777),
        files.set_times(principal, path, 1, 1),
    ]


def everything_on_disk(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return what is there, with permissions, times and contents; not when folders were changed."""
    return {
        str(path.relative_to(root)): (
            path.lstat().st_mode,
            path.lstat().st_mtime_ns if path.is_file() else 0,
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in sorted(root.rglob("*"))
    }


# other people's


@pytest.mark.parametrize(
    "path",
    [
        "/bob", "/bob/secret", "/bob/nothing", "/bob/folder", "/Output/bob", "/Output/bob/secret",
        "/Container/bob/secret", "/Shared/audio", "/Shared/audio/secret", "/.uploads", "/.uploads/x",
        "/.hidden", "/nobody/x", "/Shared/alice/x", "/%61lice/x",
    ],
)  # fmt: skip
async def test_nothing_can_be_done_with_what_is_not_ones_own(files: Files, root: Path, path: str) -> None:
    await write(files, BOB, "/bob/secret")
    await files.mkdirs(BOB, at("/bob/folder"))
    await write(files, BOB, "/Output/bob/secret")
    await write(files, BOB, "/Shared/audio/secret")
    await write(files, ADMIN, "/Container/bob/secret")
    await write(files, ALICE, "/alice/own")
    before = everything_on_disk(root)
    for attempt in everything(files, ALICE, at(path)):
        with refuses(Problem.DENIED):
            await attempt
    assert everything_on_disk(root) == before


@pytest.mark.parametrize("path", ["/Public/data", "/Public", "/Public/new", "/Container/alice/image"])
async def test_what_may_only_be_read_is_not_changed(files: Files, root: Path, path: str) -> None:
    await write(files, ADMIN, "/Public/data")
    await write(files, ADMIN, "/Container/alice/image")
    await write(files, ALICE, "/alice/own")
    before = everything_on_disk(root)
    for attempt in writing(files, ALICE, at(path)):
        with refuses(Problem.DENIED):
            await attempt
    assert everything_on_disk(root) == before
    assert await read(files, ALICE, "/Public/data") == b"x"
    assert await read(files, ALICE, "/Container/alice/image") == b"x"
    await files.copy(ALICE, at("/Public/data"), at("/alice/copy"))
    assert await read(files, ALICE, "/alice/copy") == b"x"


@pytest.mark.parametrize("principal", [ALICE, ADMIN], ids=["user", "administrator"])
@pytest.mark.parametrize("path", ["/Output", "/Shared", "/Container", "/", "/.uploads", "/.uploads/x"])
async def test_above_the_trees_nothing_is_written_by_anybody(
    files: Files, root: Path, principal: Principal, path: str
) -> None:
    await write(files, principal, str(home(principal.name) / "own"))
    before = everything_on_disk(root)
    for attempt in (
        files.create(principal, at(path), giving([b"x"]), overwrite=True),
        files.append(principal, at(path), giving([b"x"])),
        files.copy(principal, home(principal.name) / "own", at(path), overwrite=True),
        files.rename(principal, home(principal.name) / "own", at(path)),
        files.rename(principal, at(path), home(principal.name) / "taken"),
        files.delete(principal, at(path), recursive=True),
        files.set_permission(principal, at(path), 0o777),
        files.set_times(principal, at(path), 1, 1),
    ):
        with refuses(Problem.DENIED):
            await attempt
    assert everything_on_disk(root) == before


async def test_links_that_somebody_planted_lead_nowhere(files: Files, root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    await write(files, BOB, "/bob/secret", b"bob's")
    await write(files, ALICE, "/alice/own")
    for name, target in (
        ("out", tmp_path / "secret"),
        ("bob", root / "bob"),
        ("relative", Path("../bob")),
        ("root", root),
        ("uploads", root / ".uploads"),
    ):
        (root / "alice" / name).symlink_to(target)
    assert await names(files, ALICE, "/alice") == ["own"]
    before = everything_on_disk(root)
    planted = ("out", "bob/secret", "relative/secret", "root/bob/secret", "uploads")
    for path in (f"/alice/{name}" for name in planted):
        for attempt in (
            files.status(ALICE, at(path)),
            read(files, ALICE, path),
            files.copy(ALICE, at(path), at("/alice/copy")),
            files.append(ALICE, at(path), giving([b"x"])),
            files.set_permission(ALICE, at(path), 0o777),
            files.create(ALICE, at(path) / "new", giving([b"x"])),
        ):
            with refuses(Problem.NOT_FOUND):
                await attempt
    assert everything_on_disk(root) == before
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    "name", ["Public", "Output", ".uploads", "%2e", "..", ".", "a/../bob", "bob/x", "/bob", "Shared"]
)
async def test_a_user_with_a_hard_name_has_files_and_gets_at_nobody_elses(files: Files, name: str) -> None:
    principal = Principal(name, groups=(name,))
    await write(files, BOB, "/bob/secret")
    await write(files, ADMIN, "/Public/data")
    own = home(name)
    await write(files, principal, str(own / "file"), b"own")
    assert await read(files, principal, str(own / "file")) == b"own"
    assert own.name in await names(files, principal, "/")
    for path in ("/bob/secret", "/bob"):
        for attempt in everything(files, principal, at(path)):
            with refuses(Problem.DENIED):
                await attempt
    for attempt in writing(files, principal, at("/Public/data")):
        with refuses(Problem.DENIED):
            await attempt
    with refuses(Problem.DENIED):
        await files.status(ALICE, own / "file")


async def test_leaving_a_group_ends_access_to_its_files(files: Files) -> None:
    await write(files, ALICE, "/Shared/vision/file", b"shared")
    assert await read(files, Principal("carol", groups=("vision",)), "/Shared/vision/file") == b"shared"
    left = Principal("alice")
    for attempt in everything(files, left, at("/Shared/vision/file")):
        with refuses(Problem.DENIED):
            await attempt
    assert "vision" not in await names(files, left, "/Shared")


@pytest.mark.parametrize("principal", [ALICE, ADMIN], ids=["user", "administrator"])
@pytest.mark.parametrize("path", ["/", "/Output", "/Shared", "/Container", "/.uploads"])
async def test_no_folder_is_handed_out_that_holds_other_peoples(
    files: Files, principal: Principal, path: str
) -> None:
    await names(files, principal, "/")
    with refuses(Problem.DENIED):
        await files.host_folder(principal, at(path))


async def test_a_folder_is_handed_out_to_who_may_read_it_and_over_no_link(files: Files, root: Path) -> None:
    await write(files, BOB, "/bob/data/file")
    await write(files, ADMIN, "/Public/data/file")
    await files.mkdirs(ALICE, at("/alice/data"))
    (root / "alice" / "link").symlink_to(root / "bob")
    assert await files.host_folder(ALICE, at("/alice/data")) == root / "alice" / "data"
    assert await files.host_folder(ALICE, at("/Public/data")) == root / "Public" / "data"
    with refuses(Problem.DENIED):
        await files.host_folder(ALICE, at("/bob/data"))
    for name in ("/alice/link", "/alice/link/data", "/alice/nothing"):
        with refuses(Problem.NOT_FOUND):
            await files.host_folder(ALICE, at(name))


# moving and removing


@pytest.mark.parametrize("path", ["/alice", "/Output/alice", "/Shared/vision"])
async def test_a_tree_itself_cannot_be_moved_or_deleted(files: Files, path: str) -> None:
    await write(files, ALICE, f"{path}/file", b"kept")
    await files.mkdirs(ALICE, at("/alice/empty"))
    await files.mkdirs(ALICE, at("/Shared/vision/empty"))
    for attempt in (
        files.delete(ALICE, at(path), recursive=True),
        files.delete(ADMIN, at(path), recursive=True),
        files.rename(ALICE, at(path), at("/alice/empty/taken")),
        files.rename(ADMIN, at(path), at("/ruth/taken")),
        files.rename(ALICE, at("/alice/empty"), at(path), overwrite=True),
        files.rename(ALICE, at("/Shared/vision/empty"), at(path), overwrite=True),
    ):
        with refuses(Problem.DENIED):
            await attempt
    assert await read(files, ALICE, f"{path}/file") == b"kept"


async def test_files_are_moved_between_ones_own_trees_and_not_out_of_them(files: Files) -> None:
    await write(files, ALICE, "/alice/file", b"moved")
    await files.rename(ALICE, at("/alice/file"), at("/Shared/vision"))
    await files.rename(ALICE, at("/Shared/vision/file"), at("/Output/alice/renamed"))
    assert await read(files, ALICE, "/Output/alice/renamed") == b"moved"
    for target in (
        "/bob/file",
        "/bob",
        "/Public/file",
        "/Shared/audio/file",
        "/.uploads/file",
        "/Output/bob",
    ):
        with refuses(Problem.DENIED):
            await files.rename(ALICE, at("/Output/alice/renamed"), at(target))


async def test_a_folder_is_not_moved_into_itself(files: Files) -> None:
    await files.mkdirs(ALICE, at("/alice/a/b"))
    for target in ("/alice/a", "/alice/a/b", "/alice/a/b/c"):
        with refuses(Problem.INVALID):
            await files.rename(ALICE, at("/alice/a"), at(target))
    assert await names(files, ALICE, "/alice/a") == ["b"]


# what is seen above the trees


async def test_everybody_sees_the_way_to_their_own_from_the_start(files: Files) -> None:
    assert await names(files, ALICE, "/") == ["Output", "Public", "Shared", "alice"]
    assert await names(files, ALICE, "/Output") == ["alice"]
    assert await names(files, ALICE, "/Shared") == ["vision"]
    assert await names(files, ALICE, "/alice") == []


@pytest.mark.parametrize(
    "path", ["/alice", "/Output/alice", "/Output", "/Shared", "/Shared/vision", "/Public", "/"]
)
async def test_ones_own_trees_are_there_before_anything_is_in_them(files: Files, path: str) -> None:
    assert (await files.status(ALICE, at(path))).is_folder


async def test_nobody_sees_whom_else_there_is(files: Files) -> None:
    for principal in (BOB, Principal("carol"), ADMIN):
        await names(files, principal, "/")
    assert await names(files, ALICE, "/") == ["Output", "Public", "Shared", "alice"]
    assert await names(files, ALICE, "/Output") == ["alice"]
    assert (await files.status(ALICE, at("/"))).children == 4
    assert (await files.status(ALICE, at("/Output"))).children == 1
    assert await names(files, ADMIN, "/") == ["Output", "Public", "Shared", "alice", "bob", "carol", "ruth"]


async def test_above_the_trees_only_what_is_open_to_the_caller_is_counted(files: Files) -> None:
    await write(files, BOB, "/bob/secret", b"x" * 1000)
    await write(files, ALICE, "/alice/file", b"x" * 10)
    await write(files, ALICE, "/Output/alice/job/result", b"x" * 5)
    summary = await files.summary(ALICE, at("/"))
    # the folders: /, /alice, /Output with two below it, /Public, /Shared with one below it
    assert (summary.files, summary.length, summary.folders) == (2, 15, 8)
    assert (await files.summary(ADMIN, at("/"))).length == 1015


async def test_the_way_to_the_trees_is_listed_in_parts_too(files: Files) -> None:
    assert await names(files, ALICE, "/", limit=2) == ["Output", "Public"]
    assert await names(files, ALICE, "/", after="Public", limit=2) == ["Shared", "alice"]
    assert (await files.list(ALICE, at("/"), "Output", 1)).remaining == 2
    assert (await files.list(ALICE, at("/"), "alice", 1)).remaining == 0


# in whose name


async def test_a_user_works_under_the_own_name(files: Files, storage: Noting) -> None:
    for path in ("/alice/x", "/Output/alice/x", "/Shared/vision/x"):
        await write(files, ALICE, path)
    assert storage.actors == ["alice", "alice", "alice"]


async def test_what_somebody_closed_to_oneself_is_closed_and_can_be_opened(files: Files) -> None:
    await write(files, ALICE, "/alice/closed")
    await files.set_permission(ALICE, at("/alice/closed"), 0o000)
    for attempt in (
        read(files, ALICE, "/alice/closed"),
        files.append(ALICE, at("/alice/closed"), giving([b"y"])),
        files.checksum(ALICE, at("/alice/closed")),
        files.copy(ALICE, at("/alice/closed"), at("/alice/copy")),
    ):
        with refuses(Problem.DENIED):
            await attempt
    await files.set_permission(ALICE, at("/alice"), 0o000)
    with refuses(Problem.DENIED):
        await names(files, ALICE, "/alice")
    await files.set_permission(ALICE, at("/alice"), 0o700)
    await files.set_permission(ALICE, at("/alice/closed"), 0o400)
    assert await read(files, ALICE, "/alice/closed") == b"x"


async def test_an_administrator_works_under_the_own_name_where_others_could_too(
    files: Files, storage: Noting
) -> None:
    for path in ("/ruth/x", "/Output/ruth/x", "/Shared/vision/x"):
        await write(files, ADMIN, path)
    assert storage.actors == ["ruth", "ruth", "ruth"]
    storage.actors.clear()
    for path in ("/alice/x", "/Output/alice/x", "/Shared/audio/x", "/Public/x", "/Container/alice/x"):
        await write(files, ADMIN, path)
    await files.rename(ADMIN, at("/alice/x"), at("/ruth/y"))
    await files.rename(ADMIN, at("/ruth/y"), at("/alice/x"))
    assert storage.actors == [""] * 7


async def test_a_tree_that_an_administrator_writes_to_first_is_its_owners(files: Files, root: Path) -> None:
    await write(files, ADMIN, "/alice/welcome")
    assert (root / "alice").stat().st_mode & 0o777 == 0o700
    await write(files, ADMIN, "/Shared/vision/welcome")
    assert (root / "Shared/vision").stat().st_mode & 0o777 == 0o770
    with refuses(Problem.IS_A_FOLDER):
        await write(files, ADMIN, "/carol")


async def test_looking_for_somebody_elses_tree_does_not_make_it(files: Files, storage: Noting) -> None:
    with refuses(Problem.NOT_FOUND):
        await files.status(ADMIN, at("/mistyped"))
    assert not await files.delete(ADMIN, at("/mistyped/x"), recursive=True)
    assert "/mistyped" not in storage.made


async def test_a_tree_is_made_once(files: Files, storage: Noting) -> None:
    for number in range(3):
        await write(files, ALICE, f"/alice/{number}")
        await names(files, ALICE, "/")
    assert sorted(storage.made) == sorted(set(storage.made))


# small files


async def test_a_small_file_is_read_whole_and_no_larger_one(files: Files) -> None:
    await write(files, ALICE, "/alice/small", b"x" * SMALL)
    assert len(await read(files, ALICE, "/alice/small")) == SMALL
    await write(files, ALICE, "/alice/large", b"x" * (SMALL + 1))
    with pytest.raises(StorageError) as caught:
        await read(files, ALICE, "/alice/large")
    assert caught.value.problem is Problem.TOO_LARGE
    assert str(caught.value) == "/alice/large is longer than 64 KiB."


async def test_what_is_ones_own_can_be_used_in_every_way(files: Files) -> None:
    path = at("/alice/a/file")
    await files.mkdirs(ALICE, at("/alice/a"))
    await files.mkdirs(ALICE, at("/"))
    await files.create(ALICE, path, giving([b"one "]), permission=0o640)
    await files.append(ALICE, path, giving([b"two"]))
    async with files.open(ALICE, path, 4, 2) as file:
        assert [piece async for piece in file.pieces] == [b"tw"]
    await files.set_times(ALICE, path, 1_234_567_890_123, None)
    await files.set_permission(ALICE, path, 0o600)
    status = await files.status(ALICE, path)
    assert (status.length, status.modified, status.permission, status.owner) == (
        7,
        1_234_567_890_123,
        0o600,
        "alice",
    )
    await files.copy(ALICE, path, at("/alice/copy"))
    assert await files.checksum(ALICE, path) == await files.checksum(ALICE, at("/alice/copy"))
    assert (await files.summary(ALICE, at("/alice"))).length == 14
    assert (await files.list(ALICE, at("/alice"), "a", 1)).entries[0].path == at("/alice/copy")
    assert await files.delete(ALICE, at("/alice/a"), recursive=True)
    assert await names(files, ALICE, "/alice") == ["copy"]


# what the service puts there for a user


async def test_what_is_delivered_is_its_users_to_read_and_nobodys_to_change(files: Files) -> None:
    path = at("/Container/alice/alice~one/ssh/keyFiles/alice~one")
    await files.deliver("alice", path, b"key")
    assert await read(files, ALICE, str(path)) == b"key"
    status = await files.status(ALICE, path)
    assert (status.permission, status.owner) == (0o600, "alice")
    assert (await files.status(ALICE, path.parent)).permission == 0o700
    await files.deliver("alice", path, b"another")
    assert await read(files, ALICE, str(path)) == b"another"
    with refuses(Problem.DENIED):
        await files.delete(ALICE, path)
    with refuses(Problem.DENIED):
        await files.read_small(BOB, path)


async def test_what_was_delivered_is_listed_and_withdrawn(files: Files) -> None:
    assert await files.delivered() == []
    for user in ("alice", "bob"):
        await files.deliver(user, at(f"/Container/{user}/{user}~one/key"), b"key")
    found = await files.delivered()
    assert sorted(map(str, found)) == ["/Container/alice/alice~one", "/Container/bob/bob~one"]
    await files.withdraw(at("/Container/alice/alice~one"))
    await files.withdraw(at("/Container/alice/alice~one"))
    assert [str(path) for path in await files.delivered()] == ["/Container/bob/bob~one"]


@pytest.mark.parametrize(
    "path", ["/alice/x/y", "/Container/bob/x/y", "/Container/alice", "/Container", "/", "/Public/x/y"]
)
async def test_nothing_is_put_or_removed_elsewhere(files: Files, path: str) -> None:
    with pytest.raises(ValueError, match="put"):
        await files.deliver("alice", at(path), b"x")
    if not path.startswith("/Container/bob"):
        with pytest.raises(ValueError, match="put"):
            await files.withdraw(at(path))
