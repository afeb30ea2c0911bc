"""Paths in the storage: whatever is parsed, nothing in it means anything but a name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.testing.home import refuses


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("/", ()),
        ("", ()),
        ("//", ()),
        ("/a/b", ("a", "b")),
        ("a/b", ("a", "b")),
        ("//a///b/", ("a", "b")),
        ("/%2e%2e/..a/.../ ", ("%2e%2e", "..a", "...", " ")),
        ("/a\\..\\b", ("a\\..\\b",)),
    ],
)
def test_slashes_part_and_nothing_else_does(text: str, parts: tuple[str, ...]) -> None:
    assert StoragePath.parse(text).parts == parts


@pytest.mark.parametrize(
    "text",
    ["..", "/..", "/a/../b", "/a/..", "/./a", "/a/.", "/a\0b", "/\0", "/" + "x" * 256, "/" + "中" * 86],
)
def test_what_is_no_plain_path_is_refused(text: str) -> None:
    with refuses(Problem.INVALID):
        StoragePath.parse(text)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0", "x" * 256])
def test_a_name_cannot_bring_in_another_path(name: str) -> None:
    with refuses(Problem.INVALID):
        StoragePath(("alice",)) / name
    with refuses(Problem.INVALID):
        StoragePath((name,))


def test_a_name_may_be_as_long_as_file_systems_allow() -> None:
    assert StoragePath.parse("/" + "x" * 255).name == "x" * 255
    assert StoragePath.parse("/" + "中" * 85).name == "中" * 85


@pytest.mark.parametrize("text", ["/a" * 1001, "/" + "/".join(["x" * 200] * 41), "/" * 8001])
def test_a_path_has_an_end(text: str) -> None:
    with refuses(Problem.INVALID):
        StoragePath.parse(text)
    assert len(StoragePath.parse("/a" * 1000).parts) == 1000


def test_characters_that_there_are_not_are_refused_in_words() -> None:
    with refuses(Problem.INVALID):
        StoragePath.parse("/\ud800")
    # a byte that is no UTF-8, as Python has it
    assert StoragePath.parse("/\udcff").encoded == "/%FF"


def test_a_path_knows_its_name_its_parent_and_what_it_is_within() -> None:
    path = StoragePath.parse("/a/b")
    assert (path.name, path.parent, path.parent.parent, str(path)) == (
        "b",
        StoragePath(("a",)),
        StoragePath(),
        "/a/b",
    )
    assert (StoragePath().name, StoragePath().parent, str(StoragePath())) == ("", StoragePath(), "/")
    assert path.is_within(StoragePath.parse("/a"))
    assert path.is_within(path)
    assert path.is_within(StoragePath())
    assert not path.is_within(StoragePath.parse("/a/b/c"))
    # beginning alike is not being in it
    assert not StoragePath.parse("/alice2").is_within(StoragePath.parse("/alice"))


def test_a_path_is_encoded_so_that_nothing_in_it_is_syntax() -> None:
    assert StoragePath.parse("/a b/100%/#?&+/中").encoded == "/a%20b/100%25/%23%3F%26%2B/%E4%B8%AD"


@given(st.text(st.characters()))
def test_whatever_is_parsed_is_refused_or_made_of_plain_names(text: str) -> None:
    try:
        path = StoragePath.parse(text)
    except StorageError:
        return
    assert not set(path.parts) & {"", ".", ".."}
    assert not any("/" in part or "\0" in part for part in path.parts)
    assert StoragePath.parse(str(path)) == path
