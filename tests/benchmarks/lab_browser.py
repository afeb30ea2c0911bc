"""What benchmarks of JupyterLab share: a real JupyterLab, Chromium before it, and a stopwatch in its page.

The stopwatch goes from the time at which the browser got an input to the frame in which the result was
painted: it looks at the beginning of each frame whether the result is there, and stops after that frame.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import httpx
from playwright.async_api import CDPSession, Page, async_playwright

from pai_scheduler.testing.ports import free_port
from tests.testbed.browser import CHROMIUM_FLAGS, chromium_path
from tests.testbed.scheduler import clean_environ

#: ms from an input to its result
BUDGET = 100
_TOKEN = "lab-token"
_PATIENCE = 120.0
_STOPWATCH = """
(() => {
  const long = [];
  new PerformanceObserver(list => list.getEntries().forEach(one => long.push(one.duration)))
    .observe({ type: 'longtask' });
  const inputs = ['pointerdown', 'keydown', 'wheel', 'input', 'change'];
  window.paiLongTasks = () => long.splice(0);
  window.paiWatch = ([sources, before]) => {
    const noted = new Function(`return (${before})`)();
    const there = sources.map(source => new Function('before', `return (${source})`).bind(null, noted));
    if (there[0]()) {
      throw new Error(`there before the input: ${sources[0]}`);
    }
    let begin = null;
    const note = event => {
      begin ??= event.timeStamp;
      inputs.forEach(type => window.removeEventListener(type, note, { capture: true }));
    };
    inputs.forEach(type => window.addEventListener(type, note, { capture: true, passive: true }));
    window.paiWatched = there.map(isThere => new Promise(resolve => {
      const look = () => {
        if (begin === null || !isThere()) {
          requestAnimationFrame(look);
          return;
        }
        const channel = new MessageChannel();  // a message comes after the frame
        channel.port1.onmessage = () => resolve(performance.now() - begin);
        channel.port2.postMessage(null);
      };
      requestAnimationFrame(look);
    }));
  };
})();
"""


@asynccontextmanager
async def open_lab(folder: Path, api_url: str, token: str, *options: str) -> AsyncIterator[str]:
    """Run JupyterLab in a folder of its own, before a scheduler; gives its address with the token."""
    home = folder / "home"
    home.mkdir(parents=True)
    port = free_port()
    environment = clean_environ(
        {
            "HOME": str(home),
            **{f"JUPYTER_{name.upper()}_DIR": str(folder / name) for name in ("config", "data", "runtime")},
            "PAI_API_URL": api_url,
            "PAI_TOKEN": token,
        }
    )
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
        *(f"--ServerApp.root_dir={home}", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        *(f"--IdentityProvider.token={_TOKEN}", "--LabApp.news_url=None"),
        *(
            f"--LabApp.user_settings_dir={folder / 'settings'}",
            f"--LabApp.workspaces_dir={folder / 'spaces'}",
        ),
        *options,
    ]
    process = _start(command, environment, folder / "lab.log")
    try:
        await _answers(f"http://127.0.0.1:{port}/api", process, folder / "lab.log")
        yield f"http://127.0.0.1:{port}/lab?token={_TOKEN}"
    finally:
        process.terminate()
        await asyncio.to_thread(process.wait, 60)


def _start(command: Sequence[str], environment: dict[str, str], path: Path) -> subprocess.Popen[bytes]:
    with path.open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


async def until(holds: Callable[[], Awaitable[bool]], what: str, seconds: float = 600) -> None:
    """Wait until something holds; a look each 200 ms. RuntimeError: it does not."""
    end = time.monotonic() + seconds
    while not await holds():
        if time.monotonic() > end:
            raise RuntimeError(f"waited too long for {what}")
        await asyncio.sleep(0.2)


async def _answers(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _PATIENCE
    async with httpx.AsyncClient(trust_env=False) as client:
        while process.poll() is None and time.monotonic() < end:
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
    raise RuntimeError(f"JupyterLab does not answer:\n{log.read_text()[-4000:]}")


@asynccontextmanager
async def open_page(address: str) -> AsyncIterator[Page]:
    """Open JupyterLab in Chromium, with the stopwatch."""
    async with async_playwright() as playwright:
        flags = [*CHROMIUM_FLAGS, "--enable-precise-memory-info"]
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=flags)
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(_PATIENCE * 1000)
        await page.add_init_script(_STOPWATCH)
        await page.goto(address)
        await page.locator(".jp-Launcher").wait_for()
        yield page
        await browser.close()


@dataclass
class Times:
    """Times from an input to its result (ms), by what was done."""

    page: Page
    times: dict[str, list[float]] = field(default_factory=dict)

    async def measure(
        self,
        what: str,
        result: str,
        act: Callable[[], Awaitable[object]],
        *,
        before: str = "null",
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> float:
        """Note the time from the input that `act` makes until `result`, an expression, is painted.

        `result` knows as `before` what that expression was before the input. `more`: what comes with it or
        later, by name; each has its time from the same input.
        """
        await self.page.evaluate("watch => window.paiWatch(watch)", [[result, *more.values()], before])
        await act()
        async with asyncio.timeout(_PATIENCE):
            took: list[float] = await self.page.evaluate("Promise.all(window.paiWatched)")
        for name, time_taken in zip((what, *more), took, strict=True):
            self.times.setdefault(name, []).append(time_taken)
        return took[0]

    def report(self) -> None:
        """Print them beside the budget."""
        print(f"{'ms from the input to the painted result':46}{'n':>4}{'median':>8}{'95 %':>8}{'max':>8}")
        for what, times in self.times.items():
            row = sorted(times)
            over = "  over the budget" if row[_at(row, 0.95)] > BUDGET else ""
            print(
                f"{what:46}{len(row):4}{statistics.median(row):8.0f}{row[_at(row, 0.95)]:8.0f}{row[-1]:8.0f}"
                f"{over}"
            )
        print(f"budget: {BUDGET} ms; {load()}", flush=True)


def _at(row: Sequence[float], share: float) -> int:
    return min(len(row) - 1, int(len(row) * share))


def load() -> str:
    """Say how busy the machine is."""
    return f"{os.cpu_count()} cores, load of the machine {os.getloadavg()[0]:.1f}"


class Memory:
    """What the page holds, and how busy it is."""

    def __init__(self, session: CDPSession) -> None:
        self._session = session
        self._busy, self._since = 0.0, time.monotonic()

    @classmethod
    async def of(cls, page: Page) -> Memory:
        """Look at a page."""
        session = await page.context.new_cdp_session(page)
        await session.send("Performance.enable")
        await session.send("HeapProfiler.enable")
        return cls(session)

    async def row(self, when: str) -> float:
        """Print what is held once all garbage is collected; return the heap (MB)."""
        metrics = await self._metrics()
        now = time.monotonic()
        share = 100 * (metrics["TaskDuration"] - self._busy) / (now - self._since)
        await self._session.send("HeapProfiler.collectGarbage")
        used = (await self._session.send("Runtime.getHeapUsage"))["usedSize"] / 1e6
        metrics = await self._metrics()
        self._busy, self._since = metrics["TaskDuration"], time.monotonic()
        busy = f"{share:6.1f} % busy since the row before" if share < 100 else ""
        print(
            f"{when:24}{used:8.1f} MB of heap {metrics['Nodes']:8.0f} nodes "
            f"{metrics['JSEventListeners']:6.0f} listeners {busy}",
            flush=True,
        )
        return float(used)

    async def _metrics(self) -> dict[str, float]:
        found = await self._session.send("Performance.getMetrics")
        return {each["name"]: each["value"] for each in found["metrics"]}
