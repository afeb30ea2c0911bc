"""Reading users' files from a folder: who may read what, and what is no plain file."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pai_scheduler.storage.local import SMALL, LocalStorage, StorageError, storage_for, user_folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    # a name that must be encoded in a URI
    folder = tmp_path / "the storage 100%"
    for name in ("alice", "bob", "Public", "Output/alice", "Output/bob"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text(f"of {name}")
    return folder


async def read(root: Path, path: str, user: str = "alice") -> str:
    return (await LocalStorage(root.as_uri()).read_small(f"{root.as_uri()}/{path}", user)).decode()


async def refusal(root: Path, path: str, user: str = "alice") -> str:
    with pytest.raises(StorageError) as caught:
        await read(root, path, user)
    return str(caught.value)


@pytest.mark.parametrize("path", ["alice/file", "Public/file", "Output/alice/file", "alice//file"])
async def test_a_user_reads_what_is_the_users_own_or_public(root: Path, path: str) -> None:
    assert (await read(root, path)).startswith("of ")


@pytest.mark.parametrize(
    "path",
    ["bob/file", "Output/bob/file", "bob", "file", "alice", "Public", "alicex/file", "", "%62ob/file"],
)
async def test_a_user_does_not_read_what_is_anothers_or_nobodys(root: Path, path: str) -> None:
    assert await refusal(root, path) == (
        f"User alice may not read {root.as_uri()}/{path}. Put the file below {root.as_uri()}/alice/."
    )


@pytest.mark.parametrize(
    "path", ["alice/../bob/file", "alice/%2e%2e/bob/file", "alice/./file", "alice/..%2Fbob/file", "alice/\0"]
)
async def test_a_path_with_dots_is_refused(root: Path, path: str) -> None:
    assert "is no plain path" in await refusal(root, path)


@pytest.mark.parametrize("user", ["Output", "Public"])
async def test_nobody_owns_a_tree_of_all_by_being_called_so(root: Path, user: str) -> None:
    assert "may not read" in await refusal(root, "Output/alice/file", user)


async def test_a_user_called_like_a_path_has_one_folder_and_no_way_into_anothers(root: Path) -> None:
    (root / "alice" / "x").mkdir()
    (root / "alice" / "x" / "file").write_text("alice's")
    assert "may not read" in await refusal(root, "alice/x/file", "alice/x")
    (root / user_folder("alice/x")).mkdir()
    (root / user_folder("alice/x") / "file").write_text("of alice/x")
    assert await read(root, "alice%252Fx/file", "alice/x") == "of alice/x"
    assert "is no plain path" in await refusal(root, "../the%20storage%20100%25/bob/file", "..")


async def test_names_may_be_written_as_they_are_or_encoded(root: Path) -> None:
    (root / "王 小明").mkdir()
    (root / "王 小明" / "登录 文件").write_text("here")
    assert await read(root, "王 小明/登录 文件", "王 小明") == "here"
    assert (
        await read(root, "%E7%8E%8B%20%E5%B0%8F%E6%98%8E/%E7%99%BB%E5%BD%95%20%E6%96%87%E4%BB%B6", "王 小明")
        == "here"
    )


async def test_symbolic_links_are_not_followed_wherever_they_lead(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (root / "alice" / "link").symlink_to(tmp_path / "secret")
    (root / "alice" / "folder").symlink_to(root / "bob")
    assert "symbolic link" in await refusal(root, "alice/link")
    assert "symbolic link" in await refusal(root, "alice/folder/file")


async def test_what_is_no_ordinary_file_is_refused_at_once(root: Path) -> None:
    os.mkfifo(root / "alice" / "pipe")
    (root / "alice" / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(root / "alice")  # the path of a socket must be short
        try:
            listener.bind("socket")
        finally:
            os.chdir(here)
        for name in ("pipe", "folder", "socket"):
            assert (await refusal(root, f"alice/{name}")).endswith(" is no ordinary file.")


async def test_a_file_that_is_not_there_and_one_that_is_too_long_are_named(root: Path) -> None:
    assert await refusal(root, "alice/none") == f"There is no file {root.as_uri()}/alice/none."
    (root / "alice" / "long").write_bytes(b"x" * SMALL)
    assert len(await read(root, "alice/long")) == SMALL
    (root / "alice" / "long").write_bytes(b"x" * (SMALL + 1))
    assert (await refusal(root, "alice/long")).endswith(" is longer than 64 KiB.")


async def test_another_storage_is_named_with_the_one_there_is(root: Path) -> None:
    with pytest.raises(StorageError) as caught:
        await LocalStorage(root.as_uri()).read_small("hdfs://far/alice/file", "alice")
    assert str(caught.value) == (
        f"hdfs://far/alice/file is not in the cluster's storage, which is {root.as_uri()}."
    )


def test_only_folders_of_this_machine_are_read_by_the_scheduler() -> None:
    assert storage_for("file:///data") is not None
    assert storage_for("hdfs://host:9000") is None
