"""Jobs that name files, on a real scheduler: code in, results out by the task's credential, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.scheduler import RunningScheduler, hello_job

#: the documents' way of reading and writing, with nothing in it that knows of us
RUN_SAMPLES = """
import os
import hdfs

url, user, job = (os.environ[name] for name in ("PAI_DEFAULT_FS_URI", "PAI_USER_NAME", "PAI_JOB_NAME"))
client = hdfs.InsecureClient(url, user=user)
client.download(f"/{user}/demo/data", ".")
with open("data/words.txt") as words, open("output.txt", "w") as output:
    output.write(words.read().upper())
client.makedirs(f"/{user}/demo/output/{job}")
client.upload(f"/{user}/demo/output/{job}", "output.txt", overwrite=True)
client.set_permission(f"/{user}/demo/output/{job}", "777")
"""


MOUNTED_AT_ROOT = {"mounts": [{"source": "/alice/too-much", "target": "/data"}]}


async def ended(client: Client, name: str, user: str = "alice") -> Any:
    """Wait for a job's end; return its status."""
    async for _ in client.events(user, name):
        pass
    return (await client.job(user, name))["jobStatus"]


async def run(client: Client, name: str, command: str, **fields: object) -> Any:
    await client.submit(hello_job(name, command, **fields))
    return await ended(client, name)


async def test_a_job_runs_its_code_reads_data_and_leaves_results(
    scheduler: RunningScheduler, alice: Client
) -> None:
    scheduler.put("alice/couplet/run_samples.py", RUN_SAMPLES.encode())
    scheduler.put("alice/couplet/train.sh", b"#!/bin/sh\nexec python run_samples.py\n", runs=True)
    scheduler.put("alice/demo/data/words.txt", b"hello couplet")
    command = "cd $PAI_JOB_NAME && ls -al && chmod +x train.sh && ./train.sh"
    status = await run(alice, "couplet", command, codeDir="$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME")
    log = (await alice.log("alice", "couplet", "main", 0)).decode()
    assert status["state"] == "SUCCEEDED", log
    output = scheduler.data_dir / "storage/alice/demo/output/couplet/output.txt"
    assert output.read_text() == "HELLO COUPLET"
    assert (scheduler.data_dir / "storage/Output/alice/couplet").is_dir()
    while list((scheduler.data_dir / "code").glob("[!.]*")):  # noqa: ASYNC110 - it goes soon
        await asyncio.sleep(0.05)


async def test_mounted_data_is_a_folder_beside_the_code(scheduler: RunningScheduler, alice: Client) -> None:
    scheduler.put("Public/words/words.txt", b"public words")
    mounts = [{"source": "$PAI_DEFAULT_FS_URI/Public/words", "target": "data/words"}]
    await run(alice, "mounted", "cat data/words/words.txt", extras={"mounts": mounts})
    assert await alice.log("alice", "mounted", "main", 0) == b"public words"
    assert (scheduler.data_dir / "storage/Public/words/words.txt").exists()


async def test_the_command_line_of_the_hdfs_library_works_in_a_task(
    scheduler: RunningScheduler, alice: Client
) -> None:
    scheduler.put("alice/cli/data.txt", b"over the command line")
    status = await run(
        alice, "hdfscli", "hdfscli download /alice/cli/data.txt - && hdfscli download /bob/x -"
    )
    assert status["state"] == "FAILED"
    assert await alice.log("alice", "hdfscli", "main", 0, stream="stdout") == b"over the command line"
    assert "may not read /bob/x" in (await alice.log("alice", "hdfscli", "main", 0, stream="stderr")).decode()


async def test_a_job_that_names_the_storage_by_the_schedulers_own_address_finds_it_all_the_same(
    scheduler: RunningScheduler, alice: Client
) -> None:
    scheduler.put("alice/old/data.txt", b"named as ever")
    command = """python3 -c '
import hdfs, os
storage = os.environ["PAI_DEFAULT_FS_URI"]
data = os.environ["PAI_DATA_DIR"].removeprefix(storage)
with hdfs.InsecureClient(storage).read(data + "/data.txt") as file:
    print(file.read().decode())
'"""
    status = await run(alice, "old-uri", command, dataDir=f"{scheduler.url}/alice/old")
    assert await alice.log("alice", "old-uri", "main", 0) == b"named as ever\n", status


async def test_a_jobs_token_is_worth_nothing_after_its_end_and_nowhere_else(
    scheduler: RunningScheduler, alice: Client, tmp_path: Path
) -> None:
    gate, file = tmp_path / "gate", tmp_path / "token"
    wait = f"touch {file}.there; while [ ! -e {gate} ]; do sleep 0.05; done"
    command = f"printf %s $PAI_STORAGE_TOKEN > {file}; {wait}"
    await alice.submit(hello_job("tokened", command))
    while not Path(f"{file}.there").exists():  # noqa: ASYNC110 - another process makes it
        await asyncio.sleep(0.05)
    headers = {"Authorization": f"Bearer {file.read_text()}"}
    async with httpx.AsyncClient(base_url=scheduler.url, headers=headers, trust_env=False) as task:
        listing = "/webhdfs/v1/alice?op=LISTSTATUS"
        assert (await task.get(listing)).status_code == 200
        assert (await task.get("/webhdfs/v1/bob?op=LISTSTATUS")).status_code == 403
        assert (await task.get("/api/v1/jobs")).status_code == 401
        gate.touch()
        await ended(alice, "tokened")
        assert (await task.get(listing)).status_code == 401
    # and nobody is shown it
    for told in (await alice.job("alice", "tokened"), await alice.list_events("alice", "tokened")):
        assert file.read_text() not in str(told)
    assert file.read_text() not in scheduler.log.read_text()


async def test_a_task_that_is_told_to_end_may_save_what_it_has(
    scheduler: RunningScheduler, alice: Client
) -> None:
    save = "echo saved > x; hdfscli upload x /alice/saved.txt; exit 1"
    await alice.submit(hello_job("saving", f"trap '{save}' TERM; echo ready; sleep 600 & wait"))
    async for event in alice.events("alice", "saving"):
        if event["type"] == "running":
            break
    while await alice.log("alice", "saving", "main", 0) != b"ready\n":  # noqa: ASYNC110 - another process does
        await asyncio.sleep(0.05)
    await alice.stop("alice", "saving")
    await ended(alice, "saving")
    assert (scheduler.data_dir / "storage/alice/saved.txt").read_text() == "saved\n"


async def test_what_is_set_in_the_job_takes_the_place_of_ours(alice: Client) -> None:
    await run(
        alice,
        "own-netrc",
        "echo $NETRC $PAI_STORAGE_TOKEN",
        jobEnvs={"NETRC": "/mine", "PAI_STORAGE_TOKEN": 7},
    )
    assert await alice.log("alice", "own-netrc", "main", 0) == b"/mine 7\n"


@pytest.mark.parametrize(
    ("name", "fields", "words"),
    [
        ("no-such", {"codeDir": "$PAI_DEFAULT_FS_URI/alice/none"}, "There is no file or folder /alice/none."),
        ("of-bob", {"codeDir": "/bob/code"}, "User alice may not read /bob/code."),
        ("too-large", {"codeDir": "/alice/too-much"}, "It holds 201 MB in 1 file"),
        ("absolute", {"extras": MOUNTED_AT_ROOT}, "mounts data in the working folder only"),
        ("home", {"extras": {"home": "/home/me"}}, "no homes, as nothing can be mounted at /home/me"),
        ("not-mine", {"outputDir": "/bob/results"}, "User alice may not write to /bob/results."),
    ],
)
async def test_a_job_that_cannot_have_its_files_says_why_and_is_not_tried_again(
    scheduler: RunningScheduler, alice: Client, name: str, fields: dict[str, Any], words: str
) -> None:
    scheduler.put("bob/code/a.py")
    with scheduler.put("alice/too-much/data").open("r+b") as file:
        file.truncate(201 * 10**6)
    status = await run(alice, name, "echo ran", retryCount=3, **fields)
    assert (status["state"], status["retries"]) == ("FAILED", 0)
    (attempt,) = await alice.attempts("alice", name)
    assert words in (attempt["reason"] or "")
    assert status["appExitSpec"]["code"] == status["appExitCode"]


async def test_a_retried_job_and_a_restarted_scheduler_keep_the_code_that_was_fetched_first(
    own_scheduler: Callable[..., RunningScheduler], tmp_path: Path
) -> None:
    scheduler = await asyncio.to_thread(own_scheduler)
    code = scheduler.put("alice/kept/version", b"1")
    command = f"cat kept/version; echo $PAI_CONTAINER_ID >> {tmp_path}/ran; [ -e {tmp_path}/over ]"
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("kept", command, codeDir="/alice/kept", retryCount=-1))
        while not (tmp_path / "ran").exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)
        code.write_bytes(b"2")
        scheduler.kill()
        await asyncio.to_thread(scheduler.start)
        (tmp_path / "over").touch()
        assert (await ended(alice, "kept"))["state"] == "SUCCEEDED"
        assert len((tmp_path / "ran").read_text().split()) > 1
        assert await alice.log("alice", "kept", "main", 0) == b"1"


async def test_a_job_that_is_stopped_between_two_attempts_leaves_nothing(
    scheduler: RunningScheduler, alice: Client
) -> None:
    scheduler.put("alice/between/a.py")
    await alice.submit(hello_job("between", "exit 1", codeDir="/alice/between", retryCount=-1))
    async for event in alice.events("alice", "between"):
        # (so often in a row it waits a while before the next one)
        if event["type"] == "task-ended" and event["attempt"] == 4:
            break
    await alice.stop("alice", "between")
    await ended(alice, "between")
    while list((scheduler.data_dir / "code").glob("[!.]*")):  # noqa: ASYNC110 - it goes soon
        await asyncio.sleep(0.05)


async def test_what_the_user_may_not_use_is_said_before_the_job_runs(
    scheduler: RunningScheduler, alice: Client
) -> None:
    config = hello_job("told", "true", outputDir="/Public/结果", codeDir="/alice/code")
    said = "User alice may not write to /Public/"
    forecast = await alice.validate(config)
    assert forecast["fits"] == "never"
    (error,) = forecast["errors"]
    assert error["path"] == "$.outputDir"
    assert said in error["message"]
    # it is taken, as rights may change, and its user is told
    warnings: list[str] = []
    async with Client(scheduler.url, "token-of-alice", warned=warnings.append) as client:
        await client.submit(config)
        await client.submit(hello_job("fine", "true", outputDir="/alice/results"))
    (warning,) = warnings
    assert said in warning


async def test_what_a_job_needs_of_the_storage_and_is_not_there_is_said_before_it_runs(
    scheduler: RunningScheduler, alice: Client
) -> None:
    config = hello_job(
        "absent", codeDir="/alice/absent", extras={"mounts": [{"source": "/alice/nothing", "target": "data"}]}
    )
    forecast = await alice.validate(config)
    assert (forecast["errors"], forecast["fits"]) == ([], "now")
    code, mount = forecast["warnings"]
    assert code["path"] == "$.codeDir"
    assert "codeDir /alice/absent is not there. The job fails when it starts" in code["message"]
    assert mount["path"] == "$.extras.mounts[0].source"
    # it is taken, as its code may come before it starts, and its user is told
    warnings: list[str] = []
    async with Client(scheduler.url, "token-of-alice", warned=warnings.append) as client:
        await client.submit(config)
        assert warnings == [code["message"], mount["message"]]
        warnings.clear()
        scheduler.put("alice/present/main.py")
        await client.submit(hello_job("present", codeDir="/alice/present"))
        assert warnings == []
