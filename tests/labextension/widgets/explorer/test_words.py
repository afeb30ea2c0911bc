"""Paths as people read them."""

from __future__ import annotations

import pytest

from pai_labextension.widgets.explorer.local_path import suggestions
from pai_labextension.widgets.explorer.paths import child, in_a_job, parent, path_of
from pai_labextension.widgets.explorer.storage_links import browser_link, download_link
from pai_labextension.widgets.explorer.words import reason
from pai_labextension.widgets.language import Language
from pai_scheduler.client.storage.client import FileInfo


def test_a_path_is_put_together_and_taken_apart() -> None:
    assert child("/", "a") == "/a"
    assert child("/a", "b c") == "/a/b c"
    assert parent("/a/b") == "/a"
    assert parent("/a") == parent("/") == "/"


def test_a_job_names_a_path_so_that_it_is_found_again() -> None:
    for path in ("/alice/a b", "/alice/100%/数据", "/alice/#1?x"):
        assert path_of(in_a_job(path)) == path
    assert in_a_job("/") == "$PAI_DEFAULT_FS_URI"


@pytest.mark.parametrize(
    "uri", ["", "hdfs://elsewhere/a", "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/a", "$PAI_DEFAULT_FS_URIX/a"]
)
def test_what_depends_on_the_job_or_is_elsewhere_is_no_place_to_begin(uri: str) -> None:
    assert path_of(uri) is None


def test_an_error_of_the_disk_says_where() -> None:
    assert reason(Language("en"), PermissionError(13, "Permission denied", "/x")) == "Permission denied: /x"


def test_a_link_cannot_be_broken_out_of() -> None:
    entry = FileInfo('/a/x" onclick="alert(1)', True, 0, 0, 0o755, "a", "")
    link = download_link(Language("en"), "/base/", entry)
    assert 'onclick="' not in link
    assert "/base/pai/webhdfs/v1/a/x%22%20onclick%3D%22alert%281%29?op=ARCHIVE" in link
    assert 'onclick="' not in browser_link(Language("en"), "/base/", entry.path)


def test_paths_of_this_machine_are_suggested(tmp_path, monkeypatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "dates.txt").touch()
    (tmp_path / ".hidden").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert suggestions("", folders_only=False) == ["data/", "dates.txt"]
    assert suggestions("da", folders_only=True) == ["data/"]
    assert suggestions(f"{tmp_path}/.h", folders_only=False) == [f"{tmp_path}/.hidden"]
    assert suggestions("~/dat", folders_only=False) == ["~/data/", "~/dates.txt"]
    assert suggestions("nowhere/x", folders_only=False) == []
