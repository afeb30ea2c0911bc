"""The URIs of the storage: decoded once, and only those that are its own."""

from __future__ import annotations

import pytest

from pai_scheduler.storage.paths import Problem, StorageNames, StoragePath
from pai_scheduler.testing.home import refuses

HTTP = "http://127.0.0.1:8000/services/pai"
NAMES = StorageNames([HTTP + "/", "file:///srv/the%20files", HTTP, ""])


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        (f"{HTTP}/alice/code", "/alice/code"),
        (HTTP, "/"),
        (f"{HTTP}/", "/"),
        (f"{HTTP}//alice//code/", "/alice/code"),
        ("file:///srv/the%20files/alice", "/alice"),
        (f"{HTTP}/a%20b/100%25/%E4%B8%AD", "/a b/100%/中"),
        # encoded twice it is a name with a per cent sign, which leads nowhere
        (f"{HTTP}/alice/%252e%252e/bob", "/alice/%2e%2e/bob"),
        ("/alice/100%25", "/alice/100%25"),
        ("/alice/中", "/alice/中"),
    ],
)
def test_a_uri_is_decoded_once_and_a_path_stands_for_itself(uri: str, path: str) -> None:
    assert NAMES.resolve(uri) == StoragePath.parse(path)
    assert NAMES.knows(uri)


@pytest.mark.parametrize(
    "uri",
    [
        f"{HTTP}/alice/../bob",
        f"{HTTP}/alice/%2e%2e/bob",
        f"{HTTP}/alice/..%2Fbob",
        f"{HTTP}/alice/.%2e/bob",
        f"{HTTP}/alice/%00",
        f"{HTTP}/%2E",
        "/alice/../bob",
        "/alice/\0",
    ],
)
def test_a_uri_that_leads_elsewhere_is_refused_however_it_is_written(uri: str) -> None:
    with refuses(Problem.INVALID):
        NAMES.resolve(uri)
    assert NAMES.knows(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "alice/code",
        "http://127.0.0.1:8000/services",
        "http://127.0.0.1:8000/services/paix/alice",
        "http://127.0.0.1:8000/services/pai.evil.example/alice",
        "https://127.0.0.1:8000/services/pai/alice",
        "file:///srv/the files/alice",
        "file:///etc/passwd",
        "hdfs://elsewhere/alice",
    ],
)
def test_what_is_not_in_the_storage_is_refused_with_the_storages_own_uri(uri: str) -> None:
    with refuses(Problem.INVALID):
        NAMES.resolve(uri)
    assert not NAMES.knows(uri)


def test_an_encoded_slash_parts_as_any_other() -> None:
    # nothing is gained by it: rights are looked up in the parts
    assert NAMES.resolve(f"{HTTP}/alice%2Fcode") == StoragePath.parse("/alice/code")


@pytest.mark.parametrize("path", ["/", "/alice", "/a b/100%/%41/中", "/alice/\udcff", "/alice/?#&;=+"])
def test_the_uri_of_a_path_is_below_the_default_and_leads_back(path: str) -> None:
    uri = NAMES.uri(StoragePath.parse(path))
    assert uri.startswith(HTTP)
    assert NAMES.default == HTTP
    assert NAMES.resolve(uri) == StoragePath.parse(path)


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("http://127.0.0.1:9186/a%20b/$PAI_JOB_NAME", "http://pai-storage:9186/a%20b/$PAI_JOB_NAME"),
        ("http://pai-storage:9186", "http://pai-storage:9186"),
        ("$PAI_DEFAULT_FS_URI/data", "$PAI_DEFAULT_FS_URI/data"),
        ("http://127.0.0.1:91860/data", "http://127.0.0.1:91860/data"),
        ("file:///srv/data", "file:///srv/data"),
        ("", ""),
    ],
)
def test_tasks_are_told_of_the_storage_by_the_name_that_leads_there(uri: str, told: str) -> None:
    names = StorageNames(["http://pai-storage:9186", "http://127.0.0.1:9186", "file:///srv"])
    assert names.told(uri) == told


def test_what_is_not_reached_over_http_is_told_as_it_was_named() -> None:
    assert StorageNames(["hdfs://fs", "http://one:1"]).told("http://one:1/data") == "http://one:1/data"
