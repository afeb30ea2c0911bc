"""Copies of folders: whole or not there, never outside of the agent's own folder."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from pai_scheduler.engine.agent.folders import FolderError, Folders

KEY, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "folders")


def archive(*entries: tarfile.TarInfo, data: bytes = b"") -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as made:
        for entry in entries:
            entry.size = len(data) if entry.isfile() else 0
            made.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, target, mode
    return made


def folder(name: str, mode: int = 0o755) -> tarfile.TarInfo:
    return entry(name, tarfile.DIRTYPE, mode=mode)


async def send(folders: Folders, sent: bytes, key: str = KEY, name: str = "code") -> Path:
    copy = folders.begin(key, name)
    try:
        for begin in range(0, len(sent), 700):
            await copy.add(sent[begin : begin + 700])
        return await copy.finish()
    except BaseException:
        await copy.give_up()
        raise


async def test_a_copy_is_there_when_it_is_whole(folders: Folders) -> None:
    sent = archive(folder("code"), entry("code/a file"), data=b"x" * 5000)
    copy = folders.begin(KEY, "code")
    await copy.add(sent[:3000])
    assert folders.find(KEY, "code") is None
    await copy.add(sent[3000:])
    place = await copy.finish()
    assert place == folders.find(KEY, "code")
    assert (place / "a file").read_bytes() == b"x" * 5000
    assert folders.find(KEY, "other") is None
    assert folders.find(OTHER, "code") is None
    assert sorted(place.parent.parent.iterdir()) == [place.parent]


async def test_of_two_who_send_the_same_folder_the_first_stays(folders: Folders) -> None:
    first = folders.begin(KEY, "code")
    await first.add(archive(folder("code"), entry("code/f"), data=b"first"))
    await send(folders, archive(folder("code"), entry("code/f"), data=b"second"))
    place = await first.finish()
    assert (place / "f").read_bytes() == b"second"
    assert list(place.parent.parent.iterdir()) == [place.parent]


@pytest.mark.parametrize(
    "sent",
    [
        archive(folder("code"), entry("code/../../../outside"), data=b"x"),
        archive(folder("code"), entry("/outside"), data=b"x"),
        archive(folder("code"), entry("code/link", tarfile.SYMTYPE, "/etc/passwd")),
        archive(folder("code"), entry("code/link", tarfile.SYMTYPE, "../../../outside")),
        archive(folder("code"), entry("code/link", tarfile.LNKTYPE, "../../outside")),
        archive(folder("code"), entry("code/null", tarfile.CHRTYPE)),
        archive(folder("another"), entry("another/f"), data=b"x"),
        archive(folder("code"), entry("code/f"), data=b"x" * 5000)[:3000],
        b"no archive at all",
        b"",
    ],
    ids=["up", "root", "link", "link up", "hard link", "device", "other name", "cut", "none", "empty"],
)
async def test_what_is_no_copy_of_the_folder_leaves_nothing_anywhere(
    folders: Folders, tmp_path: Path, sent: bytes
) -> None:
    secret = tmp_path / "outside"
    secret.write_bytes(b"secret")
    try:
        place = await send(folders, sent)
    except FolderError:
        assert folders.find(KEY, "code") is None
        assert list((tmp_path / "folders").rglob("*")) == []
    else:
        # "/outside" may become the copy's own; nothing else may
        assert [path.name for path in place.parent.iterdir() if path != place] == ["outside"]
    assert secret.read_bytes() == b"secret"
    assert not Path("/outside").exists()


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "/etc", "a\0b", "a" * 256])
@pytest.mark.parametrize("key", [KEY, "..", "", "A" * 64, KEY + "\n"])
def test_no_key_and_no_name_leads_elsewhere(folders: Folders, key: str, name: str) -> None:
    with pytest.raises(FolderError):
        folders.find(key, name)
    with pytest.raises(FolderError):
        folders.begin(key, name)


async def test_a_copy_that_nobody_may_write_to_is_removed_too(folders: Folders, tmp_path: Path) -> None:
    place = await send(
        folders,
        archive(folder("code"), folder("code/sub"), entry("code/sub/f", mode=0o444), data=b"x"),
    )
    (place / "sub").chmod(0o500)
    place.chmod(0o500)
    await folders.remove(KEY)
    assert list((tmp_path / "folders").iterdir()) == []
    await folders.remove(KEY)


async def test_copies_that_are_not_wanted_go_those_that_are_stay(folders: Folders, tmp_path: Path) -> None:
    sent = archive(folder("code"))
    for key in (KEY, OTHER):
        await send(folders, sent, key)
    unfinished = folders.begin("c" * 64, "code")
    await unfinished.add(sent[:10])
    await folders.keep_only([OTHER])
    assert [path.name for path in (tmp_path / "folders").iterdir()] == [OTHER]
