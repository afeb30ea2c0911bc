"""A field of the job gets its folder or file from the storage."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pai_labextension.widgets import JobForm
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.widgets.explorer.conftest import enter, shown, visible
from tests.labextension.widgets.waiting import until

JOB = {"jobName": "demo", "image": "b", "taskRoles": [{"name": "worker", "command": "true"}]}


@pytest.fixture
async def form(client: Client, files: FilesClient) -> AsyncIterator[JobForm]:
    await files.write("/alice/data/train/a.csv", b"1")
    await files.write("/alice/login.json", b"{}")
    form = JobForm(JOB, client, "en", quiet=0)
    yield form
    form.close()


async def test_a_folder_is_chosen_by_going_into_it(form: JobForm) -> None:
    form.form.browse["dataDir"].click()
    assert visible(form.picker)
    view = form.picker.view
    assert view is not None
    await shown(view, "data", "login.json")
    enter(view, "data")
    await shown(view, "train")
    assert form.picker.use.description == "Use /alice/data"
    form.picker.use.click()
    assert form.job["dataDir"] == "$PAI_DEFAULT_FS_URI/alice/data"
    assert form.form.field("dataDir").entry.value == "$PAI_DEFAULT_FS_URI/alice/data"
    assert not visible(form.picker)


async def test_a_folder_in_the_list_is_chosen_and_the_field_says_where_to_begin(form: JobForm) -> None:
    form.form.field("codeDir").entry.value = "$PAI_DEFAULT_FS_URI/alice/data"
    form.form.browse["codeDir"].click()
    view = form.picker.view
    assert view is not None
    await shown(view, "train")
    view.choose("train")
    form.picker.use.click()
    assert form.job["codeDir"] == "$PAI_DEFAULT_FS_URI/alice/data/train"


async def test_where_a_file_is_wanted_no_folder_will_do(form: JobForm) -> None:
    form.form.browse["authFile"].click()
    view = form.picker.view
    assert view is not None
    await shown(view, "data", "login.json")
    assert form.picker.use.disabled
    view.choose("data")
    assert form.picker.use.disabled
    assert form.picker.use.description == "Choose a file"
    view.choose("login.json")
    await until(lambda: not form.picker.use.disabled)
    form.picker.use.click()
    assert form.job["authFile"] == "$PAI_DEFAULT_FS_URI/alice/login.json"


async def test_closing_the_picker_changes_nothing(form: JobForm) -> None:
    form.form.browse["outputDir"].click()
    form.picker.cancel.click()
    assert not visible(form.picker)
    assert form.job == JOB
