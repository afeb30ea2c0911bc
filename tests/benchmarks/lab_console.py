"""The console with many jobs: `python -m tests.benchmarks.lab_console --jobs 5000 --minutes 10`.

A real scheduler (REST, SQLite, tasks that are only said to run), a real JupyterLab, Chromium. Most of the
jobs have ended, some run, some wait; one has `--tasks` tasks. Prints how long it takes from an input to the
painted result: in the list, on a job's page with its tasks, and among `--pages` open pages; and the longest
pieces of work while nobody does anything. `--minutes`: the pages are left open with a job that comes or ends
every two seconds, and their memory is looked at each minute. Takes two minutes without that. Nothing is
asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from playwright.async_api import Page

from tests.benchmarks.lab_browser import Memory, Times, load, open_lab, open_page, until
from tests.scheduler.making import make_config, make_role
from tests.testbed.agents import END_ALL
from tests.testbed.scheduler import RunningScheduler

_NODES, _CPUS = 10, 130
_CLUSTER = "defaults: {jobsPerUser: 1000000}\n"
_TOKEN = "token-of-alice"
_CLIENTS = 8
_RUNNING, _WAITING = 200, 300
_MANY = "a-many-tasks"
#: px of a turn of the wheel
_TURN = 120
_LIST = "document.querySelector('.pai-JobList')"
_FRONT = "document.querySelector('.lm-DockPanel-widget:not(.lm-mod-hidden)')"
_TASKS = f"{_FRONT}?.querySelector('.pai-Tasks-scroll')"
#: Rows are drawn wherever the box shows some.
_COVERED = """(box => {{
  const shown = box.getBoundingClientRect();
  const rows = [...box.querySelectorAll('{row}')].map(row => row.getBoundingClientRect());
  return rows.some(row => row.top <= shown.top + {head} && row.bottom > shown.top + {head})
    && rows.some(row => row.top < shown.bottom && row.bottom >= shown.bottom - 4);
}})({box})"""


class _Scheduler(RunningScheduler):
    """A scheduler whose tasks are only said to run."""

    def command(self) -> Sequence[str]:
        alone = (sys.executable, "-m", "tests.benchmarks.agents", "alone", str(_NODES), str(_CPUS))
        return (*alone, *super().command()[1:])


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--jobs", type=int, default=5000, help="(%(default)s)")
    parser.add_argument("--tasks", type=int, default=1000, help="of the job with many (%(default)s)")
    parser.add_argument("--pages", type=int, default=20, help="(%(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="of each input (%(default)s)")
    parser.add_argument(
        "--minutes", type=float, default=0, help="for which the pages stay open (%(default)s)"
    )
    parser.add_argument("--profile", type=Path, help="write here what the page was busy with")
    options = parser.parse_args()
    print(load())
    with tempfile.TemporaryDirectory(prefix="pai-console-", ignore_cleanup_errors=True) as folder:
        scheduler = _Scheduler(Path(folder), cluster=_CLUSTER)
        try:
            asyncio.run(_run(Path(folder), scheduler, options))
        finally:
            scheduler.kill()


async def _run(folder: Path, scheduler: RunningScheduler, options: argparse.Namespace) -> None:
    headers = {"Authorization": f"Bearer {_TOKEN}"}
    async with aiohttp.ClientSession(scheduler.url, headers=headers, trust_env=False) as client:
        began = time.monotonic()
        await _make_jobs(client, scheduler, options)
        print(f"{options.jobs} jobs are there after {time.monotonic() - began:.0f} s")
        await _lists(client)
        async with (
            open_lab(folder / "lab", scheduler.url, _TOKEN) as address,
            open_page(address) as page,
        ):
            await _measure(page, client, options)


async def _make_jobs(
    client: aiohttp.ClientSession, scheduler: RunningScheduler, options: argparse.Namespace
) -> None:
    """Make jobs that have ended, then one of many tasks and some that run, then some that wait."""
    waiting, running = min(_WAITING, options.jobs // 5), min(_RUNNING, options.jobs // 5)
    ended = options.jobs - waiting - running - 1
    await _submit(client, [make_config(make_role(), name=f"sweep-{number:04}") for number in range(ended)])

    async def ended_all() -> bool:
        scheduler.process.send_signal(END_ALL)
        return await _count(client, "WAITING,RUNNING") == 0

    await until(ended_all, "the jobs to end")
    await _submit(client, [make_config(make_role(tasks=options.tasks), name=_MANY)])
    await _submit(client, [make_config(make_role(), name=f"train-{number:03}") for number in range(running)])
    whole = make_role(cpus=_CPUS)
    await _submit(client, [make_config(whole, name=f"wait-{number:03}") for number in range(waiting)])

    async def all_run() -> bool:
        return await _count(client, "RUNNING") > running

    await until(all_run, "the jobs to run")


async def _submit(client: aiohttp.ClientSession, jobs: list[dict[str, Any]]) -> None:
    async def submit() -> None:
        while jobs:
            async with client.post("/api/v1/jobs", json=jobs.pop(0)) as response:
                if response.status != 202:
                    raise RuntimeError(f"status {response.status}: {await response.text()}")

    await asyncio.gather(*(submit() for _ in range(_CLIENTS)))


async def _count(client: aiohttp.ClientSession, states: str) -> int:
    async with client.get("/api/v1/jobs", params={"username": "alice", "state": states}) as response:
        return len(await response.json())


async def _lists(client: aiohttp.ClientSession) -> None:
    """Print what the console's questions cost the scheduler."""
    of_all = "/api/v1/jobs?username=alice"
    of_many = f"/api/v1/user/alice/jobs/{_MANY}"
    for what, path in (
        ("all jobs", of_all),
        ("a page of 1,000 jobs", f"{of_all}&limit=1000"),
        ("jobs that have not ended", f"{of_all}&limit=1000&state=WAITING,RUNNING"),
        ("the newest 100 jobs", f"{of_all}&limit=100"),
        ("the job of many tasks", of_many),
        ("its attempts", f"{of_many}/attempts"),
    ):
        took = []
        for _ in range(5):
            began = time.perf_counter()
            async with client.get(path) as response:
                response.raise_for_status()
                body = await response.read()
            took.append(1000 * (time.perf_counter() - began))
        size, least, most = len(body) / 1000, min(took), max(took)
        print(f"GET {what:40}{size:8.0f} KB{least:8.0f} ms at least{most:8.0f} at most")


async def _measure(page: Page, client: aiohttp.ClientSession, options: argparse.Namespace) -> None:
    times, memory = Times(page), await Memory.of(page)
    await page.locator(".pai-StatusItem-button", has_text="running").wait_for()
    await memory.row("before the list")
    await page.evaluate("window.paiLongTasks()")
    began = time.monotonic()
    await page.locator(".pai-StatusItem-button").click()
    await page.get_by_text(f"{options.jobs} jobs", exact=True).wait_for()
    print(f"the list is whole after {time.monotonic() - began:.1f} s")
    await _idle(page, 0, "while the list was read")
    await memory.row("with the list")
    await _idle(page, 15, "while the list is looked at")
    async with _Profile(page, options.profile):
        await _list(page, times, options)
        await _pages(page, times, options)
        times.report()
        await page.evaluate("window.paiLongTasks()")
        await _idle(page, 15, f"while {options.tasks} tasks are looked at")
    await memory.row(f"{options.pages} pages")
    if options.minutes:
        await _stay(page, client, memory, options)


async def _idle(page: Page, seconds: float, when: str) -> None:
    """Print the longest pieces of work; of those that a person would notice the number."""
    await asyncio.sleep(seconds)
    long = sorted(await page.evaluate("window.paiLongTasks()"), reverse=True)
    worst = ", ".join(f"{one:.0f}" for one in long[:5]) or "none"
    print(f"pieces of work of 50 ms or more {when}: {len(long)}; ms: {worst}", flush=True)


async def _list(page: Page, times: Times, options: argparse.Namespace) -> None:
    covered = _COVERED.format(row=".pai-JobRow", box=_LIST, head=0)
    box = await page.locator(".pai-JobList").bounding_box()
    assert box
    await page.mouse.move(box["x"] + 100, box["y"] + 200)
    for turns, what in ((1, "turn the wheel in the list"), (30, "spin the wheel in the list")):
        await _wheel(page, times, options.rounds, turns=turns, what=what, box=_LIST, covered=covered)
    await page.evaluate(f"{_LIST}.scrollTo({{ top: 0 }})")
    await page.locator('.pai-JobRow[aria-rowindex="1"]').focus()
    for number in range(options.rounds):
        name = "End" if number % 2 == 0 else "Home"
        row = options.jobs if name == "End" else 1
        there = f"document.activeElement.getAttribute('aria-rowindex') === '{row}' && {covered}"
        await times.measure("End and Home in the list", there, partial(page.keyboard.press, name))
    field = page.get_by_role("searchbox", name="Name")
    await field.focus()
    for _ in range(max(1, options.rounds // 5)):
        text = ""
        for letter in "sweep-12":
            text += letter
            typed = f"""document.activeElement.value === '{text}'
                && [...document.querySelectorAll('.pai-JobRow-name')]
                  .every(name => name.textContent.includes('{text}'))"""
            await times.measure("type into the filter", typed, partial(page.keyboard.type, letter))
        for _ in range(len(text)):
            text = text[:-1]
            typed = (
                f"document.activeElement.value === '{text}' && document.querySelector('.pai-JobRow') !== null"
            )
            await times.measure("delete from the filter", typed, partial(page.keyboard.press, "Backspace"))
    order = page.get_by_role("combobox", name="Order")
    first = "document.querySelector('.pai-JobRow[aria-rowindex=\"1\"] .pai-JobRow-name')?.textContent"
    for number in range(options.rounds):
        value = ("name", "newest", "name", "state")[number % 4]
        begins = {"name": _MANY, "newest": "wait-", "state": "train-"}[value]
        expected = f".startsWith('{begins}')"
        await times.measure("sort", f"({first} ?? ''){expected}", partial(order.select_option, value))
    everything = page.get_by_role("checkbox", name="Choose all that are listed")
    for number in range(options.rounds):
        is_all = str(number % 2 == 0).lower()
        state = f"document.querySelector('.pai-Chosen input').checked === {is_all}"
        rows = f"document.querySelector('.pai-JobRow').ariaSelected === '{is_all}'"
        await times.measure("choose all, and none", f"{state} && {rows}", everything.click)
    if options.rounds % 2:
        await everything.click()


async def _wheel(
    page: Page, times: Times, rounds: int, *, turns: int, what: str, box: str, covered: str
) -> None:
    """Scroll down eight times, then back up twice, and again."""
    for number in range(rounds):
        delta = _TURN * turns * (1 if number % 10 < 8 else -4)
        # (rows that turn out higher than they were taken to be move the list by a little)
        moved = f"Math.abs({box}.scrollTop - before) > {_TURN // 4} && {covered}"
        turn = partial(page.mouse.wheel, 0, delta)
        await times.measure(what, moved, turn, before=f"{box}.scrollTop")
        await _still(page, box)


async def _still(page: Page, box: str) -> None:
    """Wait until a box has stopped to scroll."""
    await page.evaluate(
        f"""new Promise(resolve => {{
          let last = NaN, same = 0;
          const look = () => {{
            const now = {box}.scrollTop;
            same = now === last ? same + 1 : 0;
            last = now;
            same > 15 ? resolve() : requestAnimationFrame(look);
          }};
          look();
        }})"""
    )


def _shown(name: str) -> str:
    return f"{_FRONT}?.querySelector('.pai-Job-head h2')?.textContent === '{name}'"


async def _pages(page: Page, times: Times, options: argparse.Namespace) -> None:
    """Open pages from the list, look through the tasks of one, go from page to page."""
    await page.get_by_role("combobox", name="Order").select_option("name")
    names = [_MANY, *(f"sweep-{number:04}" for number in range(options.pages - 1))]
    for name in names:
        row = page.locator(".pai-JobRow", has_text=name).locator(".pai-JobRow-name")
        what = f"open the page of {options.tasks} tasks" if name == _MANY else "open a job's page"
        frame = f"{_FRONT}?.querySelector('h2')?.textContent === '{name}'"
        # (its state is what the list knows until the scheduler has answered)
        whole = f"{_shown(name)} && {_FRONT}?.querySelector('.pai-Job-tabs')"
        more = {f"{what}, with its state": _shown(name), f"{what}, with all of it": whole}
        await times.measure(what, frame, row.click, more=more)
    tabs = page.locator(".lm-DockPanel .lm-TabBar-tab")
    for _ in range(max(1, 2 * options.rounds // options.pages)):
        for name in names:
            # its own page covers only what it had before; a page in view is not drawn anew
            tab = tabs.filter(has_text=name)
            await times.measure("go to another open page", _shown(name), tab.click)
    await tabs.filter(has_text=_MANY).click()
    covered = _COVERED.format(row=".pai-Tasks-body > [role=row]", box=_TASKS, head=40)
    for _ in range(options.rounds // 4):
        tab = page.locator(".lm-DockPanel-widget:not(.lm-mod-hidden)").get_by_role("tab", name="Tasks")
        await times.measure(f"show {options.tasks} tasks", f"{_TASKS} && {covered}", tab.click)
        await page.locator(".lm-DockPanel-widget:not(.lm-mod-hidden)").get_by_role("tab", name="Logs").click()
    await page.locator(".lm-DockPanel-widget:not(.lm-mod-hidden)").get_by_role("tab", name="Tasks").click()
    box = await page.locator(".pai-Tasks-scroll").bounding_box()
    assert box
    await page.mouse.move(box["x"] + 100, box["y"] + box["height"] / 2)
    for turns, what in ((1, "turn the wheel in the tasks"), (20, "spin the wheel in the tasks")):
        await _wheel(page, times, options.rounds, turns=turns, what=what, box=_TASKS, covered=covered)


async def _stay(
    page: Page, client: aiohttp.ClientSession, memory: Memory, options: argparse.Namespace
) -> None:
    """Leave the pages open while jobs come and end; look at them each minute."""
    begin = time.monotonic()
    heaps, number = [], 0
    for minute in range(1, int(options.minutes) + 1):
        while time.monotonic() < begin + 60 * minute:
            await _submit(client, [make_config(make_role(), name=f"live-{number}")])
            path = f"/api/v1/user/alice/jobs/live-{max(0, number - 5)}/executionType"
            async with client.put(path, json={"value": "STOP"}) as response:
                await response.read()
            number += 1
            await asyncio.sleep(2)
        heaps.append(await memory.row(f"after {minute} min"))
    await _idle(page, 0, "in that time")
    print(f"heap from the first minute to the last: {heaps[-1] - heaps[0]:+.1f} MB; {load()}")


class _Profile:
    """Writes a profile of the page's work, as Chromium's developer tools read it."""

    def __init__(self, page: Page, path: Path | None) -> None:
        self._page, self._path = page, path

    async def __aenter__(self) -> None:
        if self._path:
            self._session = await self._page.context.new_cdp_session(self._page)
            await self._session.send("Profiler.enable")
            await self._session.send("Profiler.start")

    async def __aexit__(self, *_: object) -> None:
        if self._path:
            profile = (await self._session.send("Profiler.stop"))["profile"]
            await asyncio.to_thread(self._path.write_text, json.dumps(profile))


if __name__ == "__main__":
    main()
