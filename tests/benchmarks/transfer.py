"""How fast files come and go: `python -m tests.benchmarks.transfer --gb 5`, over HDFS and over a folder.

The same client (curl) sends a file to the scheduler's WebHDFS and takes it back, and does the same with a
peer, turn and turn about in one run. Before HDFS the peer is the WebHDFS of the name node itself, which
redirects to the data node. Before a folder it is what a plain copy costs (`cp`, then sync) and Python's own
HTTP server. Also printed: the most memory that the scheduler's process had while files went through it. What
it prints is for people to compare, between two states of the code on one machine; nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.testbed.hdfs import ACCOUNT, Hdfs
from tests.testbed.scheduler import RunningScheduler, clean_environ

Way = Callable[[], None]

_CURL = ("curl", "-sS", "--fail-with-body", "-L", "-o", "/dev/null")
_TOKEN = ("-H", "Authorization: Bearer token-of-alice")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gb", type=float, default=1, help="size of the file (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is measured (%(default)s)")
    parser.add_argument("--storage", choices=("hdfs", "folder"), action="append", help="one of them only")
    options = parser.parse_args()
    size = int(options.gb * 1e9)
    with tempfile.TemporaryDirectory(prefix="pai-transfer-") as name:
        folder = Path(name)
        file = make_file(folder / "file", size)
        for storage in options.storage or ("hdfs", "folder"):
            print(f"{storage}: a file of {options.gb:g} GB, {options.rounds} rounds, MB/s", flush=True)
            (over_hdfs if storage == "hdfs" else over_folder)(folder, file, options.rounds)


def make_file(path: Path, size: int) -> Path:
    """Write a file that cannot be made smaller."""
    block = os.urandom(16 * 2**20)
    with path.open("wb") as file:
        while (left := size - file.tell()) > 0:
            file.write(block[:left])
    return path


def over_hdfs(folder: Path, file: Path, rounds: int) -> None:
    """Compare with the name node's own WebHDFS."""
    server = Hdfs()
    try:
        with scheduler(folder / "hdfs", "--storage", server.url, "--storage-user", ACCOUNT) as ours:
            home = f"{ours.url}/webhdfs/v1/alice"
            raw, user = f"{server.url}/webhdfs/v1/raw", f"user.name={ACCOUNT}"
            compare(
                ours,
                file,
                rounds,
                {
                    "gateway up": lambda: send(file, f"{home}/f?op=CREATE&overwrite=true", *_TOKEN),
                    "raw up": lambda: send(file, f"{raw}?op=CREATE&overwrite=true&{user}"),
                    "gateway down": lambda: take(f"{home}/f?op=OPEN", *_TOKEN),
                    "raw down": lambda: take(f"{raw}?op=OPEN&{user}"),
                },
            )
    finally:
        server.remove()


def over_folder(folder: Path, file: Path, rounds: int) -> None:
    """Compare with a plain copy, and with a plain HTTP server."""
    with scheduler(folder / "folder") as ours, plain_server(folder) as plain:
        home = f"{ours.url}/webhdfs/v1/alice"
        copy = folder / "copy"
        compare(
            ours,
            file,
            rounds,
            {
                "gateway up": lambda: send(file, f"{home}/f?op=CREATE&overwrite=true", *_TOKEN),
                "raw up": lambda: copied(file, copy),
                "gateway down": lambda: take(f"{home}/f?op=OPEN", *_TOKEN),
                "raw down": lambda: take(f"{plain}/copy"),
            },
        )
        copy.unlink()


def compare(ours: RunningScheduler, file: Path, rounds: int, ways: dict[str, Way]) -> None:
    """Go each way in turn, as often as wanted; print what it gives and costs."""
    begin, speeds, most = memory(ours), defaultdict[str, list[float]](list), 0.0
    for _ in range(rounds):
        for name, way in ways.items():
            forget_peak(ours)
            started = time.perf_counter()
            way()
            speeds[name].append(file.stat().st_size / 1e6 / (time.perf_counter() - started))
            most = max(most, memory(ours))
    for name, measured in speeds.items():
        each = ", ".join(f"{speed:.0f}" for speed in measured)
        print(f"  {name:13} {statistics.median(measured):7.0f}   ({each})")
    for direction in ("up", "down"):
        ratio = statistics.median(speeds[f"gateway {direction}"]) / statistics.median(
            speeds[f"raw {direction}"]
        )
        print(f"  {direction:4} gateway / raw: {ratio:.2f}")
    print(f"  the scheduler's memory, MB: {begin:.0f} before, at most {most:.0f}", flush=True)


def send(file: Path, url: str, *options: str) -> None:
    """Upload."""
    run(*_CURL, *options, "-T", str(file), url)


def take(url: str, *options: str) -> None:
    """Download."""
    run(*_CURL, *options, url)


def copied(file: Path, copy: Path) -> None:
    """Copy, until the disk has it."""
    run("cp", str(file), str(copy))
    run("sync", str(copy))


def run(*command: str) -> None:
    """Run a program, which must go well."""
    subprocess.run(command, check=True, env=clean_environ({"NO_PROXY": "*"}))


@contextmanager
def scheduler(folder: Path, *options: str) -> Iterator[RunningScheduler]:
    """Run a scheduler."""
    folder.mkdir()
    running = RunningScheduler(folder, *options)
    try:
        yield running
    finally:
        running.close()


@contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    """Serve a folder by Python's own HTTP server."""
    process = subprocess.Popen(
        (sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(folder)),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        ready = re.search(r"http://[\d.:]+", process.stdout.readline())
        assert ready is not None
        yield ready[0]
    finally:
        process.kill()
        process.wait()


def memory(ours: RunningScheduler) -> float:
    """Return the most memory that a scheduler had since `forget_peak`, in MB."""
    text = Path(f"/proc/{ours.process.pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1000


def forget_peak(ours: RunningScheduler) -> None:
    """Begin to look for the most memory anew (proc(5), clear_refs)."""
    Path(f"/proc/{ours.process.pid}/clear_refs").write_text("5")


if __name__ == "__main__":
    main()
