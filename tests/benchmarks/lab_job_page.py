"""A job's page with a log of 1 GB: `python -m tests.benchmarks.lab_job_page --mb 1000`.

A real scheduler runs a task that writes the log and goes on with a line each second; a real JupyterLab
shows it in Chromium. Prints how long it takes from an input to the painted result (opening it, jumps to its
end, its start, a part, a time; scrolling both ways; finding words near and at the other end), and the memory
of the page before and after. Takes two minutes. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from playwright.async_api import Page

from pai_scheduler.client.rest import Client
from tests.benchmarks.lab_browser import Memory, Times, load, open_lab, open_page, until
from tests.testbed.scheduler import RunningScheduler, hello_job

_LINE = 100
_LOG = "document.querySelector('.pai-Log')"
_TEXT = f"({_LOG}?.textContent ?? '')"
#: writes the lines, then one each second; `$0` is how many
_SCRIPT = f"""
import sys, time
count = int(sys.argv[1])
for begin in range(0, count, 10_000):
    sys.stdout.write("".join(f"line {{n:010}} ".ljust({_LINE - 1}, "x") + "\\n"
        for n in range(begin, min(count, begin + 10_000))))
sys.stdout.flush()
open(sys.argv[2], "w").close()
while True:
    print("one more", flush=True)
    time.sleep(1)
"""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mb", type=int, default=1000, help="of the log (%(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="of each input (%(default)s)")
    options = parser.parse_args()
    print(load())
    with tempfile.TemporaryDirectory(prefix="pai-job-page-", ignore_cleanup_errors=True) as folder:
        scheduler = RunningScheduler(Path(folder))
        try:
            asyncio.run(_run(Path(folder), scheduler, options))
        finally:
            scheduler.close()


async def _run(folder: Path, scheduler: RunningScheduler, options: argparse.Namespace) -> None:
    lines = options.mb * 1_000_000 // _LINE
    script, written = folder / "write.py", folder / "written"
    script.write_text(_SCRIPT)
    began = time.monotonic()
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("writer", f"python3 -u {script} {lines} {written}"))
        first = time.time()
        await until(lambda: asyncio.to_thread(written.exists), "the log")
    print(f"{options.mb} MB are written after {time.monotonic() - began:.0f} s")
    middle = datetime.fromtimestamp((first + time.time()) / 2, UTC)
    async with (
        open_lab(folder / "lab", scheduler.url, "token-of-alice") as address,
        open_page(address) as page,
    ):
        memory, times = await Memory.of(page), Times(page)
        await page.locator(".pai-StatusItem-button", has_text="1 running").click()
        await page.locator(".pai-JobRow").wait_for()
        await memory.row("before")
        await times.measure("open", f"{_TEXT}.includes('one more')", page.locator(".pai-JobRow-name").click)
        await memory.row("open")
        await _jump(page, times, middle, options.rounds)
        await memory.row("after jumps")
        await _scroll(page, times, options.rounds)
        await memory.row("after scrolling")
        await _search(page, times, lines, options.rounds)
        await memory.row("after searches")
    times.report()


async def _jump(page: Page, times: Times, middle: datetime, rounds: int) -> None:
    await page.get_by_role("button", name="More of the log").click()
    start = page.get_by_role("button", name="Start", exact=True)
    end = page.get_by_role("button", name="End", exact=True)
    at_end = (
        f"{_TEXT}.includes('one more') && {_LOG}.scrollTop + {_LOG}.clientHeight > {_LOG}.scrollHeight - 50"
    )
    at_start = f"{_TEXT}.includes('line {0:010}') && {_LOG}.scrollTop < 50"
    place = page.get_by_role("slider", name="Place in the log")
    clock = page.get_by_label("Time to jump to")
    local = await page.evaluate(
        "time => { const t = new Date(time); t.setMinutes(t.getMinutes() - t.getTimezoneOffset());"
        "return t.toISOString().slice(0, 19); }",
        middle.timestamp() * 1000,
    )
    away = f"!{_TEXT}.includes('one more') && !{_TEXT}.includes('line {0:010}') && {_TEXT}.includes('line ')"
    for _ in range(rounds // 2):
        await times.measure("jump to the start", at_start, start.click)
        await times.measure("jump to the end", at_end, end.click)
    for _ in range(rounds // 4):
        box = await place.bounding_box()
        assert box
        middle_of = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        await times.measure("jump to a part", away, partial(page.mouse.click, *middle_of))
        await end.click()
        await page.wait_for_function(at_end)
    for _ in range(rounds // 4):
        await clock.fill(local)
        await times.measure("jump to a time", away, partial(clock.press, "Enter"))
        await end.click()
        await page.wait_for_function(at_end)


async def _scroll(page: Page, times: Times, rounds: int) -> None:
    """Scroll far enough that more of the log is read again and again."""
    box = await page.locator(".pai-Log").bounding_box()
    assert box
    await page.mouse.move(box["x"] + 100, box["y"] + box["height"] / 2)
    for name, delta in (("scroll up", -1200), ("scroll down", 1200)):
        for _ in range(rounds):
            first = (
                "(() => { const box = document.querySelector('.pai-Log').getBoundingClientRect();"
                "const hit = document.elementFromPoint(box.left + 60, box.top + box.height / 2);"
                "return hit?.closest('[data-line]')?.dataset.line; })()"
            )
            turn = partial(page.mouse.wheel, 0, delta)
            await times.measure(name, f"({first} ?? before) !== before", turn, before=first)
            await asyncio.sleep(0.3)  # the next turn of a wheel


async def _search(page: Page, times: Times, lines: int, rounds: int) -> None:
    field = page.get_by_role("searchbox", name="Search the whole log")
    start = page.get_by_role("button", name="Start", exact=True)
    for number in range(rounds // 4):
        await start.click()
        await page.wait_for_function(f"{_TEXT}.includes('line {0:010}')")
        await field.fill("")
        await field.focus()
        for letter in "line":
            shown = f"document.activeElement.value.endsWith('{letter}')"
            await times.measure("type into the search", shown, partial(page.keyboard.type, letter))
        near = f"line {5000 + number:010}"
        await field.fill(near)
        found = "document.querySelector('.pai-Log .pai-mod-found')?.textContent.includes('{}')"
        await times.measure("find what is near", found.format(near), partial(field.press, "Enter"))
    await start.click()
    await page.wait_for_function(f"{_TEXT}.includes('line {0:010}')")
    box = await page.locator(".pai-Log").bounding_box()
    assert box
    await page.mouse.move(box["x"] + 100, box["y"] + box["height"] / 2)
    far = f"line {lines - 100:010}"
    await field.fill(far)
    await field.press("Enter")
    for _ in range(min(5, rounds)):
        turn = partial(page.mouse.wheel, 0, 240)
        moved = f"{_LOG}.scrollTop !== before"
        await times.measure("scroll while it searches", moved, turn, before=f"{_LOG}.scrollTop")
        await asyncio.sleep(0.3)
    began = time.monotonic()
    await page.wait_for_function(found.format(far), timeout=600_000)
    print(f"a search through the whole log takes {time.monotonic() - began:.1f} s")
    long = sorted(await page.evaluate("window.paiLongTasks()"), reverse=True)[:5]
    print(f"longest pieces of work, ms: {', '.join(f'{one:.0f}' for one in long) or 'none'}")


if __name__ == "__main__":
    main()
