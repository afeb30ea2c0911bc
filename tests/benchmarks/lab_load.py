"""What the extension adds to JupyterLab's start: `python -m tests.benchmarks.lab_load --before COMMIT`.

Prints the size of the front end's files, as they are and packed by gzip, and how long a JupyterLab takes from
the request until its launcher is painted: without the extension, with it, and with the front end of `COMMIT`,
which is built in a folder of its own. They take turns, each time with an empty cache and once more with a
full one; the ratio is that of the medians. Takes two minutes. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import Browser, async_playwright

from tests.benchmarks.lab_browser import load, open_lab
from tests.testbed.browser import CHROMIUM_FLAGS, chromium_path
from tests.testbed.scheduler import RunningScheduler

_REPOSITORY = Path(__file__).parents[2]
_INSTALLED = Path(sys.prefix) / "share" / "jupyter" / "labextensions"
_NAME = "pai-labextension"
#: Resolves with the time since the request when the launcher is there and painted, and what came for us.
_PAINTED = """
new Promise(resolve => {
  const look = () => {
    if (!document.querySelector('.jp-Launcher')) {
      requestAnimationFrame(look);
      return;
    }
    const channel = new MessageChannel();
    channel.port1.onmessage = () => {
      const ours = performance.getEntriesByType('resource')
        .filter(one => one.name.includes('/pai-labextension/'));
      resolve([performance.now(), ours.length, ours.reduce((sum, one) => sum + one.encodedBodySize, 0)]);
    };
    channel.port2.postMessage(null);
  };
  look();
})
"""


@dataclass
class _Way:
    """A JupyterLab, its address, and its times (ms): with an empty cache, and with a full one."""

    name: str
    extensions: Path
    address: str = ""
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)
    files: tuple[int, int] = (0, 0)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--before", help="a commit whose front end is compared")
    parser.add_argument("--rounds", type=int, default=9, help="(%(default)s)")
    options = parser.parse_args()
    print(load())
    with tempfile.TemporaryDirectory(prefix="pai-load-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ways = [
            _Way("without the extension", _extensions(folder / "without", None)),
            _Way("with it", _extensions(folder / "with", _INSTALLED / _NAME)),
        ]
        if options.before:
            built = _build(options.before, folder / "before")
            ways.append(_Way(f"with that of {options.before}", _extensions(folder / "with-before", built)))
        for way in ways[1:]:
            _sizes(way)
        scheduler = RunningScheduler(folder)
        try:
            asyncio.run(_measure(folder, scheduler, ways, options.rounds))
        finally:
            scheduler.close()


def _extensions(folder: Path, ours: Path | None) -> Path:
    """Make a folder with all extensions that are installed, and ours from elsewhere, or not at all."""
    folder.mkdir()
    for found in _INSTALLED.iterdir():
        if found.name != _NAME:
            (folder / found.name).symlink_to(found)
    if ours:
        (folder / _NAME).symlink_to(ours)
    return folder


def _build(commit: str, folder: Path) -> Path:
    """Build the front end of a commit; return the folder that JupyterLab takes it from."""
    folder.mkdir()
    archive = subprocess.run(
        ("git", "archive", commit, "pai_labextension"), cwd=_REPOSITORY, check=True, capture_output=True
    )
    subprocess.run(("tar", "-x", "-C", folder), input=archive.stdout, check=True)
    ui = folder / "pai_labextension" / "ui"
    ours = _REPOSITORY / "pai_labextension" / "ui"
    node = (_REPOSITORY / "build" / "node").read_text().strip()
    environment = {**os.environ, "PATH": f"{node}:{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"}
    if (ui / "package-lock.json").read_bytes() == (ours / "package-lock.json").read_bytes():
        (ui / "node_modules").symlink_to(ours / "node_modules")
    else:
        install = ("npm", "ci", "--no-audit", "--no-fund", "--loglevel=error")
        subprocess.run(install, cwd=ui, env=environment, check=True)
    subprocess.run(("npm", "run", "build"), cwd=ui, env=environment, check=True, stdout=subprocess.DEVNULL)
    return ui.parent / "labextension"


def _sizes(way: _Way) -> None:
    """Print the size of what a browser may fetch."""
    print(f"the front end {way.name}, KB {'as it is':>16}{'gzip':>8}")
    total = [0, 0]
    for file in sorted((way.extensions / _NAME / "static").iterdir()):
        if file.suffix != ".js":
            continue
        content = file.read_bytes()
        sizes = (len(content), len(gzip.compress(content)))
        total = [sum(both) for both in zip(total, sizes, strict=True)]
        print(f"  {file.name:42}{sizes[0] / 1000:8.1f}{sizes[1] / 1000:8.1f}")
    print(f"  {'all':42}{total[0] / 1000:8.1f}{total[1] / 1000:8.1f}")


async def _measure(folder: Path, scheduler: RunningScheduler, ways: list[_Way], rounds: int) -> None:
    async with AsyncExitStack() as stack:
        for number, way in enumerate(ways):
            paths = ("--LabApp.extra_labextensions_path=[]", f"--LabApp.labextensions_path={way.extensions}")
            lab = open_lab(folder / f"lab-{number}", scheduler.url, "token-of-alice", *paths)
            way.address = await stack.enter_async_context(lab)
        playwright = await stack.enter_async_context(async_playwright())
        browser = await playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        for each in range(rounds + 1):
            for way in ways[each % len(ways) :] + ways[: each % len(ways)]:
                await _open(browser, way, counts=each > 0)  # the first time the server reads its files
        await browser.close()
    base = ways[0]
    titles = f"{'empty cache':>12}{'ratio':>7}{'full cache':>12}{'ratio':>7}"
    print(f"{'ms until the launcher is painted, median':44}{titles}")
    for way in ways:
        cold, warm = statistics.median(way.cold), statistics.median(way.warm)
        files = f"  {way.files[0]} files, {way.files[1] / 1000:.0f} KB" if way is not base else ""
        print(
            f"{way.name:44}{cold:12.0f}{cold / statistics.median(base.cold):7.3f}"
            f"{warm:12.0f}{warm / statistics.median(base.warm):7.3f}{files}"
        )
        print(f"{'  least and most':44}{_span(way.cold):>12}{'':7}{_span(way.warm):>12}")
    print(load())


def _span(times: list[float]) -> str:
    return f"{min(times):.0f}-{max(times):.0f}"


async def _open(browser: Browser, way: _Way, *, counts: bool) -> None:
    context = await browser.new_context(viewport={"width": 1280, "height": 800})
    page = await context.new_page()
    for times in (way.cold, way.warm):
        await page.goto(f"{way.address}&reset", wait_until="commit")
        took, number, size = await page.evaluate(_PAINTED)
        if counts:
            times.append(took)
        if times is way.cold:
            way.files = (number, size)
        await page.wait_for_load_state("networkidle")
    await context.close()


if __name__ == "__main__":
    main()
