"""A job from a file."""

from __future__ import annotations

import datetime as dt
from typing import Any

from pai_labextension.widgets.import_view import ImportView
from pai_labextension.widgets.language import Language
from pai_labextension.widgets.model import JobModel


class Upload:
    def __init__(self) -> None:
        self.model = JobModel('{"typed": "so far"}')
        self.imports = 0
        self.view = ImportView(self.model, Language("en"), self._count)

    def _count(self) -> None:
        self.imports += 1

    def choose(self, content: bytes, name: str = "job.json") -> None:
        file: dict[str, Any] = {
            "name": name,
            "type": "application/json",
            "size": len(content),
            "last_modified": dt.datetime.now(dt.UTC),
            "content": memoryview(content),
        }
        self.view.upload.value = (file,)


async def test_a_file_becomes_the_job_and_what_was_typed_can_be_had_back() -> None:
    upload = Upload()
    upload.choose('\ufeff{"jobName": "名"} // here'.encode())
    assert upload.model.text == '{"jobName": "名"} // here'
    assert upload.model.config == {"jobName": "名"}
    assert "job.json" in upload.view.outcome.value
    upload.view.undo.click()
    assert upload.model.text == '{"typed": "so far"}'
    assert upload.view.undo.layout.display == "none"


async def test_the_same_file_can_be_chosen_again() -> None:
    upload = Upload()
    upload.choose(b"{}")
    upload.choose(b"{}")
    assert upload.imports == 2


async def test_a_file_that_does_not_parse_is_imported_all_the_same_to_be_put_right() -> None:
    upload = Upload()
    upload.choose(b"{oops")
    assert upload.model.text == "{oops"
    assert upload.model.text_error is not None


async def test_a_file_that_is_no_text_or_too_large_is_refused_and_nothing_is_lost() -> None:
    upload = Upload()
    upload.choose(b"\xff\xfe\x00", "photo.json")
    assert "photo.json" in upload.view.outcome.value
    assert "UTF-8" in upload.view.outcome.value
    upload.choose(b" " * (8 * 1024 * 1024 + 1))
    assert "8 MiB" in upload.view.outcome.value
    assert upload.model.text == '{"typed": "so far"}'
    assert upload.imports == 0
