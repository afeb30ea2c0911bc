"""Jobs whose files are in a real HDFS: code and data come from there, results go there; its failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.hdfs import ACCOUNT, Hdfs
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

TRAIN = b"""\
import os, hdfs
words = open("../data/words.txt").read()
client = hdfs.InsecureClient(os.environ["PAI_DEFAULT_FS_URI"])
output = os.environ["PAI_OUTPUT_DIR"].removeprefix(os.environ["PAI_DEFAULT_FS_URI"])
client.write(f"{output}/result.txt", words.upper())
"""


@pytest.fixture(scope="module")
def scheduler(hdfs: Hdfs, module_scheduler: StartScheduler) -> RunningScheduler:
    return module_scheduler("--storage", hdfs.url, "--storage-user", ACCOUNT)


@pytest.fixture
async def files(scheduler: RunningScheduler) -> AsyncIterator[httpx.AsyncClient]:
    """Talk to the storage as alice."""
    headers = {"Authorization": "Bearer token-of-alice"}
    base = f"{scheduler.url}/webhdfs/v1"
    async with httpx.AsyncClient(base_url=base, headers=headers, trust_env=False, timeout=60) as client:
        yield client


async def put(files: httpx.AsyncClient, path: str, contents: bytes) -> None:
    answer = await files.put(f"{path}?op=CREATE&overwrite=true&data=true", content=contents)
    answer.raise_for_status()


async def ended(client: Client, name: str) -> str:
    """Wait for a job's end; return its state and its events."""
    async for _ in client.events("alice", name):
        pass
    events = [event["message"] for event in await client.list_events("alice", name)]
    return f"{(await client.job('alice', name))['jobStatus']['state']} {events}"


def kept(scheduler: RunningScheduler) -> list[Path]:
    return [*scheduler.data_dir.glob("code/[!.]*"), *scheduler.data_dir.glob("mounts/[!.]*")]


async def test_code_and_data_come_from_hdfs_and_results_go_there(
    scheduler: RunningScheduler, alice: Client, files: httpx.AsyncClient
) -> None:
    await put(files, "/alice/train/train.py", TRAIN)
    await put(files, "/alice/words/words.txt", b"hello hdfs")
    mounts = [{"source": "$PAI_DEFAULT_FS_URI/alice/words", "target": "data"}]
    code = "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/train"
    job = hello_job("trained", "cd train && python train.py", codeDir=code, extras={"mounts": mounts})
    await alice.submit(job)
    assert (await ended(alice, "trained")).startswith("SUCCEEDED")
    result = await files.get("/Output/alice/trained/result.txt?op=OPEN&data=true")
    assert result.text == "HELLO HDFS"
    status = (await files.get("/Output/alice/trained/result.txt?op=GETFILESTATUS")).json()["FileStatus"]
    assert status["owner"] == "alice"
    while kept(scheduler):  # noqa: ASYNC110 - it goes soon
        await asyncio.sleep(0.05)


async def test_a_name_node_that_fails_while_a_job_starts_is_waited_for(
    hdfs: Hdfs, alice: Client, files: httpx.AsyncClient
) -> None:
    await put(files, "/alice/waited/a.sh", b"echo it ran")
    await asyncio.to_thread(hdfs.stop_namenode)
    try:
        await alice.submit(hello_job("waited", "sh waited/a.sh", codeDir="/alice/waited"))
        async for event in alice.events("alice", "waited"):
            if event["type"] == "progress":
                assert event["message"].startswith("Waiting for the storage.")
                break
    finally:
        await asyncio.to_thread(hdfs.start_namenode)
    assert (await ended(alice, "waited")).startswith("SUCCEEDED")
    assert await alice.log("alice", "waited", "main", 0) == b"it ran\n"
    assert len(await alice.attempts("alice", "waited")) == 1


async def test_a_job_that_needs_no_file_does_not_wait_for_a_name_node(hdfs: Hdfs, alice: Client) -> None:
    await asyncio.to_thread(hdfs.stop_namenode)
    try:
        await alice.submit(hello_job("needs-nothing"))
        assert (await ended(alice, "needs-nothing")).startswith("SUCCEEDED")
    finally:
        await asyncio.to_thread(hdfs.start_namenode)
