"""Submit with code, on a real scheduler."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.code import (
    CodeError,
    CodeSettings,
    SubmitRefusedError,
    carry_out,
    generate_name,
    prepare,
    submit_with_code,
)
from pai_scheduler.client.storage.transfer import TransferProgress, TransferResult
from tests.scheduler.client.storage.test_client import contents
from tests.scheduler.client.storage.test_code_settings import write
from tests.scheduler.client.storage.test_upload import names
from tests.testbed.scheduler import RunningScheduler, hello_job

ON = CodeSettings(enabled=True)


@pytest.fixture
def name() -> str:
    return f"code-{uuid4().hex[:8]}"


@pytest.fixture
async def wang(scheduler: RunningScheduler) -> AsyncIterator[FilesClient]:
    """Be somebody with an awkward name."""
    async with FilesClient(scheduler.url, "token-of-wang") as client:
        yield client


def job(name: str, command: str = "cat $PAI_JOB_NAME/main.py", **fields: object) -> dict[str, object]:
    return hello_job(name, command, **fields)


async def sent(
    client: Client, files: FilesClient, config: Mapping[str, Any], folder: Path
) -> tuple[str, TransferResult]:
    prepared = await prepare(client, files, config, folder, CodeSettings(True, generate_name=True))
    return await carry_out(client, files, prepared, folder)


async def test_a_job_finds_the_code_of_its_folder(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py", "print('hello from here')")
    write(folder, "notes.txt")
    write(folder, ".pai/settings.json", '{"pai.job.upload.enabled": true}')
    told: list[TransferProgress] = []
    text = f"// a job\n{json.dumps(job(name))}"
    assert await submit_with_code(alice, files, text, folder, tell=told.append) == name
    assert await names(files, f"/alice/{name}") == ["main.py"]
    assert (told[-1].files_done, told[-1].files_total) == (1, 1)
    config = await alice.config("alice", name)
    assert config["codeDir"] == "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME"
    log = b"".join([part async for part in alice.follow_log("alice", name, "main", 0)])
    assert log == b"print('hello from here')"


async def test_a_codedir_of_its_own_is_where_the_code_goes(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "sub/main.py", "1")
    config = job(name, "cat code/sub/main.py", codeDir=f"$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/{name}/code")
    await submit_with_code(alice, files, config, folder, ON)
    assert await names(files, f"/alice/{name}/code") == ["sub", "sub/main.py"]
    for other in ("hdfs://elsewhere/alice/code", "http://elsewhere/x"):
        with pytest.raises(ApiError, match=r"\$\.codeDir: .* not in the cluster's storage"):
            await submit_with_code(alice, files, job(name, codeDir=other), folder, ON)


async def test_without_the_setting_nothing_is_sent(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py")
    assert await submit_with_code(alice, files, job(name, "true"), folder) == name
    assert await files.find(f"/alice/{name}") is None
    assert "codeDir" not in await alice.config("alice", name)
    assert not (folder / ".pai").exists()


async def test_a_name_is_generated_when_asked_for(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py")
    settings = CodeSettings(enabled=True, generate_name=True)
    first = await submit_with_code(alice, files, job(name), folder, settings)
    second = await submit_with_code(alice, files, job(name), folder, settings)
    assert first != second
    for one in (first, second):
        assert re.fullmatch(f"{name}_[0-9a-f]{{8}}", one)
        assert await names(files, f"/alice/{one}") == ["main.py"]


def test_a_generated_name_is_never_too_long() -> None:
    assert len(generate_name("x" * 255)) == 255
    assert re.fullmatch("x{246}_[0-9a-f]{8}", generate_name("x" * 255))


async def test_into_the_same_folder_only_changes_are_sent_and_what_is_gone_is_removed(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    for file in ("main.py", "same.py", "gone.py", "changed-there.py"):
        write(folder, file)
    config = job(name, "true", codeDir=f"$PAI_DEFAULT_FS_URI/alice/{name}")

    async def submit(number: int) -> TransferResult:
        prepared = await prepare(alice, files, {**config, "jobName": f"{name}-{number}"}, folder, ON)
        return (await carry_out(alice, files, prepared, folder))[1]

    await submit(1)
    await files.write(f"/alice/{name}/output.txt", b"of the job's own")
    await files.write(f"/alice/{name}/changed-there.py", b"by somebody else", overwrite=True)
    write(folder, "main.py", "changed")
    (folder / "gone.py").unlink()
    (folder / "changed-there.py").unlink()
    outcome = await submit(2)
    assert (outcome.files, outcome.same, outcome.copied) == (1, 1, 0)
    assert await contents(files, f"/alice/{name}/main.py") == b"changed"
    assert await names(files, f"/alice/{name}") == ["changed-there.py", "main.py", "output.txt", "same.py"]


async def test_into_a_new_folder_what_did_not_change_is_copied_there(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    for file in ("main.py", "same.py", "changed-there.py", "gone-there.py"):
        write(folder, file)
    first, outcome = await sent(alice, files, job(name, "true"), folder)
    assert (outcome.files, outcome.copied) == (4, 0)
    await files.write(f"/alice/{first}/changed-there.py", b"by somebody else", overwrite=True)
    await files.delete(f"/alice/{first}/gone-there.py")
    os.utime(folder / "main.py", (1, 1))
    second, outcome = await sent(alice, files, job(name, "true"), folder)
    assert (outcome.files, outcome.copied) == (3, 1)
    for file in ("main.py", "same.py", "changed-there.py", "gone-there.py"):
        assert await contents(files, f"/alice/{second}/{file}") == b"x"
        modified = (folder / file).stat().st_mtime_ns // 1_000_000
        assert (await files.status(f"/alice/{second}/{file}")).modified == modified
    # the copy is as good as what was sent
    assert (await sent(alice, files, job(name, "true"), folder))[1].copied == 4
    await files.delete(f"/alice/{second}", recursive=True)


async def test_a_wrong_job_is_refused_before_anything_is_sent(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py")
    config = {**job(name), "gpuTypo": 1}
    with pytest.raises(ApiError, match="gpuTypo") as refusal:
        await submit_with_code(alice, files, config, folder, ON)
    assert refusal.value.status == 400
    assert await files.find(f"/alice/{name}") is None
    with pytest.raises(ApiError, match="must be an object"):
        await submit_with_code(alice, files, "[]", folder, ON)


async def test_who_is_refused_afterwards_is_told_where_the_code_is(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py")
    prepared = await prepare(alice, files, job(name, "true"), folder, ON)
    await alice.submit(job(name, "true"))
    with pytest.raises(SubmitRefusedError) as refusal:
        await carry_out(alice, files, prepared, folder)
    assert (refusal.value.status, refusal.value.code_folder) == (409, f"/alice/{name}")


async def test_a_name_that_is_taken_leaves_that_jobs_code_as_it_is(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py", "1")
    await submit_with_code(alice, files, job(name, "true"), folder, ON)
    write(folder, "main.py", "another")
    with pytest.raises(ApiError, match="There is a job named"):
        await submit_with_code(alice, files, job(name, "true"), folder, ON)
    assert (await files.status(f"/alice/{name}/main.py")).length == 1


async def test_a_file_that_cannot_go_along_keeps_the_job_back(
    alice: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py")
    await files.mkdirs(f"/alice/{name}/main.py/in-the-way")
    with pytest.raises(CodeError, match=r"main\.py was not uploaded"):
        await submit_with_code(alice, files, job(name), folder, ON)
    with pytest.raises(ApiError):
        await alice.job("alice", name)


async def test_a_user_whose_name_cannot_name_a_folder_has_code_too(
    scheduler: RunningScheduler, wang: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py", "谢谢")
    async with Client(scheduler.url, "token-of-wang") as client:
        await submit_with_code(client, wang, job(name), folder, ON)
        log = b"".join([part async for part in client.follow_log("王 小/明", name, "main", 0)])
    assert log.decode() == "谢谢"


async def test_an_administrator_submits_for_somebody_else(
    scheduler: RunningScheduler, root: Client, files: FilesClient, folder: Path, name: str
) -> None:
    write(folder, "main.py", "for alice")
    async with FilesClient(scheduler.url, "token-of-root") as roots:
        await submit_with_code(root, roots, job(name), folder, ON, user="alice")
    assert await names(files, f"/alice/{name}") == ["main.py"]
