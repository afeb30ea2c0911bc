"""Which part of a file is meant, and under which name it is kept."""

from __future__ import annotations

from dataclasses import replace
from email.message import Message

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.api.webhdfs.transfer import (
    ByteRange,
    UnsatisfiableError,
    attachment,
    entity_tag,
    wanted_part,
)
from pai_scheduler.storage.paths import StoragePath
from pai_scheduler.storage.protocol import FileStatus


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-", ByteRange(0, 10)),
        ("bytes=4-6", ByteRange(4, 3)),
        ("bytes=4-400", ByteRange(4, 6)),
        ("bytes= 9-9 ", ByteRange(9, 1)),
        ("bytes=-3", ByteRange(7, 3)),
        ("bytes=-300", ByteRange(0, 10)),
        # what is not understood is the whole file
        ("bytes=0-1,3-4", None),
        ("bytes=-", None),
        ("bytes=5-4", None),
        ("lines=1-2", None),
        ("bytes=٣-", None),
        ("bytes=" + "9" * 5000 + "-", None),
        ("", None),
    ],
)
def test_a_range_names_a_part(header: str, part: ByteRange | None) -> None:
    assert wanted_part(header, 10) == part


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=99-100", "bytes=-0"])
def test_a_part_that_there_is_not_cannot_be_had(header: str) -> None:
    with pytest.raises(UnsatisfiableError):
        wanted_part(header, 10)


def test_a_part_says_where_it_is() -> None:
    assert ByteRange(4, 3).content_range(10) == "bytes 4-6/10"


def test_contents_have_another_name_when_they_changed() -> None:
    status = FileStatus(StoragePath(("f",)), False, 10, 5, 5, 0o644, "a", "a", file_id=7)
    others = [replace(status, **change) for change in ({"length": 11}, {"modified": 6}, {"file_id": 8})]  # type: ignore[arg-type]
    assert len({entity_tag(one) for one in [status, *others]}) == 4
    assert entity_tag(replace(status, accessed=9)) == entity_tag(status)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1))
def test_a_name_comes_back_as_it_was_and_breaks_out_of_nothing(name: str) -> None:
    value = attachment(name)
    assert value.isascii()
    assert value.isprintable()
    header = Message()
    header["Content-Disposition"] = value
    assert header.get_content_disposition() == "attachment"
    parameters = header.get_params(header="Content-Disposition")
    assert parameters is not None
    assert [key for key, _ in parameters] == ["attachment"] + ["filename"] * (len(parameters) - 1)
    encoded = value.partition("filename*=UTF-8''")[2]
    assert (encoded != "") is (parameters[1][1] != name)
