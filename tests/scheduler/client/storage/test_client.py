"""The client of the storage, against a real scheduler."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator

import httpx
import pytest

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.client.storage.client import FilesClient, FilesError
from pai_scheduler.rest.address import DEFAULT_URL
from tests.testbed.scheduler import RunningScheduler

#: What may be in a name, and is written in another way in an address.
AWKWARD = "a b%2F&=?#+;é 数据~'\"<>\\|:*.txt"


async def contents(files: FilesClient, path: str, offset: int = 0, length: int | None = None) -> bytes:
    async with files.read(path, offset, length) as pieces:
        return b"".join([piece async for piece in pieces])


async def test_what_is_written_is_read_again_whole_and_in_part(files: FilesClient, home: str) -> None:
    await files.write(f"{home}/x", b"0123456789")
    assert await contents(files, f"{home}/x") == b"0123456789"
    assert await contents(files, f"{home}/x", 3, 4) == b"3456"
    assert await contents(files, f"{home}/x", 8) == b"89"
    await files.append(f"{home}/x", b"ab")
    info = await files.status(f"{home}/x")
    assert (info.name, info.is_folder, info.length, info.owner) == ("x", False, 12, "alice")


async def test_a_stream_of_unknown_length_is_written(files: FilesClient, home: str) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for number in range(3):
            yield bytes([number]) * 100_000

    await files.write(f"{home}/stream", pieces())
    assert (await files.status(f"{home}/stream")).length == 300_000


async def test_what_is_read_comes_as_it_is_not_packed() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        packs = "gzip" in request.headers["Accept-Encoding"]
        return httpx.Response(200, content=b"packed" if packs else b"as it is")

    async with FilesClient("http://hub", "t", transport=httpx.MockTransport(answer)) as client:
        assert await contents(client, "/x", 5) == b"as it is"


@pytest.mark.parametrize("name", [AWKWARD, "%41", "%", "中文 文件夹", "-rf", "..."])
async def test_a_name_may_hold_anything_but_a_slash(files: FilesClient, home: str, name: str) -> None:
    await files.write(f"{home}/{name}", b"1")
    assert [entry.path async for entry in files.iterate(home)] == [f"{home}/{name}"]
    await files.rename(f"{home}/{name}", f"{home}/{name}2")
    assert await contents(files, f"{home}/{name}2") == b"1"
    assert await files.delete(f"{home}/{name}2")


async def test_a_file_is_not_overwritten_unless_asked_for(files: FilesClient, home: str) -> None:
    await files.write(f"{home}/x", b"1")
    with pytest.raises(FilesError) as refusal:
        await files.write(f"{home}/x", b"2")
    assert refusal.value.exception == "FileAlreadyExistsException"
    await files.write(f"{home}/x", b"3", overwrite=True)
    await files.write(f"{home}/y", b"4")
    with pytest.raises(FilesError):
        await files.rename(f"{home}/x", f"{home}/y")
    await files.rename(f"{home}/x", f"{home}/y", overwrite=True)
    assert await contents(files, f"{home}/y") == b"3"


async def test_a_long_listing_comes_in_pages(files: FilesClient, home: str) -> None:
    for number in range(5):
        await files.write(f"{home}/f{number}", b"")
    page = await files.list_page(home, "f1", 2)
    assert [entry.name for entry in page.entries] == ["f2", "f3"]
    assert page.remaining == 1


async def test_a_tree_is_walked_folders_first(
    files: FilesClient, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.client.storage.client.PAGE", 1)
    for name in ("b/inner/x", "a/y", "z"):
        await files.write(f"{home}/{name}", b"12")
    found = [entry.path.removeprefix(f"{home}/") async for entry in files.walk(home)]
    assert found == ["a", "b", "z", "a/y", "b/inner", "b/inner/x"]
    summary = await files.summary(home)
    assert (summary.files, summary.folders, summary.length) == (3, 4, 6)


async def test_a_copy_has_the_same_time_and_times_and_rights_can_be_set(
    files: FilesClient, home: str
) -> None:
    await files.write(f"{home}/x", b"1", permission=0o750)
    assert (await files.status(f"{home}/x")).permission == 0o750
    await files.set_times(f"{home}/x", 1_600_000_000_123)
    await files.copy(f"{home}/x", f"{home}/y")
    assert (await files.status(f"{home}/y")).modified == 1_600_000_000_123
    await files.set_permission(f"{home}/y", 0o600)
    assert (await files.status(f"{home}/y")).permission == 0o600


async def test_a_folder_comes_as_an_archive(files: FilesClient, home: str) -> None:
    await files.write(f"{home}/sub/x", b"12345")
    async with files.archive(home) as pieces:
        archive = zipfile.ZipFile(io.BytesIO(b"".join([piece async for piece in pieces])))
    names = [name for name in archive.namelist() if name.endswith("sub/x")]
    assert [archive.read(name) for name in names] == [b"12345"]


async def test_what_is_not_there_is_none_and_deleting_it_does_nothing(files: FilesClient, home: str) -> None:
    assert await files.find(f"{home}/never") is None
    assert not await files.delete(f"{home}/never")
    with pytest.raises(FilesError) as refusal:
        await contents(files, f"{home}/never")
    assert (refusal.value.status, refusal.value.exception) == (404, "FileNotFoundException")


async def test_a_full_folder_is_deleted_only_with_what_is_in_it(files: FilesClient, home: str) -> None:
    await files.write(f"{home}/sub/x", b"")
    with pytest.raises(FilesError):
        await files.delete(f"{home}/sub")
    assert await files.delete(f"{home}/sub", recursive=True)


async def test_others_files_are_refused_in_the_users_language(scheduler: RunningScheduler) -> None:
    async with FilesClient(scheduler.url, "token-of-bob", locale="zh_CN") as bob:
        assert await bob.home() == "/bob"
        with pytest.raises(FilesError, match="无权读取") as refusal:
            await bob.status("/alice/x")
    assert (refusal.value.status, refusal.value.exception) == (403, "AccessControlException")


@pytest.mark.parametrize("path", ["relative", "/a/../b", "/a/./b", "/a\0b", ""])
async def test_a_path_that_is_none_is_refused_before_anything_is_sent(path: str) -> None:
    async with FilesClient("http://127.0.0.1:1", "t") as files:
        with pytest.raises(FilesError):
            await files.status(path)


async def test_no_answer_a_standby_and_a_broken_connection_are_no_refusals() -> None:
    async with FilesClient("http://127.0.0.1:1", "t") as nobody:
        with pytest.raises(UnreachableError):
            await nobody.home()

    def standby(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(503, json={"code": "StandbyError", "message": "not me"})

    async with FilesClient("http://hub", "t", transport=httpx.MockTransport(standby)) as client:
        with pytest.raises(UnreachableError, match="not me"):
            await client.home()

    async def broken() -> AsyncIterator[bytes]:
        yield b"123"
        raise httpx.ReadError("cut")

    def cut(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=broken())

    async with FilesClient("http://hub", "t", transport=httpx.MockTransport(cut)) as client:
        with pytest.raises(UnreachableError):
            await contents(client, "/x")


async def test_an_answer_that_is_none_of_ours_is_a_refusal_that_may_pass() -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(502, html="<h1>Bad gateway</h1>")

    async with FilesClient("http://hub", "t", transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(FilesError, match="502 Bad Gateway") as refusal:
            await client.home()
    assert refusal.value.may_pass


async def test_address_and_token_come_from_the_environment(
    scheduler: RunningScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PAI_API_URL", "PAI_TOKEN", "JUPYTERHUB_API_TOKEN", "PAI_DEFAULT_FS_URI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PAI_DEFAULT_FS_URI", "hdfs://name:9000")
    async with FilesClient() as client:
        assert client.url == DEFAULT_URL
    monkeypatch.setenv("PAI_DEFAULT_FS_URI", scheduler.url)
    monkeypatch.setenv("PAI_STORAGE_TOKEN", "token-of-bob")
    async with FilesClient() as client:
        assert await client.home() == "/bob"
    monkeypatch.setenv("PAI_API_URL", "http://elsewhere/")
    async with FilesClient() as client:
        assert client.url == "http://elsewhere"


async def test_a_uri_of_the_storage_names_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAI_DEFAULT_FS_URI", "hdfs://name:9000")
    async with FilesClient("http://hub/services/pai", "t") as client:
        for uri in (
            "$PAI_DEFAULT_FS_URI/alice/a%20b",
            "${PAI_DEFAULT_FS_URI}/alice/a%20b",
            "hdfs://name:9000/alice/a%20b",
            "http://hub/services/pai/alice/a%20b",
            "http://hub/services/pai/webhdfs/v1/alice/a%20b",
            "/alice/a b",
        ):
            assert client.resolve(uri) == "/alice/a b"
        assert client.resolve("$PAI_DEFAULT_FS_URI") == "/"
        for other in ("hdfs://other/alice", "hdfs://name:90001/alice", "$PAI_DEFAULT_FS_URIx/a", "alice"):
            with pytest.raises(FilesError):
                client.resolve(other)
