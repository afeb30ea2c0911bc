"""Downloads from a real scheduler: only what changed, on where it broke off, nothing out of the tree."""

from __future__ import annotations

import os
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.storage import transfer
from pai_scheduler.client.storage.client import FilesClient, FilesError
from pai_scheduler.client.storage.download import download
from pai_scheduler.client.storage.transfer import TransferProgress, part_name
from tests.scheduler.client.storage.cutting import cutting
from tests.scheduler.client.storage.test_client import AWKWARD
from tests.testbed.scheduler import RunningScheduler

LARGE = os.urandom(3_000_000)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "_PAUSE", 0.01)


def tree(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


async def fill(files: FilesClient, home: str) -> None:
    await files.write(f"{home}/sub/{AWKWARD}", b"awkward")
    await files.write(f"{home}/large", LARGE)
    await files.write(f"{home}/nothing", b"")
    await files.mkdirs(f"{home}/sub/empty")


async def test_a_tree_is_downloaded_with_its_times_and_empty_folders(
    files: FilesClient, home: str, folder: Path
) -> None:
    await fill(files, home)
    told: list[TransferProgress] = []
    outcome = await download(files, home, folder / "new" / "x", told.append)
    assert tree(folder / "new" / "x") == ["large", "nothing", "sub", f"sub/{AWKWARD}", "sub/empty"]
    assert (folder / "new/x/large").read_bytes() == LARGE
    for name in ("large", f"sub/{AWKWARD}"):
        modified = (await files.status(f"{home}/{name}")).modified
        assert (folder / "new" / "x" / name).stat().st_mtime_ns // 1_000_000 == modified
    assert (outcome.files, outcome.length, outcome.complete) == (3, 3_000_007, True)
    assert (told[-1].files_done, told[-1].bytes_done, told[-1].bytes_total) == (3, 3_000_007, 3_000_007)


async def test_a_second_download_fetches_only_what_changed(
    files: FilesClient, home: str, folder: Path
) -> None:
    await fill(files, home)
    await download(files, home, folder)
    assert (await download(files, home, folder)).same == 3
    await files.write(f"{home}/large", b"new", overwrite=True)
    (folder / "nothing").write_bytes(b"changed here")
    again = await download(files, home, folder)
    assert (again.files, again.same, again.length) == (2, 1, 3)
    assert (folder / "large").read_bytes() == b"new"
    assert (folder / "nothing").read_bytes() == b""


async def test_one_file_gets_the_name_that_is_said(files: FilesClient, home: str, folder: Path) -> None:
    await files.write(f"{home}/a", b"1")
    await download(files, f"{home}/a", folder / "b")
    assert tree(folder) == ["b"]
    with pytest.raises(FilesError):
        await download(files, f"{home}/never", folder / "c")
    assert tree(folder) == ["b"]


async def test_a_broken_connection_is_gone_on_with(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    large = os.urandom(9_000_000)
    await files.write(f"{home}/large", large)
    async with cutting(scheduler.url) as way, FilesClient(way.url, "token-of-alice") as client:
        way.down, way.cuts = 4_000_000, 3
        await download(client, f"{home}/large", folder / "large")
        assert way.cuts < 3
    assert (folder / "large").read_bytes() == large
    assert tree(folder) == ["large"]


async def test_a_part_that_is_here_is_gone_on_with(files: FilesClient, home: str, folder: Path) -> None:
    await files.write(f"{home}/large", LARGE)
    info = await files.status(f"{home}/large")
    # what is here already is not fetched again: it can be told by what is in it
    (folder / part_name("large", info.length, info.modified)).write_bytes(b"x" * 2_000_000)
    await download(files, f"{home}/large", folder / "large")
    assert (folder / "large").read_bytes() == b"x" * 2_000_000 + LARGE[2_000_000:]
    assert tree(folder) == ["large"]


async def test_the_part_of_another_state_is_not(files: FilesClient, home: str, folder: Path) -> None:
    await files.write(f"{home}/large", LARGE)
    info = await files.status(f"{home}/large")
    (folder / part_name("large", info.length, info.modified - 1)).write_bytes(b"x")
    (folder / part_name("large", info.length, info.modified)).write_bytes(LARGE + b"too long")
    await download(files, f"{home}/large", folder / "large")
    assert (folder / "large").read_bytes() == LARGE


async def test_nothing_is_written_through_a_link(
    files: FilesClient, home: str, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_bytes(b"precious")
    await files.write(f"{home}/sub/evil", b"1")
    await files.write(f"{home}/file", b"2")
    await files.write(f"{home}/parted", b"3")
    info = await files.status(f"{home}/parted")
    (folder / "sub").symlink_to(outside)
    (folder / "file").symlink_to(outside / "precious")
    (folder / part_name("parted", info.length, info.modified)).symlink_to(outside / "precious")
    outcome = await download(files, home, folder)
    assert tree(outside) == ["precious"]
    assert (outside / "precious").read_bytes() == b"precious"
    # a link in a file's place is replaced
    assert (folder / "file").read_bytes() == b"2"
    assert not (folder / "file").is_symlink()
    assert {item.path.rpartition("/")[2] for item in outcome.left_out} == {"sub", "evil", "parted"}
    assert not outcome.complete


@pytest.mark.parametrize("name", ["..", ".", "../up", "a/../../up", "/etc/x", "nul\0"])
async def test_a_name_that_leads_elsewhere_is_left_out(folder: Path, name: str) -> None:
    # no storage of ours has such names: whatever else answers might
    status = {
        "pathSuffix": name,
        "type": "FILE",
        "length": 1,
        "modificationTime": 1,
        "permission": "644",
        "owner": "o",
        "group": "g",
    }

    def answer(request: httpx.Request) -> httpx.Response:
        match request.url.params["op"]:
            case "GETFILESTATUS":
                return httpx.Response(200, json={"FileStatus": {**status, "type": "DIRECTORY"}})
            case "LISTSTATUS_BATCH":
                listed = {"FileStatuses": {"FileStatus": [status]}}
                listing = {"partialListing": listed, "remainingEntries": 0}
                return httpx.Response(200, json={"DirectoryListing": listing})
        return httpx.Response(200, content=b"1")

    async with FilesClient("http://evil", "t", transport=httpx.MockTransport(answer)) as client:
        outcome = await download(client, "/x", folder / "in")
    assert [str(item.reason) for item in outcome.left_out] == [
        f"{name!r} is no name that a file can have here."
    ]
    assert tree(folder) == ["in"]


async def test_a_file_that_changes_meanwhile_is_not_put_in_place(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    await files.write(f"{home}/large", LARGE)
    changed = False

    async def change(request: httpx.Request) -> None:
        nonlocal changed
        if request.url.params["op"] == "OPEN" and not changed:
            changed = True
            await files.write(f"{home}/large", LARGE[::-1], overwrite=True)

    async with FilesClient(scheduler.url, "token-of-alice") as client:
        client._http.event_hooks = {"request": [change]}
        outcome = await download(client, f"{home}/large", folder / "large")
    assert "has changed while" in str(outcome.left_out[0].reason)
    assert tree(folder) == []


async def test_a_folder_in_a_files_place_is_said(files: FilesClient, home: str, folder: Path) -> None:
    await files.write(f"{home}/a", b"1")
    await files.write(f"{home}/b", b"1")
    (folder / "a" / "inner").mkdir(parents=True)
    outcome = await download(files, home, folder)
    assert "cannot be written" in str(outcome.left_out[0].reason)
    assert (folder / "b").read_bytes() == b"1"
