"""What an authFile says, and what a person is told about one that is wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.protocol import RegistryLogin
from pai_scheduler.service.credentials import parse_login, read_login
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StorageNames, StoragePath
from tests.scheduler.open_service import ALICE

URI = "file:///s/alice/auth"


@pytest.mark.parametrize(
    "text",
    [
        "lab.example:5000\nalice\np4ss word",
        "lab.example:5000\nalice\np4ss word\n",
        "\ufefflab.example:5000\r\nalice\r\np4ss word\r\n\r\n",
        " lab.example:5000 \n alice \np4ss word\n  \n",
    ],
)
def test_three_lines_are_the_registry_the_user_and_the_password(text: str) -> None:
    assert parse_login(text.encode(), URI) == RegistryLogin("lab.example:5000", "alice", "p4ss word")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "line 1: the registry is missing"),
        ("\nalice\nsecret", "line 1: the registry is missing"),
        ("lab\n\nsecret", "line 2: the user name is missing"),
        ("lab", "line 2: the user name is missing"),
        ("lab\nalice\n", "line 3: the password is missing"),
        ("lab\nalice\n \n", "line 3: the password is missing"),
        ("lab\nalice\nsecret\nsecret too\n", "line 4: there is more than three lines"),
    ],
)
def test_a_wrong_line_is_named_and_the_password_is_not(text: str, problem: str) -> None:
    with pytest.raises(StorageError) as caught:
        parse_login(text.encode(), URI)
    said = str(caught.value)
    assert said.startswith(f"The authFile {URI} cannot be used: {problem}. It has three lines:")
    assert "secret" not in said


def test_a_file_that_is_no_text_is_said_to_be_none() -> None:
    with pytest.raises(StorageError, match="it is not UTF-8 text"):
        parse_login(b"\xff\xfe\x00", URI)


def test_a_password_is_not_shown_with_the_login() -> None:
    assert "p4ss" not in repr(parse_login(b"lab\nalice\np4ss\n", URI))


class Place:
    """A storage with what alice put there."""

    def __init__(self, folder: Path) -> None:
        self.files = Files(FolderStorage(folder), StorageNames(["http://fs"]))

    async def put(self, path: str, contents: bytes) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield contents

        await self.files.create(ALICE, StoragePath.parse(path), pieces())

    async def read(self, uri: str) -> RegistryLogin:
        return await read_login(self.files, ALICE, uri)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    made = Place(tmp_path)
    await made.files.start()
    yield made
    await made.files.close()


@pytest.mark.parametrize("uri", ["http://fs/alice/auth%20file", "/alice/auth file"])
async def test_the_file_is_found_by_its_uri_or_its_path(place: Place, uri: str) -> None:
    await place.put("/alice/auth file", b"lab\nalice\nsecret\n")
    assert await place.read(uri) == RegistryLogin("lab", "alice", "secret")


async def test_a_file_that_is_not_there_is_named(place: Place) -> None:
    with pytest.raises(StorageError) as caught:
        await place.read("http://fs/alice/none")
    assert str(caught.value).startswith("The authFile http://fs/alice/none cannot be read. ")
    assert caught.value.problem is Problem.NOT_FOUND


@pytest.mark.parametrize(
    ("uri", "problem", "words"),
    [
        ("http://fs/bob/auth", Problem.DENIED, "User alice may not read /bob/auth."),
        ("http://fs/alice/../bob/auth", Problem.INVALID, "no plain name"),
        ("http://fs/alice/long", Problem.TOO_LARGE, "longer than 64 KiB"),
        ("hdfs://far/alice/auth", Problem.INVALID, "not in the cluster's storage, which is http://fs"),
    ],
)
async def test_a_file_that_cannot_be_a_login_is_refused_with_the_reason(
    place: Place, uri: str, problem: Problem, words: str
) -> None:
    await place.put("/alice/long", b"x" * 70_000)
    with pytest.raises(StorageError) as caught:
        await place.read(uri)
    assert caught.value.problem is problem
    assert words in str(caught.value)
