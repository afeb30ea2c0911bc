"""Which storage an administrator means."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pai_scheduler.storage.factory import choose_storage
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.hdfs.storage import HdfsStorage
from pai_scheduler.storage.paths import Problem, StorageError


@pytest.mark.parametrize("where", [None, "", "  "])
def test_the_storage_is_the_given_folder_unless_another_is_named(where: str | None, tmp_path: Path) -> None:
    storage = choose_storage(where, tmp_path, account="pai")
    assert isinstance(storage, FolderStorage)
    assert storage.root_uri == tmp_path.as_uri()


@pytest.mark.parametrize(
    ("where", "uri"),
    [
        ("/srv/pai", "file:///srv/pai"),
        ("file:///srv/all%20files/", "file:///srv/all%20files"),
        ("file:/srv/pai", "file:///srv/pai"),
        ("file://localhost/srv/pai", "file:///srv/pai"),
    ],
)
def test_a_path_or_a_file_uri_is_a_folder(where: str, uri: str, tmp_path: Path) -> None:
    storage = choose_storage(where, tmp_path, account="pai")
    assert isinstance(storage, FolderStorage)
    assert storage.root_uri == uri


def test_a_relative_path_begins_where_the_scheduler_was_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_storage("files", Path("/other"), account="pai").root_uri == f"{tmp_path.as_uri()}/files"


@pytest.mark.parametrize(
    ("where", "uri"),
    [
        ("http://namenode:9870", "http://namenode:9870"),
        ("http://namenode:9870/", "http://namenode:9870"),
        ("https://namenode:9871", "https://namenode:9871"),
        ("webhdfs://namenode:9870", "http://namenode:9870"),
        ("swebhdfs://namenode:9871", "https://namenode:9871"),
        ("http://first:9870; http://second:9870 ;", "http://first:9870"),
    ],
)
async def test_a_web_address_is_an_hdfs_known_by_its_first_name_node(
    where: str, uri: str, tmp_path: Path
) -> None:
    storage = choose_storage(where, tmp_path, account="pai")
    assert isinstance(storage, HdfsStorage)
    assert storage.root_uri == uri
    await storage.close()


@pytest.mark.parametrize(
    "where",
    [
        "hdfs://namenode:8020", "http://namenode", "http://namenode:0x", "http://:9870", "ftp://namenode:21",
        "http://namenode:9870/webhdfs/v1", "http://first:9870;second:9870", "file://namenode/srv", "s3://bucket",
    ],
)  # fmt: skip
def test_what_names_no_storage_is_refused_with_an_example(where: str, tmp_path: Path) -> None:
    with pytest.raises(StorageError) as refused:
        choose_storage(where, tmp_path, account="pai")
    assert refused.value.problem is Problem.INVALID
    assert where in str(refused.value)
    assert "as http://" in str(refused.value) or "as file://" in str(refused.value)


def test_of_hdfs_own_address_the_web_address_is_asked(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="http://namenode:9870"):
        choose_storage("hdfs://namenode:8020", tmp_path, account="pai")


def test_kerberos_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "requests_kerberos", None)
    with pytest.raises(StorageError, match="requests-kerberos") as refused:
        choose_storage("http://namenode:9870", tmp_path, account="pai", kerberos=True)
    assert refused.value.problem is Problem.UNSUPPORTED
