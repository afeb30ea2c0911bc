"""What pages that follow one busy job cost: `python -m tests.benchmarks.lab_streams --tabs 200`.

A real scheduler, a real JupyterLab. `--tabs` connections follow what the side bar and a job's page do: the
events of the person's jobs, changes of the cluster, the log of a task that writes ten lines a second. Prints
how many streams these are at the scheduler, how old a line is when it is at a page, and how long a question
takes and how much of a core the scheduler and the notebook server take with these pages and without.

Then Chromium opens JupyterLab with the side bar and a job's page, whose two tasks write a line a second, and
its requests in `--seconds` are counted. What it prints is for people to compare; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
from tornado.websocket import WebSocketClientConnection, websocket_connect

from pai_scheduler.client.rest import Client
from tests.benchmarks.lab_browser import load, open_lab, open_page
from tests.testbed.scheduler import CLUSTER, RunningScheduler

_TICKS = os.sysconf("SC_CLK_TCK")
_TOKEN = "token-of-alice"
_BUSY = "while true; do date +%s%N; sleep 0.1; done"
_STAMP = re.compile(r"(?:^|\n)\S{24} (\d{19})\n")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tabs", type=int, default=200, help="(%(default)s)")
    parser.add_argument("--seconds", type=float, default=30, help="of each measure (%(default)s)")
    options = parser.parse_args()
    print(load())
    with tempfile.TemporaryDirectory(prefix="pai-streams-", ignore_cleanup_errors=True) as folder:
        scheduler = RunningScheduler(Path(folder), cluster=CLUSTER)
        try:
            asyncio.run(_run(Path(folder), scheduler, options.tabs, options.seconds))
        finally:
            scheduler.close()


async def _run(folder: Path, scheduler: RunningScheduler, tabs: int, seconds: float) -> None:
    async with Client(scheduler.url, _TOKEN) as alice, open_lab(folder / "lab", scheduler.url, _TOKEN) as lab:
        await _begin(alice, "busy", _BUSY, 1)
        for pages in (0, tabs) if tabs else ():
            await _measure(scheduler, lab, pages, seconds)
        await alice.stop("alice", "busy")
        await _begin(alice, "pair", "while true; do date; sleep 1; done", 2)
        async with open_page(lab) as page:
            await page.get_by_role("button", name="PAI: 1 running").click()
            await page.locator(".pai-JobList").get_by_text("pair", exact=True).click()
            await page.locator(".pai-Job").get_by_role("log").wait_for()
            await asyncio.sleep(5)
            asked: Counter[str] = Counter()
            # (JupyterLab's own are not of interest)
            page.on("request", lambda one: asked.update([_kind(one.url)] if "/pai/" in one.url else []))
            await asyncio.sleep(seconds)
            print(f"requests of the page in {seconds:g} s, side bar and a job's page:", sum(asked.values()))
            for kind, count in asked.most_common():
                print(f"  {count:4} {kind}")
        await alice.stop("alice", "pair")


async def _begin(alice: Client, name: str, command: str, tasks: int) -> None:
    role = {"name": "main", "command": command, "memoryMB": 100, "taskNumber": tasks}
    await alice.submit({"jobName": name, "image": "none", "taskRoles": [role]})
    async for event in alice.events("alice", name):
        if event["type"] == "running":
            return


async def _measure(scheduler: RunningScheduler, lab: str, tabs: int, seconds: float) -> None:
    """Measure with so many pages."""
    address = urlsplit(lab)
    token = parse_qs(address.query)["token"][0]
    url = f"ws://{address.netloc}/pai/stream?token={token}"
    pages = [await websocket_connect(url) for _ in range(tabs)]
    reading = [asyncio.create_task(_read(page, [])) for page in pages]
    await asyncio.sleep(3)
    processes = {"scheduler": scheduler.process.pid, "notebook server": _listening(address.port or 0)}
    before = {name: _cpu_seconds(pid) for name, pid in processes.items()}
    began = time.perf_counter()
    # (this process is busy with the pages)
    with ProcessPoolExecutor(1) as another:
        probing = another.submit(_probe, scheduler.url, url if tabs else None, seconds)
        times, ages = await asyncio.wrap_future(probing)
    took = time.perf_counter() - began
    async with httpx.AsyncClient(base_url=scheduler.url, trust_env=False) as http:
        samples = (await http.get("/metrics", headers={"Authorization": "Bearer token-of-root"})).text
    streams = re.findall(r'^pai_open_streams\{handler="(\w+)"\} (\d+)', samples, re.MULTILINE)
    print(f"{tabs} pages: streams at the scheduler {', '.join(f'{one} {many}' for one, many in streams)}")
    print(f"  a question to the scheduler: {_said(times)} ms")
    if ages:
        print(f"  age of a line at one more page: {_said(ages)} ms ({len(ages)} lines)")
    for name, pid in processes.items():
        print(f"  {name}: {100 * (_cpu_seconds(pid) - before[name]) / took:.1f} % of a core")
    for one in reading:
        one.cancel()
    for page in pages:
        page.close()


def _probe(scheduler_url: str, url: str | None, seconds: float) -> tuple[list[float], list[float]]:
    """Return the ms that questions took, and how old lines were at a page at `url`."""

    async def probe() -> tuple[list[float], list[float]]:
        times: list[float] = []
        ages: list[float] = []
        reading = None
        if url is not None:
            reading = asyncio.create_task(_read(await websocket_connect(url), ages))
            await asyncio.sleep(1)
            ages.clear()
        headers = {"Authorization": f"Bearer {_TOKEN}"}
        end = time.perf_counter() + seconds
        async with httpx.AsyncClient(base_url=scheduler_url, headers=headers, trust_env=False) as http:
            while (asked := time.perf_counter()) < end:
                (await http.get("/api/v1/user/alice/jobs/busy")).raise_for_status()
                times.append(1000 * (time.perf_counter() - asked))
                await asyncio.sleep(0.1)
        if reading is not None:
            reading.cancel()
        return times, ages

    return asyncio.run(probe())


async def _read(page: WebSocketClientConnection, ages: list[float]) -> None:
    """Follow what a page does, and note how old each line of the log is (ms)."""
    log = {"user": "alice", "job": "busy", "role": "main", "index": 0, "attempt": 0, "stream": "all"}
    subjects: list[tuple[dict[str, Any], str | None]] = [
        ({"kind": "events", "user": "alice"}, None),
        ({"kind": "changes"}, None),
        ({"kind": "log", **log}, "0"),
    ]
    for number, (subject, cursor) in enumerate(subjects):
        frame = {"type": "sub", "id": number, "subject": subject, "cursor": cursor}
        await page.write_message(json.dumps(frame))
    while (message := await page.read_message()) is not None:
        now = time.time_ns()
        told = json.loads(message)
        if told["type"] == "data" and told["id"] == len(subjects) - 1:
            ages += [(now - int(line)) / 1e6 for line in _STAMP.findall(told["data"]["text"])]


def _said(times: list[float]) -> str:
    return f"median {statistics.median(times):.1f}, 95 % {statistics.quantiles(times, n=20)[-1]:.1f}"


def _kind(url: str) -> str:
    path = re.sub(r"^.*?/pai/(?:api/v1/)?", "", urlsplit(url).path)
    return re.sub(r"user/[^/]+", "user/…", path)


def _listening(port: int) -> int:
    """Return the process that listens at a port."""
    wanted = {
        line.split()[9]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{port:04X}") and line.split()[3] == "0A"
    }
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if link.readlink().name.removeprefix("socket:[").removesuffix("]") in wanted:
                return int(link.parts[2])
        except OSError:
            continue
    raise RuntimeError(f"nobody listens at {port}")


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
