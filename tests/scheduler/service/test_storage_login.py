"""The files by which a task's programs find into the storage, read by the programs' own libraries."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hdfs.config import Config
from requests import Request, Session

from pai_scheduler.job.spec import uri_name
from pai_scheduler.service.credentials import HDFSCLI, NETRC, access_files
from pai_scheduler.storage.files import home
from pai_scheduler.storage.paths import StorageNames, StoragePath

USERS = ["alice", "王 小/明", 'a "quoted" \\ name#', "x%2Fy", ".."]


@pytest.mark.parametrize("user", USERS)
def test_requests_finds_the_token_for_the_storage_and_for_no_other_host(
    user: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NETRC).write_bytes(
        access_files(user, "the-token", "http://172.17.0.1:8000/services/pai")[NETRC]
    )
    monkeypatch.setenv("NETRC", str(tmp_path / NETRC))

    def sent(url: str) -> str | None:
        prepared = Session().prepare_request(Request("GET", url))
        return prepared.headers.get("Authorization")

    credentials = sent("http://172.17.0.1:8000/services/pai/webhdfs/v1/alice?op=LISTSTATUS")
    assert credentials is not None
    assert base64.b64decode(credentials.removeprefix("Basic ")).partition(b":")[2] == b"the-token"
    assert sent("http://172.17.0.2:8000/") is None


@pytest.mark.parametrize("user", USERS)
def test_hdfscli_finds_the_storage(user: str, tmp_path: Path) -> None:
    file = tmp_path / HDFSCLI
    file.write_bytes(access_files(user, "the-token", "http://127.0.0.1:9186")[HDFSCLI])
    client = Config(str(file)).get_client()
    assert client.url == "http://127.0.0.1:9186"
    assert "the-token" not in file.read_text()


@pytest.mark.parametrize("uri", ["hdfs://name:9000", "file:///srv/pai", ""])
def test_a_storage_that_is_not_reached_over_http_has_no_such_files(uri: str) -> None:
    assert access_files("alice", "the-token", uri) == {}


@pytest.mark.parametrize("user", USERS)
def test_a_users_name_in_a_uri_leads_to_the_users_own_folder(user: str) -> None:
    names = StorageNames(["http://fs"])
    assert names.resolve(f"http://fs/{uri_name(user)}/code") == home(user) / "code"
    assert names.resolve(f"http://fs/Output/{uri_name(user)}") == StoragePath(("Output", home(user).name))
