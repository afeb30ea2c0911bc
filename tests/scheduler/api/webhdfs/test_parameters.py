"""The query is read as Hadoop reads it, and what cannot be read is refused with its name."""

from __future__ import annotations

import pytest

from pai_scheduler.api.webhdfs.request import Parameters, decoded_path
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.paths import StorageError, StoragePath


def parameters(**values: str) -> Parameters:
    return Parameters.read({name: [value.encode()] for name, value in values.items()})


def test_names_are_read_in_any_case_the_first_of_two_counts_and_an_empty_one_is_none() -> None:
    read = Parameters.read({"OP": [b"open", b"CREATE"], "length": [b""], "Offset": [b"1"], "offset": [b"2"]})
    assert read.operation == "OPEN"
    assert (read.number("offset"), read.number("length"), read.text("nothing")) == (1, None, "")


def test_what_says_who_asks_is_not_part_of_what_is_asked() -> None:
    read = Parameters.read(
        {
            name: [b"x"]
            for name in ("op", "data", "ticket", "noredirect", "User.Name", "doAs", "delegation", "y")
        }
    )
    assert read.of_the_request == {("op", "x"), ("y", "x")}


def test_values_have_their_kinds() -> None:
    read = parameters(yes="True", no="false", number="0012", time="-1", permission="1755", path="/a//b%2e/")
    assert (read.flag("yes"), read.flag("no"), read.flag("absent")) == (True, False, False)
    assert (read.number("number"), read.signed("time"), read.permission()) == (12, -1, 0o755)
    assert read.path("path") == StoragePath(("a", "b%2e"))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("flag", value) for value in ("1", "yes", "truefalse")),
        *(("number", value) for value in ("-1", "x", "1.0", " 1", "+1", "1_0", "٣", "9" * 19, "9" * 5000)),
        *(("signed", value) for value in ("--1", "-", "0x1")),
        *(("permission", value) for value in ("8", "rwx", "-1", "07777", "6 4")),
        *(("path", value) for value in ("a", "./a", " /a")),
    ],
)
def test_what_is_none_of_its_kind_is_refused_by_name(kind: str, value: str) -> None:
    with pytest.raises(RequestError, match="offset") as refused:
        getattr(parameters(offset=value), kind)("offset")
    assert (refused.value.status, refused.value.code) == (400, "IllegalArgumentException")


def test_a_path_is_decoded_once_whatever_its_bytes_are() -> None:
    assert decoded_path("/a%20b/%25/+/%E4%B8%AD") == StoragePath(("a b", "%", "+", "中"))
    # a name that is no text can still be reached
    assert decoded_path("/%ff%fe").encoded == "/%FF%FE"
    for wrong in ("/a/%2e%2e", "/%00", "/a/./b"):
        with pytest.raises(StorageError):
            decoded_path(wrong)
