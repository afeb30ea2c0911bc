"""The conformance suite of storages: subclass `StorageConformance` in a storage's test file.

That file provides the fixture `storage`: a started storage. It may be one for all tests, as each works in a
tree of its own. The tests are coroutines: pytest-asyncio runs them with `asyncio_mode = "auto"`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import Storage
from pai_scheduler.testing.home import Broken, Home, Stuck, breaking, giving, refuses

MB = 2**20

#: Names that were somewhere taken for something else.
NAMES = [
    "with space", "100%", "%2e%2e", "%2F", "a+b", "a&b=c;d", "what?", "#1", "~", "back\\slash", "'quoted\"",
    "[a]{b}$c", ".hidden", "...", "-rf", "名字 文件", "été", "e\u0301te\u0301", "😀", "*", "a,b@c", "x" * 255,
]  # fmt: skip


class StorageConformance:
    """The storage protocol's promises, one test each."""

    @pytest.fixture
    async def home(self, storage: Storage) -> AsyncIterator[Home]:
        home = await Home.make(storage)
        yield home
        await home.remove()

    # writing a file

    async def test_what_was_written_in_pieces_is_read_as_one(self, home: Home) -> None:
        await home.write("file", b"one ", b"", b"two ", b"three")
        assert await home.read("file") == b"one two three"
        assert (await home.status("file")).length == 13

    async def test_a_file_may_be_empty(self, home: Home) -> None:
        await home.write("file")
        assert await home.read("file") == b""
        assert (await home.status("file")).length == 0

    async def test_the_folders_above_a_new_file_are_made(self, home: Home) -> None:
        await home.write("a/b/file", b"here")
        assert await home.read("a/b/file") == b"here"
        assert (await home.status("a/b")).permission == 0o755

    async def test_a_file_that_is_there_is_not_written_over_unless_that_is_said(self, home: Home) -> None:
        await home.write("file", b"old")
        with refuses(Problem.EXISTS):
            await home.write("file", b"new")
        assert await home.read("file") == b"old"
        await home.write("file", b"new", overwrite=True)
        assert await home.read("file") == b"new"

    @pytest.mark.parametrize("overwrite", [False, True])
    async def test_a_file_does_not_take_a_folders_place(self, home: Home, overwrite: bool) -> None:
        await home.write("folder/file", b"kept")
        with refuses(Problem.IS_A_FOLDER, Problem.EXISTS):
            await home.write("folder", b"new", overwrite=overwrite)
        assert await home.read("folder/file") == b"kept"

    async def test_there_is_nothing_below_a_file(self, home: Home) -> None:
        await home.write("file", b"kept")
        with refuses(Problem.NOT_A_FOLDER):
            await home.write("file/below", b"new")
        with refuses(Problem.NOT_A_FOLDER):
            await home.mkdirs("file/below")
        with refuses(Problem.NOT_FOUND):
            await home.status("file/below")
        with refuses(Problem.NOT_FOUND):
            await home.read("file/below")
        assert await home.read("file") == b"kept"

    async def test_what_breaks_in_the_middle_leaves_nothing(self, home: Home) -> None:
        with pytest.raises(Broken):
            await home.storage.create(home.at("file"), home.user, breaking(b"x" * 3 * MB))
        assert await home.names() == []
        with refuses(Problem.NOT_FOUND):
            await home.status("file")

    async def test_what_breaks_in_the_middle_leaves_what_was_there_before(self, home: Home) -> None:
        await home.write("file", b"old")
        with pytest.raises(Broken):
            await home.storage.create(home.at("file"), home.user, breaking(b"x" * 3 * MB), overwrite=True)
        assert await home.names() == ["file"]
        assert await home.read("file") == b"old"

    @pytest.mark.parametrize("overwrite", [False, True])
    async def test_a_file_has_its_name_only_when_it_is_whole(self, home: Home, overwrite: bool) -> None:
        if overwrite:
            await home.write("file", b"old")
        before = await home.names()
        pieces = Stuck(b"x" * MB, b"y")
        writing = asyncio.create_task(
            home.storage.create(home.at("file"), home.user, aiter(pieces), overwrite=overwrite)
        )
        await pieces.reached.wait()
        assert await home.names() == before
        if overwrite:
            assert await home.read("file") == b"old"
        pieces.go.set()
        await writing
        assert await home.names() == ["file"]
        assert (await home.status("file")).length == MB + 1

    @pytest.mark.parametrize("overwrite", [False, True])
    async def test_a_cancelled_upload_leaves_nothing(self, home: Home, overwrite: bool) -> None:
        if overwrite:
            await home.write("file", b"old")
        before = await home.names()
        pieces = Stuck(b"x" * MB)
        writing = asyncio.create_task(
            home.storage.create(home.at("file"), home.user, aiter(pieces), overwrite=overwrite)
        )
        await pieces.reached.wait()
        writing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await writing
        assert await home.names() == before
        if overwrite:
            assert await home.read("file") == b"old"

    async def test_the_second_of_two_creators_of_a_file_is_refused(self, home: Home) -> None:
        first, second = Stuck(b"first"), Stuck(b"second")
        writing = [
            asyncio.create_task(home.storage.create(home.at("file"), home.user, aiter(pieces)))
            for pieces in (first, second)
        ]
        done = asyncio.gather(*writing, return_exceptions=True)
        # the second may have been refused already, before its pieces were asked for
        waiting = [asyncio.create_task(pieces.reached.wait()) for pieces in (first, second)]
        await asyncio.wait([*waiting, *writing], return_when=asyncio.FIRST_COMPLETED)
        first.go.set()
        second.go.set()
        results = await done
        for task in waiting:
            task.cancel()
        refused = [result for result in results if result is not None]
        assert len(refused) == 1
        assert isinstance(refused[0], StorageError)
        assert refused[0].problem is Problem.EXISTS
        assert await home.read("file") == (b"first" if results[0] is None else b"second")
        assert await home.names() == ["file"]

    # reading a file

    async def test_a_part_of_a_file_is_read(self, home: Home) -> None:
        await home.write("file", b"0123456789")
        parts: tuple[tuple[int, int | None, bytes], ...] = (
            (0, None, b"0123456789"),
            (3, None, b"3456789"),
            (3, 4, b"3456"),
            (8, 100, b"89"),
            (10, None, b""),
            (0, 0, b""),
        )
        for offset, length, part in parts:
            assert await home.read("file", offset, length) == part

    async def test_nothing_is_read_from_beyond_the_end(self, home: Home) -> None:
        await home.write("file", b"0123456789")
        for offset in (11, -1, 10**15):
            with refuses(Problem.INVALID):
                await home.read("file", offset)

    async def test_a_folder_or_nothing_is_not_read(self, home: Home) -> None:
        await home.mkdirs("folder")
        with refuses(Problem.IS_A_FOLDER):
            await home.read("folder")
        with refuses(Problem.NOT_FOUND):
            await home.read("nothing")
        with refuses(Problem.NOT_FOUND):
            await home.read("no folder/nothing")

    async def test_a_reader_may_stop_early(self, home: Home) -> None:
        await home.write("file", *[b"x" * MB] * 4)
        async with home.storage.open(home.at("file"), home.user) as file:
            async for piece in file.pieces:
                assert piece
                break
        assert await home.read("file", 4 * MB - 2) == b"xx"

    async def test_a_big_file_is_never_held_in_memory(self, home: Home) -> None:
        size, before, most = 192, resident(), 0

        async def pieces() -> AsyncIterator[bytes]:
            nonlocal most
            for number in range(size):
                yield number.to_bytes(2, "big") * (MB // 2)
                most = max(most, resident())

        await home.storage.create(home.at("big"), home.user, pieces())
        at = 0
        async with home.storage.open(home.at("big"), home.user) as file:
            assert (file.length, file.status.length) == (size * MB, size * MB)
            async for piece in file.pieces:
                assert 0 < len(piece) <= MB
                # where a piece of what was written begins, it says which
                start = -at % MB
                if len(piece) >= start + 2:
                    assert int.from_bytes(piece[start : start + 2], "big") == (at + start) // MB
                at += len(piece)
                most = max(most, resident())
        assert at == size * MB
        assert most - before < 64 * MB

    # writing on

    async def test_what_is_appended_comes_after_what_is_there(self, home: Home) -> None:
        await home.write("file", b"one ")
        await home.append("file", b"two ", b"three ")
        await home.append("file")
        await home.append("file", b"four")
        assert await home.read("file") == b"one two three four"

    async def test_nothing_is_appended_to_a_folder_or_to_nothing(self, home: Home) -> None:
        await home.mkdirs("folder")
        with refuses(Problem.IS_A_FOLDER):
            await home.append("folder", b"x")
        with refuses(Problem.NOT_FOUND):
            await home.append("nothing", b"x")
        assert await home.names() == ["folder"]

    async def test_what_had_come_when_appending_broke_stays(self, home: Home) -> None:
        await home.write("file", b"one ")
        with pytest.raises(Broken):
            await home.storage.append(home.at("file"), home.user, breaking(b"two "))
        assert await home.read("file") == b"one two "
        await home.append("file", b"three")
        assert await home.read("file") == b"one two three"

    async def test_what_belongs_elsewhere_than_at_the_end_is_not_appended(self, home: Home) -> None:
        await home.write("file", b"one ")
        await home.append("file", b"two ", b"three", offset=4)
        for offset in (0, 4, 12, 14):
            with refuses(Problem.UNAVAILABLE):
                await home.append("file", b"four", offset=offset)
        assert await home.read("file") == b"one two three"
        await home.append("file", b"!", offset=13)
        assert await home.read("file") == b"one two three!"

    async def test_of_two_who_append_at_the_same_place_one_is_told_that_it_did(self, home: Home) -> None:
        await home.write("file", b"one ")
        outcomes = await asyncio.gather(
            *(home.append("file", piece, offset=4) for piece in (b"2", b"3", b"4", b"5")),
            return_exceptions=True,
        )
        done = [piece for piece, outcome in zip("2345", outcomes, strict=True) if outcome is None]
        assert len(done) <= 1
        if done:
            assert (await home.read("file")).startswith(f"one {done[0]}".encode())

    # cut, joined, and what may be done

    async def test_a_file_is_cut_to_its_beginning(self, home: Home) -> None:
        await home.write("file", b"0123456789")
        await home.storage.truncate(home.at("file"), home.user, 4)
        assert (await home.status("file")).length == 4
        assert await home.read("file") == b"0123"
        await home.write("other", b"0123456789")
        await home.storage.truncate(home.at("other"), home.user, 0)
        assert await home.read("other") == b""

    async def test_a_file_is_not_made_longer_by_cutting_nor_a_folder_cut(self, home: Home) -> None:
        await home.write("file", b"0123456789")
        await home.mkdirs("folder")
        for name, problem in (
            ("file", Problem.INVALID),
            ("folder", Problem.IS_A_FOLDER),
            ("nothing", Problem.NOT_FOUND),
        ):
            with refuses(problem):
                await home.storage.truncate(home.at(name), home.user, 11)
        assert await home.read("file") == b"0123456789"

    async def test_files_are_put_at_the_end_of_another_and_are_gone_then(self, home: Home) -> None:
        for name, contents in (("one", b"1 "), ("two", b"2 "), ("three", b"3")):
            await home.write(name, contents)
        await home.storage.concat(home.at("one"), [home.at("two"), home.at("three")], home.user)
        assert await home.read("one") == b"1 2 3"
        assert await home.names() == ["one"]

    async def test_nothing_is_joined_where_one_of_them_is_no_file(self, home: Home) -> None:
        await home.write("one", b"1")
        await home.write("two", b"2")
        await home.mkdirs("folder")
        for names, problem in (
            (("one", "two", "folder"), Problem.IS_A_FOLDER),
            (("one", "two", "nothing"), Problem.NOT_FOUND),
            (("nothing", "one"), Problem.NOT_FOUND),
        ):
            target, *sources = map(home.at, names)
            with refuses(problem):
                await home.storage.concat(target, sources, home.user)
        assert (await home.read("one"), await home.read("two")) == (b"1", b"2")

    async def test_a_permission_protects_from_being_cut_and_joined(self, home: Home) -> None:
        await home.write("kept", b"kept")
        await home.write("more", b"more")
        await home.storage.set_permission(home.at("kept"), home.user, 0o400)
        with refuses(Problem.DENIED):
            await home.storage.truncate(home.at("kept"), home.user, 1)
        with refuses(Problem.DENIED):
            await home.storage.concat(home.at("kept"), [home.at("more")], home.user)
        assert (await home.read("kept"), await home.read("more")) == (b"kept", b"more")

    async def test_it_is_told_what_may_be_done(self, home: Home) -> None:
        await home.write("file", b"x")
        await home.storage.set_permission(home.at("file"), home.user, 0o600)
        for access in ("r--", "-w-", "rw-", "---"):
            await home.storage.check_access(home.at("file"), home.user, access)
        with refuses(Problem.DENIED):
            await home.storage.check_access(home.at("file"), home.user, "r-x")
        with refuses(Problem.NOT_FOUND):
            await home.storage.check_access(home.at("nothing"), home.user, "r--")

    # folders

    async def test_folders_are_made_with_those_above_and_nothing_happens_twice(self, home: Home) -> None:
        await home.mkdirs("a/b/c")
        await home.write("a/b/c/file", b"kept")
        await home.mkdirs("a/b/c")
        assert await home.names("a/b") == ["c"]
        assert await home.read("a/b/c/file") == b"kept"

    async def test_a_folder_does_not_take_a_files_place(self, home: Home) -> None:
        await home.write("file", b"kept")
        with refuses(Problem.EXISTS):
            await home.mkdirs("file")
        assert await home.read("file") == b"kept"

    async def test_the_root_is_a_folder_and_making_it_is_no_error(self, home: Home) -> None:
        await home.storage.mkdirs(StoragePath(), "")
        assert (await home.storage.status(StoragePath(), "")).is_folder
        listing = await home.storage.list(StoragePath(), "")
        assert home.root in [entry.path for entry in listing.entries]

    async def test_a_tree_is_its_owners_and_is_made_once(self, home: Home) -> None:
        status = await home.status()
        assert (status.owner, status.permission, status.is_folder) == (home.user, 0o700, True)
        await home.write("file", b"kept")
        await home.storage.make_tree(home.root, home.user, "", 0o755)
        assert (await home.status()).permission == 0o700
        assert await home.read("file") == b"kept"

    # listing

    async def test_a_folder_is_listed_in_the_order_of_names(self, home: Home) -> None:
        for name in ("b", "a10", "Z", "a2", "ä", "中", "😀"):
            await home.write(name, name.encode())
        await home.mkdirs("a")
        names = await home.names()
        assert names == ["Z", "a", "a10", "a2", "b", "ä", "中", "😀"]
        assert [entry.length for entry in (await home.storage.list(home.root, home.user)).entries] == [
            0 if name == "a" else len(name.encode()) for name in names
        ]

    async def test_a_listing_says_of_each_what_its_status_says(self, home: Home) -> None:
        await home.write("file", b"12345")
        await home.mkdirs("folder")
        for entry in (await home.storage.list(home.root, home.user)).entries:
            status = await home.storage.status(entry.path, home.user)
            # who lists a folder does not hear how many are in each of its folders
            assert replace(entry, children=0) == replace(status, children=0)

    async def test_a_file_lists_as_itself_and_an_empty_folder_as_nothing(self, home: Home) -> None:
        await home.write("file", b"12345")
        await home.mkdirs("folder")
        listing = await home.storage.list(home.at("file"), home.user)
        assert [(entry.path, entry.length) for entry in listing.entries] == [(home.at("file"), 5)]
        assert await home.names("folder") == []
        with refuses(Problem.NOT_FOUND):
            await home.names("nothing")

    async def test_a_large_folder_is_listed_in_parts(self, home: Home) -> None:
        names = [f"{number:04}" for number in range(1000)]
        for start in range(0, 1000, 20):
            await asyncio.gather(*(home.mkdirs(f"large/{name}") for name in names[start : start + 20]))
        assert await home.names("large") == names
        whole = await home.storage.list(home.at("large"), home.user)
        assert whole.remaining == 0
        seen: list[str] = []
        remaining = 1000
        while remaining:
            part = await home.storage.list(home.at("large"), home.user, seen[-1] if seen else "", 300)
            seen += [entry.path.name for entry in part.entries]
            remaining = part.remaining
            assert remaining == 1000 - len(seen)
        assert seen == names
        assert await home.names("large", after="0500x", limit=2) == ["0501", "0502"]
        assert await home.names("large", after="0999") == []

    # describing

    async def test_a_status_says_what_is_there(self, home: Home) -> None:
        await home.write("folder/file", b"12345")
        await home.mkdirs("folder/below")
        file, folder = await home.status("folder/file"), await home.status("folder")
        assert (file.path, file.is_folder, file.length, file.permission) == (
            home.at("folder/file"),
            False,
            5,
            0o644,
        )
        assert (folder.path, folder.is_folder, folder.length, folder.children) == (
            home.at("folder"),
            True,
            0,
            2,
        )
        assert (file.owner, folder.owner) == (home.user, home.user)
        assert 0 < file.modified - 1_500_000_000_000 < 3_000_000_000_000
        assert file.file_id != folder.file_id

    async def test_times_are_set_to_the_millisecond_and_what_is_not_said_stays(self, home: Home) -> None:
        await home.write("file", b"x")
        await home.storage.set_times(home.at("file"), home.user, 1_234_567_890_123, 1_234_567_899_456)
        status = await home.status("file")
        assert (status.modified, status.accessed) == (1_234_567_890_123, 1_234_567_899_456)
        await home.storage.set_times(home.at("file"), home.user, 1_000_000_000_001, None)
        await home.storage.set_times(home.at("file"), home.user, None, 1_000_000_000_002)
        status = await home.status("file")
        assert (status.modified, status.accessed) == (1_000_000_000_001, 1_000_000_000_002)
        with refuses(Problem.NOT_FOUND):
            await home.storage.set_times(home.at("nothing"), home.user, 1, 1)

    async def test_a_tree_is_counted(self, home: Home) -> None:
        await home.write("a/one", b"x" * 1000)
        await home.write("a/b/two", b"x" * 234)
        await home.mkdirs("a/c")
        summary = await home.storage.summary(home.at("a"), home.user)
        assert (summary.files, summary.folders, summary.length) == (2, 3, 1234)
        assert summary.space_consumed >= summary.length
        summary = await home.storage.summary(home.at("a/one"), home.user)
        assert (summary.files, summary.folders, summary.length) == (1, 0, 1000)
        with refuses(Problem.NOT_FOUND):
            await home.storage.summary(home.at("nothing"), home.user)

    async def test_a_checksum_tells_contents_apart(self, home: Home) -> None:
        await home.write("one", b"contents")
        await home.write("two", b"con", b"tents")
        await home.write("other", b"c0ntents")
        one, two, other = [
            await home.storage.checksum(home.at(name), home.user) for name in ("one", "two", "other")
        ]
        assert one == two
        assert one.algorithm == other.algorithm
        assert one.bytes != other.bytes
        assert len(bytes.fromhex(one.bytes)) == one.length
        await home.mkdirs("folder")
        with refuses(Problem.IS_A_FOLDER):
            await home.storage.checksum(home.at("folder"), home.user)
        with refuses(Problem.NOT_FOUND):
            await home.storage.checksum(home.at("nothing"), home.user)

    # moving

    async def test_a_file_or_folder_is_moved_and_stays_the_same(self, home: Home) -> None:
        await home.write("a/file", b"x")
        before = await home.status("a/file")
        await home.mkdirs("b")
        await home.rename("a/file", "b/renamed")
        await home.rename("b", "c")
        after = await home.status("c/renamed")
        assert (after.file_id, after.modified) == (before.file_id, before.modified)
        assert await home.names() == ["a", "c"]

    async def test_what_is_moved_to_a_folder_is_moved_into_it(self, home: Home) -> None:
        await home.write("file", b"x")
        await home.write("a/below", b"y")
        await home.mkdirs("folder")
        await home.rename("file", "folder")
        await home.rename("a", "folder")
        assert await home.names("folder") == ["a", "file"]
        assert await home.read("folder/a/below") == b"y"

    async def test_what_is_there_is_not_replaced_unless_that_is_said(self, home: Home) -> None:
        await home.write("one", b"1")
        await home.write("two", b"2")
        await home.write("folder/one", b"below")
        for target in ("two", "folder"):
            with refuses(Problem.EXISTS):
                await home.rename("one", target)
        assert [await home.read(name) for name in ("one", "two", "folder/one")] == [b"1", b"2", b"below"]
        await home.rename("one", "two", overwrite=True)
        assert await home.names() == ["folder", "two"]
        assert await home.read("two") == b"1"

    async def test_a_folder_replaces_an_empty_one_only(self, home: Home) -> None:
        await home.write("new/file", b"new")
        await home.mkdirs("empty")
        await home.write("full/file", b"old")
        with refuses(Problem.NOT_EMPTY):
            await home.rename("new", "full", overwrite=True)
        assert await home.read("full/file") == b"old"
        await home.rename("new", "empty", overwrite=True)
        assert await home.read("empty/file") == b"new"
        assert await home.names() == ["empty", "full"]

    async def test_a_file_never_replaces_a_folder_nor_a_folder_a_file(self, home: Home) -> None:
        await home.write("file", b"x")
        await home.mkdirs("folder")
        for source, target in (("file", "folder"), ("folder", "file")):
            with pytest.raises(StorageError):
                await home.rename(source, target, overwrite=True)
        assert await home.names() == ["file", "folder"]
        assert await home.names("folder") == []

    async def test_what_is_not_there_is_not_moved_nor_to_where_no_folder_is(self, home: Home) -> None:
        await home.write("file", b"x")
        await home.write("other", b"x")
        with refuses(Problem.NOT_FOUND):
            await home.rename("nothing", "new")
        with refuses(Problem.NOT_FOUND):
            await home.rename("file", "no folder/new")
        with refuses(Problem.NOT_A_FOLDER):
            await home.rename("file", "other/new")
        assert await home.names() == ["file", "other"]

    async def test_a_folder_is_not_moved_into_itself(self, home: Home) -> None:
        await home.mkdirs("a/b")
        for target in ("a/b", "a/b/c", "a"):
            with refuses(Problem.INVALID):
                await home.rename("a", target)
        assert await home.names("a") == ["b"]

    # removing

    async def test_what_is_removed_is_gone_and_what_is_not_there_is_no_error(self, home: Home) -> None:
        await home.write("file", b"x")
        await home.mkdirs("folder")
        assert await home.delete("file")
        assert await home.delete("folder")
        assert await home.names() == []
        for recursive in (False, True):
            assert not await home.delete("file", recursive=recursive)
            assert not await home.delete("nothing/below", recursive=recursive)

    async def test_a_folder_with_something_in_it_is_removed_only_if_that_is_said(self, home: Home) -> None:
        await home.write("a/b/file", b"x")
        await home.write("a/file", b"x")
        await home.write("other", b"kept")
        with refuses(Problem.NOT_EMPTY):
            await home.delete("a")
        assert await home.read("a/b/file") == b"x"
        assert await home.delete("a", recursive=True)
        assert await home.names() == ["other"]

    # copying

    async def test_a_copy_has_the_contents_and_the_times(self, home: Home) -> None:
        await home.write("file", b"x" * (MB + 1))
        await home.storage.set_times(home.at("file"), home.user, 1_234_567_890_123, None)
        await home.copy("file", "new folder/copy")
        assert await home.read("new folder/copy") == b"x" * (MB + 1)
        assert (await home.status("new folder/copy")).modified == 1_234_567_890_123
        await home.append("file", b"y")
        assert (await home.status("new folder/copy")).length == MB + 1

    async def test_a_copy_replaces_only_if_that_is_said(self, home: Home) -> None:
        await home.write("one", b"1")
        await home.write("two", b"2")
        with refuses(Problem.EXISTS):
            await home.copy("one", "two")
        assert await home.read("two") == b"2"
        await home.copy("one", "two", overwrite=True)
        assert await home.read("two") == b"1"

    async def test_only_a_file_is_copied(self, home: Home) -> None:
        await home.mkdirs("folder")
        with refuses(Problem.IS_A_FOLDER):
            await home.copy("folder", "copy")
        with refuses(Problem.NOT_FOUND):
            await home.copy("nothing", "copy")
        assert await home.names() == ["folder"]

    # permissions

    async def test_permissions_are_set_and_told(self, home: Home) -> None:
        await home.storage.create(home.at("file"), home.user, giving([b"x"]), permission=0o600)
        await home.storage.mkdirs(home.at("folder"), home.user, 0o750)
        assert (await home.status("file")).permission == 0o600
        assert (await home.status("folder")).permission == 0o750
        for permission in (0o777, 0o000, 0o641):
            await home.chmod("file", permission)
            assert (await home.status("file")).permission == permission
        with refuses(Problem.NOT_FOUND):
            await home.chmod("nothing", 0o600)

    async def test_a_file_that_may_not_be_read_is_not(self, home: Home) -> None:
        await home.write("file", b"secret")
        await home.chmod("file", 0o200)
        with refuses(Problem.DENIED):
            await home.read("file")
        with refuses(Problem.DENIED):
            await home.copy("file", "copy")
        await home.chmod("file", 0o400)
        assert await home.read("file") == b"secret"

    async def test_a_file_that_may_not_be_written_to_is_not(self, home: Home) -> None:
        await home.write("file", b"kept")
        await home.chmod("file", 0o444)
        with refuses(Problem.DENIED):
            await home.append("file", b"more")
        with refuses(Problem.DENIED):
            await home.write("file", b"new", overwrite=True)
        with refuses(Problem.DENIED):
            await home.storage.set_times(home.at("file"), home.user, 1, 1)
        assert await home.read("file") == b"kept"

    async def test_a_folder_that_may_not_be_entered_is_not(self, home: Home) -> None:
        await home.write("folder/file", b"x")
        await home.chmod("folder", 0o600)
        with refuses(Problem.DENIED):
            await home.read("folder/file")
        with refuses(Problem.DENIED):
            await home.status("folder/file")
        assert (await home.status("folder")).permission == 0o600
        await home.chmod("folder", 0o300)
        with refuses(Problem.DENIED):
            await home.names("folder")
        assert await home.read("folder/file") == b"x"

    async def test_in_a_folder_that_may_not_be_changed_nothing_is(self, home: Home) -> None:
        await home.write("folder/file", b"x")
        await home.write("file", b"x")
        await home.chmod("folder", 0o500)
        with refuses(Problem.DENIED):
            await home.write("folder/new", b"x")
        with refuses(Problem.DENIED):
            await home.mkdirs("folder/new")
        with refuses(Problem.DENIED):
            await home.delete("folder/file")
        with refuses(Problem.DENIED):
            await home.rename("folder/file", "moved")
        with refuses(Problem.DENIED):
            await home.rename("file", "folder/moved")
        with refuses(Problem.DENIED):
            await home.delete("folder", recursive=True)
        assert await home.names("folder") == ["file"]

    async def test_the_service_itself_is_kept_from_nothing(self, home: Home) -> None:
        await home.write("folder/file", b"secret")
        await home.chmod("folder/file", 0o000)
        await home.chmod("folder", 0o000)
        path = home.at("folder/file")
        await home.storage.append(path, "", giving([b"!"]))
        async with home.storage.open(path, "") as file:
            assert b"".join([piece async for piece in file.pieces]) == b"secret!"
        assert await home.storage.delete(home.at("folder"), "", recursive=True)

    # names

    async def test_a_name_stands_for_itself(self, home: Home) -> None:
        for name in NAMES:
            folder = StoragePath((*home.root.parts, name))
            path = folder / name
            await home.storage.create(path, home.user, giving([name.encode()]))
            await home.storage.append(path, home.user, giving([b"!"]))
            assert await home.names() == [name]
            assert [entry.path for entry in (await home.storage.list(folder, home.user)).entries] == [path]
            async with home.storage.open(path, home.user) as file:
                assert b"".join([piece async for piece in file.pieces]) == name.encode() + b"!"
            await home.storage.rename(path, home.root / "moved", home.user)
            await home.storage.rename(home.root / "moved", path, home.user)
            await home.storage.copy(path, home.root / "copy", home.user)
            assert await home.storage.delete(folder, home.user, recursive=True)
            assert await home.names() == ["copy"]
            await home.delete("copy")


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
