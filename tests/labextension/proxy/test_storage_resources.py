"""Which paths and operations of the storage may be asked for from the browser, and how they go on."""

from __future__ import annotations

import pytest

from pai_labextension.proxy.handlers import MethodError, NoResourceError, ParameterError, storage_target


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("GET", "op=OPEN&offset=5&length=7"),
        ("GET", "op=ARCHIVE"),
        ("GET", "op=GETFILESTATUS"),
        ("GET", "op=LISTSTATUS_BATCH&startAfter=a&limit=10"),
        ("GET", "op=GETCONTENTSUMMARY"),
        ("GET", "op=GETHOMEDIRECTORY"),
        ("PUT", "op=CREATE&overwrite=true"),
        ("POST", "op=APPEND&offset=5"),
        ("PUT", "op=MKDIRS"),
        ("PUT", "op=RENAME&destination=%2Falice%2Fb&renameoptions=OVERWRITE"),
        ("PUT", "op=COPY&destination=%2Falice%2Fb&overwrite=true"),
        ("PUT", "op=SETTIMES&modificationtime=5&accesstime=-1"),
        ("DELETE", "op=DELETE&recursive=true"),
    ],
)
def test_what_the_drive_does_passes_and_is_asked_without_a_redirect(method: str, query: str) -> None:
    target = storage_target(method, "alice/a", query)
    assert (target.path, target.query) == ("webhdfs/v1/alice/a", f"{query}&data=true")


def test_a_path_is_encoded_anew() -> None:
    target = storage_target("GET", "/alice//数据 1%/a?b#c;d/", "op=OPEN")
    assert target.path == "webhdfs/v1/alice/%E6%95%B0%E6%8D%AE%201%25/a%3Fb%23c%3Bd"
    assert target.name == "a?b#c;d"
    assert storage_target("GET", "", "op=LISTSTATUS_BATCH").path == "webhdfs/v1/"


def test_a_destination_is_encoded_anew_too() -> None:
    target = storage_target("PUT", "alice/a", "op=RENAME&destination=//alice/%E6%95%B0%26b/")
    assert target.query == "op=RENAME&destination=%2Falice%2F%E6%95%B0%26b&data=true"


@pytest.mark.parametrize("path", ["..", "alice/../bob/a", "alice/./a", "alice/a\0", "alice/" + "x" * 256])
def test_a_path_that_could_lead_elsewhere_is_no_path(path: str) -> None:
    with pytest.raises(NoResourceError):
        storage_target("GET", path, "op=OPEN")
    if "\0" not in path:
        with pytest.raises(NoResourceError):
            storage_target("PUT", "alice/a", f"op=RENAME&destination=/{path}")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("", "op"),
        ("op=GETDELEGATIONTOKEN", "op"),
        ("op=OPEN&user.name=bob", "user.name"),
        ("op=OPEN&doas=bob", "doas"),
        ("op=OPEN&noredirect=true", "noredirect"),
        ("op=OPEN&data=false", "data"),
        ("op=OPEN&ticket=x", "ticket"),
        ("op=OPEN&op=DELETE", "op"),
    ],
)
def test_what_the_drive_never_asks_for_is_named(query: str, name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}$"):
        storage_target("GET", "alice/a", query)


def test_an_operation_has_one_method() -> None:
    with pytest.raises(MethodError, match=r"^DELETE$"):
        storage_target("GET", "alice/a", "op=DELETE")


def test_parameters_of_jupyters_own_stay_here() -> None:
    query = "op=OPEN&token=secret&_xsrf=1&1700000000000"
    assert storage_target("GET", "alice/a", query).query == "op=OPEN&data=true"
