"""A file that is not saved for lack of room: its person is told what happened and what to do."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from typing import Any

import pytest
from jupyter_server.services.contents.manager import AsyncContentsManager
from tornado.web import HTTPError

from pai_labextension.session.disk_full import is_full, say_when_full
from tests.labextension.conftest import MakeServer

_TEXT = {"type": "file", "format": "text"}
_LARGE = "x" * 60 * 2**20


@pytest.fixture
def language(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PAI_LOCALE", "en")
    return "en"


@pytest.mark.usefixtures("language")
async def test_a_save_without_room_says_what_to_do_and_the_old_file_stays(
    make_jupyter: MakeServer, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = await make_jupyter("http://127.0.0.1:9")
    assert (await browser.put("api/contents/small/notes.txt", json={**_TEXT, "content": "mine"})).is_success
    refused = await browser.put("api/contents/small/notes.txt", json={**_TEXT, "content": _LARGE})
    assert refused.status_code == 507
    assert "Unexpected error" not in refused.text
    assert (small_disk / "notes.txt").read_text() == "mine"

    # nothing but this is left of the dialog that Lab shows
    said = refused.json()["message"]
    assert said.startswith("Not saved: ")
    assert "What you typed is not lost while this page is open." in said
    assert "pai fs put" in said
    monkeypatch.setenv("PAI_LOCALE", "zh-CN")
    chinese = await browser.put("api/contents/small/new.txt", json={**_TEXT, "content": _LARGE})
    assert (chinese.status_code, chinese.json()["message"].startswith("未保存")) == (507, True)


@pytest.mark.usefixtures("language")
async def test_how_much_is_used_is_said_where_the_disk_itself_is_full(
    make_jupyter: MakeServer, small_disk: Path
) -> None:
    browser = await make_jupyter("http://127.0.0.1:9", root_dir=str(small_disk))
    (small_disk / "notes.txt").write_text("mine")
    await (
        await asyncio.create_subprocess_exec("dd", "if=/dev/zero", f"of={small_disk}/large", "bs=1M")
    ).wait()
    refused = await browser.put("api/contents/notes.txt", json={**_TEXT, "content": _LARGE})
    assert "(40 MB of 40 MB are used)" in refused.json()["message"]
    for path, body in (("api/contents/new.txt", _TEXT | {"content": _LARGE}),):
        assert (await browser.put(path, json=body)).status_code == 507
    (small_disk / "large").unlink()
    assert (await browser.put("api/contents/notes.txt", json={**_TEXT, "content": "more"})).is_success


async def test_what_fails_for_another_reason_is_told_as_ever(make_jupyter: MakeServer) -> None:
    browser = await make_jupyter("http://127.0.0.1:9")
    answer = await browser.put("api/contents/no/such/folder.txt", json={**_TEXT, "content": ""})
    assert answer.status_code != 507
    assert (await browser.delete("api/contents/nothing.txt")).status_code == 404


async def test_a_manager_that_keeps_files_elsewhere_is_left_as_it_is() -> None:
    class Server:
        contents_manager_class: Any = AsyncContentsManager

    server: Any = Server()
    say_when_full(server)
    assert server.contents_manager_class is AsyncContentsManager


def test_the_first_failure_counts_also_where_another_came_while_it_was_cleaned_up() -> None:
    def failed(number: int) -> HTTPError:
        try:
            try:
                try:
                    raise OSError(number, os.strerror(number))
                finally:
                    raise FileNotFoundError(errno.ENOENT, "the copy that there never was")
            except OSError as error:
                raise HTTPError(500, "Unexpected error") from error
        except HTTPError as error:
            return error

    assert is_full(failed(errno.ENOSPC))
    assert is_full(failed(errno.EDQUOT))
    assert not is_full(failed(errno.EIO))
