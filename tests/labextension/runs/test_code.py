"""Submit with code through a real Jupyter server and a real scheduler: what goes along, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from pai_labextension.models import CodePlan, SubmitLine
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.conftest import MakeServer
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job

TOKEN = "token-of-alice"


@pytest.fixture(scope="module")
def running(module_scheduler: StartScheduler) -> RunningScheduler:
    return module_scheduler()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a job and its code, below what the file browser shows."""
    folder = tmp_path / "work" / "项目"
    folder.mkdir(parents=True)
    (folder / "train.py").write_text("print(1)\n")
    (folder / "notes.md").write_text("not code")
    (folder / "job.pai.json").write_text(json.dumps(hello_job("train", "cat train/train.py")))
    return folder


@pytest.fixture
async def server(make_jupyter: MakeServer, running: RunningScheduler) -> httpx.AsyncClient:
    client: httpx.AsyncClient = await make_jupyter(running.url, TOKEN)
    return client


async def submitted(server: httpx.AsyncClient, **fields: Any) -> list[dict[str, Any]]:
    answer = await server.post("pai/submit-with-code", json={"path": "work/项目/job.pai.json", **fields})
    assert answer.status_code == 200
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert msgspec.convert(lines, list[SubmitLine]) == lines
    return lines


async def test_what_would_go_along_is_told_before_anything_is_sent(
    server: httpx.AsyncClient, running: RunningScheduler, folder: Path
) -> None:
    answer = await server.post("pai/code-plan", json={"path": "work/项目/job.pai.json", "include": ["**/*"]})
    assert msgspec.convert(answer.json(), CodePlan) == {
        "jobName": "train",
        "folder": "/alice/train",
        "include": ["**/*"],
        "exclude": [],
        "generateName": False,
        "files": [
            {"name": name, "length": (folder / name).stat().st_size}
            for name in ("job.pai.json", "notes.md", "train.py")
        ],
    }
    async with FilesClient(running.url, TOKEN) as files:
        assert await files.find("/alice/train") is None


@pytest.mark.usefixtures("folder")
async def test_the_code_goes_along_and_the_job_is_told_where_it_is(
    server: httpx.AsyncClient, running: RunningScheduler
) -> None:
    *progress, last = await submitted(server, generateName=True)
    name = last["job"]["name"]
    assert name.startswith("train_")
    assert last["job"]["username"] == "alice"
    assert all(line["progress"]["filesTotal"] == 1 for line in progress)
    async with FilesClient(running.url, TOKEN) as files, Client(running.url, TOKEN) as client:
        assert [info.name async for info in files.walk(f"/alice/{name}")] == ["train.py"]
        assert (await client.config("alice", name))["codeDir"] == (
            "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME"
        )


async def test_the_folders_own_settings_count_where_nothing_else_is_said(
    server: httpx.AsyncClient, folder: Path
) -> None:
    (folder / ".pai").mkdir()
    (folder / ".pai" / "settings.json").write_text(
        '{"pai.job.upload.include": ["*.md"], "pai.job.generateJobName.enabled": true} // mine'
    )
    plan = (await server.post("pai/code-plan", json={"path": "work/项目/job.pai.json"})).json()
    assert (plan["include"], plan["generateName"]) == (["*.md"], True)
    assert [file["name"] for file in plan["files"]] == ["notes.md"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("path", ["work/missing.json", "../outside.json", "work/link.json", "work", "a\0b"])
async def test_only_a_file_of_the_file_browser_is_a_job_file(
    server: httpx.AsyncClient, tmp_path: Path, path: str
) -> None:
    outside = tmp_path.parent / "outside.json"
    outside.write_text(json.dumps(hello_job("stolen")))
    (tmp_path / "work" / "link.json").symlink_to(outside)
    answer = await server.post("pai/code-plan", json={"path": path})
    assert answer.status_code == 422
    assert "There is no file" in answer.json()["message"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"jobName": "train",\n "image" 1}', "第 2 行"),
        (json.dumps({"jobName": "train"}), "缺少必填字段"),
        ("\udcff", "UTF-8"),
    ],
)
async def test_what_is_wrong_with_a_job_file_is_told_in_the_readers_language(
    server: httpx.AsyncClient, folder: Path, text: str, sentence: str
) -> None:
    (folder / "job.pai.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    chinese = {"Accept-Language": "zh-CN"}
    answer = await server.post("pai/code-plan", json={"path": "work/项目/job.pai.json"}, headers=chinese)
    assert answer.status_code == 422
    assert sentence in answer.json()["message"]
    (line,) = await submitted(server)
    assert line["error"]["message"]


@pytest.mark.usefixtures("folder")
async def test_a_job_that_is_refused_after_its_code_was_sent_says_where_the_code_is(
    server: httpx.AsyncClient, running: RunningScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FilesClient.write

    async def meanwhile(self: FilesClient, path: str, *arguments: Any, **options: Any) -> None:
        async with Client(running.url, TOKEN) as client:
            await client.submit(hello_job("train", "sleep 3600"))
        await write(self, path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(FilesClient, "write", meanwhile)
        *_, last = await submitted(server)
    assert "The code is in /alice/train already." in last["error"]["message"]


async def test_a_job_that_is_no_file_takes_the_code_of_a_folder_along(
    server: httpx.AsyncClient, running: RunningScheduler, folder: Path
) -> None:
    job = hello_job("written", "cd $PAI_JOB_NAME && cat train.py")
    plan = (await server.post("pai/code-plan", json={"path": "work/项目", "job": job})).json()
    assert (plan["jobName"], plan["folder"]) == ("written", "/alice/written")
    assert [one["name"] for one in plan["files"]] == ["train.py"]
    *_, last = await submitted(server, path="work/项目", job=job)
    assert last == {"job": {"name": "written", "username": "alice"}}
    async with Client(running.url, TOKEN) as client:
        async for event in client.events("alice", "written"):
            if event["type"] == "ended":
                break
        assert await client.log("alice", "written", "main", 0) == b"print(1)\n"
    (folder.parent / "out").symlink_to("/etc")
    for path in ("work/项目/train.py", "work/nothing", "work/out", "../.."):
        *_, last = await submitted(server, path=path, job=job)
        assert "There is no folder" in last["error"]["message"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "body",
    [
        {},
        {"path": 1},
        {"path": "a", "include": "x"},
        {"path": "a", "generateName": 1},
        {"path": "a", "job": 1},
    ],
)
async def test_a_request_that_is_wrong_is_refused(server: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert (await server.post("pai/code-plan", json=body)).status_code == 400
    assert (await server.post("pai/submit-with-code", json=body)).status_code == 400
    del server.headers["Authorization"]
    server.cookies.clear()
    assert (await server.post("pai/submit-with-code", json=body)).status_code == 403
