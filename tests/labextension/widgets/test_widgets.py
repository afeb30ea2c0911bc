"""Widgets without a browser: what they are to code, what is seen without JavaScript, what their comm does."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pai_labextension import ClusterView, FileExplorer, JobForm, JobMonitor, JobTable, NotSubmittedError
from pai_labextension.callers import RefusedError
from pai_labextension.widgets import ConsoleWidget, MonitorClosedError, job_monitor
from pai_labextension.widgets.channel import BATCH, UNCONFIRMED, find
from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.client.storage.client import FilesClient
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job


@pytest.fixture(scope="module")
def scheduler(module_scheduler: StartScheduler) -> RunningScheduler:
    return module_scheduler()


@pytest.fixture
async def client(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


class Browser:
    """The other end of a widget's comm."""

    def __init__(self, widget: ConsoleWidget) -> None:
        self._widget, self._count = widget, 0
        self._came = threading.Condition()
        self.frames: list[tuple[dict[str, Any], bytes]] = []
        widget.send = self._take

    def _take(self, frame: dict[str, Any], buffers: Sequence[bytes]) -> None:
        with self._came:
            self.frames.append((frame, buffers[0] if buffers else b""))
            self._came.notify_all()

    def say(self, key: str, kind: str, *buffers: bytes, **values: Any) -> None:
        frame = {"id": key, "kind": kind, **values}
        self._widget._handle_custom_msg(frame, [memoryview(one) for one in buffers])

    def ask(self, method: str, path: str, *buffers: bytes, **values: Any) -> str:
        self._count += 1
        name = str(self._count)
        asked = {"query": {}, "headers": {}, "body": "whole" if buffers else "none", **values}
        self.say(name, "request", *buffers, method=method, path=path.split("/"), **asked)
        return name

    def of(self, name: str, *kinds: str, count: int = 1) -> list[tuple[dict[str, Any], bytes]]:
        """Wait for so many frames of a question, while this thread does nothing else, as when a cell runs."""

        def found() -> list[tuple[dict[str, Any], bytes]]:
            return [one for one in self.frames if one[0]["id"] == name and one[0]["kind"] in kinds]

        with self._came:
            assert self._came.wait_for(lambda: len(found()) >= count, 30), self.frames
        return found()

    def answer(self, method: str, path: str, *buffers: bytes, **values: Any) -> tuple[int, Any]:
        [(frame, body), *_] = self.of(self.ask(method, path, *buffers, **values), "answer")
        return frame["status"], json.loads(body) if body else None


def static(widget: ConsoleWidget) -> dict[str, Any]:
    """Return what a widget is displayed as, by kind."""
    bundle = widget._repr_mimebundle_()
    assert bundle is not None
    return bundle[0]


async def test_a_form_is_a_value_that_is_submitted_and_waited_for(client: Client) -> None:
    form = JobForm(client=client, locale="en")
    with pytest.raises(NotSubmittedError, match=r"taskRoles\[0\].command"):
        await form.submit()
    assert form.monitor is None
    form.job = hello_job("from-a-form", "echo out; echo err >&2; exit 3")
    assert '"jobName": "from-a-form"' in form.text
    monitor = await form.submit()
    assert form.monitor is monitor
    end = await asyncio.wait_for(monitor.wait(), 60)
    assert (end, end.exit_code) == ("FAILED", 3)
    assert end.reason
    assert monitor.state == "FAILED"
    [role] = monitor.detail["taskRoles"]
    assert sorted(monitor.log(role).split()) == ["err", "out"]
    assert monitor.log(role, stream="stderr") == "err\n"
    with pytest.raises(NotSubmittedError, match="submitted already"):
        await form.submit()
    form.text += "\n// the same job again"
    with pytest.raises(NotSubmittedError, match="from-a-form"):
        await form.submit()
    form.text = "{"
    with pytest.raises(ValueError, match="line 1"):
        _ = form.job
    with pytest.raises(ApiError):
        await JobMonitor("nothing", client=client).wait()
    form.close()


async def test_a_wait_lasts_until_the_job_is_stopped_or_the_monitor_is_closed(
    scheduler: RunningScheduler, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_monitor, "FIRST_RETRY", 0.2)
    await client.submit(hello_job("long", "sleep 3600"))
    monitor, closed = JobMonitor("long", client=client), JobMonitor("long", client=client)
    waits = [asyncio.create_task(one.wait()) for one in (monitor, closed)]
    await asyncio.sleep(0.5)
    closed.close()
    with pytest.raises(MonitorClosedError):
        await waits[1]
    await asyncio.to_thread(scheduler.kill)
    await asyncio.to_thread(scheduler.start)
    await monitor.stop()
    assert await asyncio.wait_for(waits[0], 60) == "STOPPED"


async def test_a_folder_goes_along_from_code_and_from_the_browser(client: Client, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trained')")
    job = hello_job("with-code", "python3 with-code/train.py")
    form = JobForm(job, client, "en", code=tmp_path)
    browser = Browser(form)
    status, plan = browser.answer("POST", "code-plan", json.dumps({"path": "/etc", "job": job}).encode())
    assert status == 200
    assert [file["name"] for file in plan["files"]] == [
        "train.py"
    ]  # the form's own folder, whatever is asked for
    end = await asyncio.wait_for((await form.submit()).wait(), 60)
    assert end == "SUCCEEDED"
    again = json.dumps({"job": {**job, "jobName": "again"}}).encode()
    name = browser.ask("POST", "submit-with-code", again)
    browser.of(name, "end")
    lines = b"".join(body for frame, body in browser.frames if frame["id"] == name).splitlines()
    assert json.loads(lines[-1])["job"] == {"name": "again", "username": "alice"}
    form.close()


async def test_what_there_is_is_known_to_code_and_seen_without_javascript(client: Client) -> None:
    for name in ("older", "new<er"):
        await client.submit(hello_job(name.replace("<", ".")))
    table, view, files = (
        JobTable(client=client, locale="en", limit=1),
        ClusterView(client, "en"),
        FileExplorer("/", client, "en"),
    )
    assert [job["name"] for job in table.jobs] == ["new.er"]
    assert all(job["state"] == "STOPPED" for job in JobTable("stopped", client=client).jobs)
    assert view.free["P100"] == 4
    assert "default" in view.virtual_clusters
    form = JobForm('{"jobName": "<script>"}', client, "en")
    seen = {one: static(one) for one in (table, view, files, form, JobMonitor("older", client=client))}
    assert "JobTable(limit=2) shows twice as many" in seen[table]["text/plain"]
    assert "<td>new.er</td>" in seen[table]["text/html"]
    assert seen[view]["text/plain"].splitlines()[1].startswith("node-a")
    assert "<td>alice/</td>" in seen[files]["text/html"]
    assert "&lt;script&gt;" in seen[form]["text/html"]
    assert all("application/vnd.jupyter.widget-view+json" in bundle for bundle in seen.values())
    lost = JobTable(client=Client("http://127.0.0.1:1", "token"))
    assert "JobTable" in static(lost)["text/plain"]


async def test_a_busy_kernel_answers_and_only_what_the_proxy_lets_pass(
    client: Client,
) -> None:
    async with Client(client.url, "token-of-bob") as bob:
        await bob.submit(hello_job("secret"))
    browser = Browser(widget := JobTable(client=client, locale="en"))
    status, user = browser.answer("GET", "api/v1/user")
    assert (status, user["username"]) == (200, "alice")
    assert browser.answer("GET", "job-editor")[1]["jobSchema"]["properties"]
    refused = {
        ("GET", "api/v1/user/bob/jobs/secret"): 404,
        ("GET", "api/v1/../admin"): 404,
        ("GET", "api/v1/user/..%2f/jobs"): 404,
        ("PATCH", "api/v1/jobs"): 405,
        ("GET", "webhdfs/v1/alice"): 400,
        ("POST", "code-plan"): 404,
        ("GET", "session"): 404,
    }
    for (method, path), expected in refused.items():
        status, answer = browser.answer(method, path)
        assert status == expected, (path, answer)
        assert answer["message"] or answer["RemoteException"]
    browser.say("a", "asset", name="../channel.py")
    assert browser.of("a", "asset")[0][0]["found"] is False
    widget.close()


async def test_large_bodies_come_and_go_in_batches_that_are_acknowledged(client: Client) -> None:
    browser = Browser(widget := FileExplorer(client=client))
    content = bytes(range(256)) * 256 * 12
    query = {"op": "CREATE", "overwrite": "true"}
    headers = {"Content-Type": "application/octet-stream", "Content-Length": str(len(content))}
    name = browser.ask("PUT", "webhdfs/v1/alice/large", query=query, body="parts", headers=headers)
    for start in range(0, len(content), 256 * 1024):
        browser.say(name, "data", content[start : start + 256 * 1024])
    browser.say(name, "end")
    assert browser.of(name, "answer")[0][0]["status"] == 201
    assert browser.of(name, "ack", count=3)
    async with FilesClient(client.url, client.token) as files:
        assert (await files.status("/alice/large")).length == len(content)

    began = time.monotonic()
    name = browser.ask("GET", "webhdfs/v1/alice/large", query={"op": "OPEN"})
    assert len(browser.of(name, "answer")[0][1]) == BATCH
    browser.of(name, "data", count=UNCONFIRMED)
    await asyncio.sleep(0.3)
    assert len(browser.of(name, "data")) == UNCONFIRMED  # the rest waits until the browser has these
    for _ in range(len(content) // BATCH):
        browser.say(name, "ack")
    browser.of(name, "end")
    got = b"".join(body for frame, body in browser.frames if frame["id"] == name)
    assert got == content
    assert time.monotonic() - began > 0.1 * (len(content) // BATCH - 2)
    assert max(len(body) for _, body in browser.frames) <= BATCH
    widget.close()


def test_what_no_route_has_is_refused_with_what_to_do() -> None:
    with pytest.raises(RefusedError, match="404"):
        find("GET", ["connect", "alice", "job", "task"], {})
