"""WebHDFS as Hadoop's document has it: each operation, its answer, its refusals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.storage.folder import FolderStorage

from .gateway import Gateway, open_gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    async with open_gateway(tmp_path, FolderStorage(tmp_path / "files")) as gateway:
        yield gateway


async def test_a_file_is_written_in_two_steps_and_read_in_two(gateway: Gateway) -> None:
    async with gateway.client() as alice, gateway.client("") as stranger:
        first = await alice.put("/alice/new/file", params={"op": "CREATE"})
        assert (first.status_code, first.content) == (307, b"")
        second = await stranger.put(first.headers["Location"], content=b"hello")
        assert (second.status_code, second.content) == (201, b"")
        first = await alice.get("/alice/new/file", params={"op": "OPEN"})
        assert first.status_code == 307
        second = await stranger.get(first.headers["Location"])
        assert (second.status_code, second.content) == (200, b"hello")


async def test_the_library_uploads_and_downloads(gateway: Gateway, tmp_path: Path) -> None:
    there = tmp_path / "there"
    (there / "deep").mkdir(parents=True)
    (there / "deep" / "file").write_bytes(b"x" * 3_000_000)
    client = gateway.library()

    def use() -> None:
        client.upload("/alice/data", str(there))
        client.download("/alice/data", str(tmp_path / "back"))

    await asyncio.to_thread(use)
    assert (tmp_path / "back" / "deep" / "file").read_bytes() == b"x" * 3_000_000
