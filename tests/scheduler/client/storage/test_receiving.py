"""Files come from whatever source into their places, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from pai_scheduler.client.storage.download import RemoteFile, receive, receive_tree
from pai_scheduler.client.storage.transfer import LeftOut, part_name
from pai_scheduler.i18n import msg

FILE = RemoteFile("/x/a", "a", False, 5, 1_000_500)


class Memory:
    """A source whose files all hold `hello`; `exact` to a second, as a task's are."""

    exact = 1000

    def __init__(self, *, changes: bool = False) -> None:
        self.changes = changes
        self.fetched: list[tuple[str, int]] = []

    async def fetch(self, file: RemoteFile, descriptor: int, _local: Path, at: Callable[[int], None]) -> None:
        begin = os.fstat(descriptor).st_size
        self.fetched.append((file.name, begin))
        os.pwrite(descriptor, b"hello"[begin:], begin)
        at(5)

    async def is_unchanged(self, _file: RemoteFile) -> bool:
        return not self.changes


async def test_a_part_is_gone_on_with_and_then_has_its_name_and_time(tmp_path: Path) -> None:
    (tmp_path / part_name("a", 5, 1_000_500)).write_bytes(b"he")
    source = Memory()
    result = await receive(source, [(FILE, tmp_path / "a")], None)
    assert (result.files, result.length, source.fetched) == (1, 5, [("a", 2)])
    assert (tmp_path / "a").read_bytes() == b"hello"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    os.utime(tmp_path / "a", (1000, 1000))
    assert (await receive(source, [(FILE, tmp_path / "a")], None)).same == 1, "as exact as the source is"


async def test_what_changed_meanwhile_gets_no_name_and_is_told(tmp_path: Path) -> None:
    result = await receive(Memory(changes=True), [(FILE, tmp_path / "a")], None)
    assert [left.path for left in result.left_out] == ["/x/a"]
    assert list(tmp_path.iterdir()) == []


async def test_what_would_lead_out_of_the_folder_is_left_out_and_the_rest_comes(tmp_path: Path) -> None:
    async def entries() -> AsyncIterator[RemoteFile]:
        for name in ("../b", "sub", "sub/a"):
            yield RemoteFile(f"/x/{name}", name, name == "sub", 5, 1_000_500, 0o600)

    found_before = [LeftOut("/x/pipe", msg("no file"), failed=False)]
    result = await receive_tree(Memory(), entries(), tmp_path / "new", found_before, None)
    assert [left.path for left in result.left_out] == ["/x/pipe", "/x/../b"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "new", "sub"]
    assert (tmp_path / "new/sub/a").stat().st_mode & 0o777 == 0o600
