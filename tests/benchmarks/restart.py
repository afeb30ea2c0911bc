"""How soon a scheduler that was killed goes on with a long queue: `python -m tests.benchmarks.restart`.

A real scheduler process on SQLite: one job runs; the next and 0, 100,000 or 1,000,000 more wait for a GPU.
SIGKILL; the job that ran ends meanwhile; the scheduler is started again. Printed for each queue: seconds from
the start of the process until it answers, and until the command of the next job runs, by the clock of that
command; what of a core that took; the resident memory then, and what is more in it than with the queue before
for each job. Afterwards a page of the list of jobs, and the whole list, are fetched several times, while
somebody else asks for the scheduler's health: how long the slowest of these took.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from pai_scheduler.store.store import Store
from tests.benchmarks.rows import Against, Goal, Row
from tests.benchmarks.submit_load import CLUSTER, cpu_seconds, job_of_one_gpu, seed
from tests.testbed.scheduler import RunningScheduler

_USER, _TOKEN = "alice", "token-of-alice"
_DEADLINE_SECONDS = 300.0


def _wait_for(file: Path) -> None:
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while not (file.exists() and file.read_text().strip()):
        if time.monotonic() > deadline:
            raise TimeoutError(file)
        time.sleep(0.005)


def _submit(scheduler: RunningScheduler, job: dict[str, object]) -> None:
    headers = {"Authorization": f"Bearer {_TOKEN}"}
    answer = httpx.post(f"{scheduler.url}/api/v1/jobs", json=job, headers=headers, trust_env=False)
    answer.raise_for_status()


@dataclass(frozen=True, slots=True)
class _Lists:
    """Seconds that fetching took each time, and the longest that others waited meanwhile."""

    took: list[float]
    others: float


@dataclass(frozen=True, slots=True)
class _Found:
    """Seconds from the start until it answers and until the next job runs, seconds of a core, bytes."""

    queued: int
    answers: float
    next_runs: float
    cpu: float
    memory: int
    lists: dict[str, _Lists]


def _measure(queued: int, folder: Path, *, lists: bool) -> _Found:
    """Measure with one queue."""
    runs, go, over, started = (folder / name for name in ("runs", "go", "over", "started"))
    scheduler = RunningScheduler(folder, cluster=CLUSTER)
    try:
        first = f"echo 1 > {runs}; while [ ! -e {go} ]; do sleep 0.05; done; echo 1 > {over}"
        _submit(scheduler, job_of_one_gpu("first", first, priority=100))
        _wait_for(runs)
        _submit(scheduler, job_of_one_gpu("next", f"date +%s.%N > {started}; sleep 1000", priority=100))
        scheduler.terminate()
        store = Store.in_folder(scheduler.data_dir)
        seed(store, queued, _USER)
        store.close()
        scheduler.start(_DEADLINE_SECONDS)
        scheduler.kill()
        go.touch()
        _wait_for(over)
        begin = time.time()
        scheduler.start(_DEADLINE_SECONDS)
        answers = time.time() - begin
        _wait_for(started)
        runs_again = float(started.read_text()) - begin
        process = psutil.Process(scheduler.process.pid)
        cpu, memory = cpu_seconds([process]), process.memory_info().rss
        listed = _list(scheduler.url) if lists else {}
        return _Found(queued, answers, runs_again, cpu, memory, listed)
    finally:
        scheduler.kill()
        for process in psutil.process_iter(["cmdline"]):
            if any(str(folder) in word for word in process.info["cmdline"] or ()):
                process.kill()


def _list(url: str) -> dict[str, _Lists]:
    """Fetch a page several times and the whole list once, while somebody else asks too."""
    found = {}
    headers = {"Authorization": f"Bearer {_TOKEN}"}
    waits: list[float] = []
    done = threading.Event()

    def ask() -> None:
        with httpx.Client(base_url=url, trust_env=False, timeout=60) as other:
            while not (waits and done.is_set()):
                begin = time.perf_counter()
                other.get("/healthz")
                waits.append(time.perf_counter() - begin)
                time.sleep(0.002)  # (not to be its own load)

    with httpx.Client(base_url=f"{url}/api/v1", headers=headers, trust_env=False, timeout=300) as client:
        for what, path, times in (("a page of 100", "/jobs?limit=100", 20), ("the whole list", "/jobs", 1)):
            waits.clear()
            done.clear()
            asker = threading.Thread(target=ask)
            asker.start()
            took = []
            for _ in range(times):
                begin = time.perf_counter()
                client.get(path).raise_for_status()
                took.append(time.perf_counter() - begin)
            done.set()
            asker.join()
            found[what] = _Lists(sorted(took), max(waits))
    return found


def _with(queued: int, *, lists: bool) -> _Found:
    with tempfile.TemporaryDirectory(prefix="pai-restart-", ignore_cleanup_errors=True) as folder:
        return _measure(queued, Path(folder), lists=lists)


def rows(*, short: bool) -> Iterator[Row]:
    """Measure with nothing and with 100,000 jobs queued, three times; a million takes `--queued`."""
    large, times = (1_000, 1) if short else (100_000, 3)
    small = [_with(0, lists=False) for _ in range(times)]
    found = [_with(large, lists=True) for _ in range(times)]
    for several in (small, found):
        queued = several[0].queued
        yield Row(
            measure=f"kill -9 to the next job running, {queued:,} queued",
            unit="s",
            ours=tuple(one.next_runs for one in several),
            series="restart by queue",
            size=max(1, queued),
        )
    base = min(one.memory for one in small)
    yield Row(
        measure="memory a queued job",
        unit="bytes",
        ours=tuple((one.memory - base) / large for one in found),
        goal=Goal(Against.VALUE, at_most=1_500),
    )
    for what in found[0].lists:
        yield Row(
            measure=f"{what}, {large:,} jobs",
            unit="ms",
            ours=tuple(1e3 * statistics.median(one.lists[what].took) for one in found),
            goal=Goal(Against.VALUE, at_most=20) if "page" in what else None,
        )
        yield Row(
            measure=f"{what}, {large:,} jobs: longest that another call waited",
            unit="ms",
            ours=tuple(1e3 * one.lists[what].others for one in found),
            goal=Goal(Against.VALUE, at_most=50),
        )


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queued", type=int, nargs="+", default=[0, 100_000, 1_000_000])
    parser.add_argument("--lists", action="store_true", help="fetch the list of jobs too")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load of the machine before: {os.getloadavg()[0]:.1f}")
    before: _Found | None = None
    for queued in options.queued:
        found = _with(queued, lists=options.lists)
        print(
            f"{queued:9,} queued: answers after {found.answers:6.2f} s, the next runs after"
            f" {found.next_runs:6.2f} s, {found.cpu:6.2f} s of a core, {found.memory / 2**20:7,.0f} MiB",
            flush=True,
        )
        for what, one in found.lists.items():
            print(
                f"    {what}: median {1e3 * statistics.median(one.took):.1f} ms, slowest"
                f" {1e3 * one.took[-1]:.1f} ms; others waited {1e3 * one.others:.1f} ms at most",
                flush=True,
            )
        if before is not None and queued > before.queued:
            each = (found.memory - before.memory) / (queued - before.queued)
            print(f"    {each:,.0f} bytes a queued job", flush=True)
        before = found


if __name__ == "__main__":
    main()
