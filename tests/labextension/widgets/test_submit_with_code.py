"""Submit with code, and look at the results, with a real scheduler on the process engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_labextension.widgets import JobForm, JobMonitor, NotSubmittedError
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.widgets.explorer.conftest import shown, write_tree
from tests.labextension.widgets.waiting import until
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job


@pytest.fixture(scope="module")
def scheduler(module_scheduler: StartScheduler) -> RunningScheduler:
    return module_scheduler()


@pytest.fixture
async def client(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


@pytest.fixture
async def files(scheduler: RunningScheduler) -> AsyncIterator[FilesClient]:
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        yield files


async def test_the_code_goes_along_and_the_second_time_only_what_changed(
    client: Client, files: FilesClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, main_sh="echo one; . ./lib/say.sh", lib__say_sh="echo lib", data_bin="-")
    form = JobForm(hello_job("coded", "cd $PAI_JOB_NAME && sh main.sh"), client, "en", code=tmp_path, quiet=0)
    try:
        form.code.unique.value = True
        assert form.submit_button.disabled is False
        monitor = await form.submit()
        first = monitor.name
        assert first.startswith("coded_")
        assert await asyncio.wait_for(monitor.wait(), 60) == "SUCCEEDED"
        logs = monitor.logs
        await until(lambda: logs.view.text == "one\nlib\n")
        assert await files.find(f"/alice/{first}/data.bin") is None

        (tmp_path / "main.sh").write_text("echo two; . ./lib/say.sh")
        sent: list[str] = []
        write = FilesClient.write

        async def noted(self: FilesClient, path: str, *arguments: object, **options: object) -> None:
            sent.append(path)
            await write(self, path, *arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(FilesClient, "write", noted)
        assert not form.submit_button.disabled, "the code may be another one"
        monitor = await form.submit()
        assert monitor.name != first
        assert sent == [f"/alice/{monitor.name}/main.sh"]
        assert await asyncio.wait_for(monitor.wait(), 60) == "SUCCEEDED"
        await until(lambda: monitor.logs.view.text == "two\nlib\n")
    finally:
        form.close()


async def test_code_that_cannot_go_along_keeps_the_job_here(client: Client, tmp_path: Path) -> None:
    form = JobForm(hello_job("nothing-to-send"), client, "zh_CN", code=tmp_path, quiet=0)
    try:
        with pytest.raises(NotSubmittedError):
            await form.submit()
        assert "未提交" in form.outcome.value
        assert str(tmp_path) in form.outcome.value
        assert "nothing-to-send" not in [job["name"] for job in await client.jobs()]
        form.code.enabled.value = False
        await form.submit()
    finally:
        form.close()


async def test_a_name_that_is_taken_is_refused_before_the_code_is_sent(
    client: Client, tmp_path: Path
) -> None:
    await client.submit(hello_job("gone-already"))
    write_tree(tmp_path, a_py="")
    form = JobForm(hello_job("gone-already"), client, "en", code=tmp_path, quiet=0)
    try:
        with pytest.raises(NotSubmittedError):
            await form.submit()
        assert "Its code is in" not in form.outcome.value
        assert form.form.field("jobName").problem
    finally:
        form.close()


async def test_who_is_refused_is_told_that_the_code_is_there(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FilesClient.write

    async def meanwhile(self: FilesClient, path: str, *arguments: object, **options: object) -> None:
        await client.submit(hello_job("taken"))
        await write(self, path, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(FilesClient, "write", meanwhile)
    write_tree(tmp_path, a_py="")
    form = JobForm(hello_job("taken"), client, "en", code=tmp_path, quiet=0)
    try:
        with pytest.raises(NotSubmittedError):
            await form.submit()
        assert "Its code is in /alice/taken already." in form.outcome.value
        assert form.form.field("jobName").problem
    finally:
        form.close()


async def test_an_upload_is_broken_off_and_the_same_name_is_used_again(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_tree(tmp_path, a_sh="echo here")
    reached, write = asyncio.Event(), FilesClient.write

    async def slow(*_arguments: object, **_options: object) -> None:
        reached.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(FilesClient, "write", slow)
    form = JobForm(hello_job("slow", "sh $PAI_JOB_NAME/a.sh"), client, "en", code=tmp_path, quiet=0)
    try:
        form.code.unique.value = True
        form.submit_button.click()
        async with asyncio.timeout(20):
            await reached.wait()
        name = form.job["jobName"]
        assert form.submit_button.disabled
        form.bar.cancel.click()
        await until(lambda: "Broken off" in form.outcome.value)
        assert form.monitor is None
        monkeypatch.setattr(FilesClient, "write", write)
        monitor = await form.submit()
        assert monitor.name == name
        assert await asyncio.wait_for(monitor.wait(), 60) == "SUCCEEDED"
    finally:
        form.close()


async def test_a_jobs_results_open_in_an_explorer(client: Client, files: FilesClient) -> None:
    await client.submit(hello_job("resulting"))
    monitor = JobMonitor("resulting", client=client, locale="en")
    try:
        await monitor.wait()
        await files.write("/Output/alice/resulting/model.bin", b"m")
        monitor.results_button.click()
        await until(lambda: monitor.results)
        assert monitor.results is not None
        await shown(monitor.results, "model.bin")
        await files.write("/Output/alice/resulting/more.bin", b"m")
        await monitor.show_results()
        await shown(monitor.results, "model.bin", "more.bin")
    finally:
        monitor.close()


async def test_a_named_output_folder_is_opened_and_one_that_is_elsewhere_is_said(
    client: Client, files: FilesClient
) -> None:
    await files.write("/alice/out/named/a.txt", b"a")
    await client.submit(hello_job("named", outputDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/out/$PAI_JOB_NAME"))
    await client.submit(hello_job("elsewhere", outputDir="s3://bucket/x"))
    named = JobMonitor("named", client=client, locale="en")
    elsewhere = JobMonitor("elsewhere", client=client, locale="en")
    try:
        await named.show_results()
        assert named.results is not None
        await until(lambda: named.results and "a.txt" in named.results.names)
        await elsewhere.show_results()
        assert elsewhere.results is None
        assert "s3://bucket/x" in elsewhere.outcome.value
    finally:
        named.close()
        elsewhere.close()
