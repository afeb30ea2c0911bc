"""What file transfers cost everybody else: `python -m tests.benchmarks.file_load --seconds 10`.

Clients (curl) fetch and send files through the scheduler as fast as they can, while another one asks the API
something small, again and again. The same is done with the machine idle, and while as many clients fetch the
same file from a server that has nothing to do with the scheduler (Python's own), turn and turn about in one
run: what is left of the difference is what the files cost the scheduler's loop. On a machine with few cores
the transfers also take the scheduler's turn on a core; with `--own-core` it has one for itself, beside which
only the one who asks runs. What it prints is for people to compare, between two states of the code on one
machine; nothing is asserted.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from pai_scheduler.testing.ports import free_port
from tests.benchmarks.transfer import make_file
from tests.testbed.scheduler import RunningScheduler

_PAUSE = 0.01
_CURL = ("curl", "-sS", "--fail-with-body", "-L", "-o", "/dev/null", "--noproxy", "*")
_ALICE = ("-H", "Authorization: Bearer token-of-alice")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="how long each is measured (%(default)s)")
    parser.add_argument("--clients", type=int, default=4, help="that transfer at once (%(default)s)")
    parser.add_argument("--mb", type=int, default=256, help="the size of the file (%(default)s)")
    parser.add_argument("--rounds", type=int, default=2, help="how often each is measured (%(default)s)")
    parser.add_argument("--own-core", action="store_true", help="the scheduler shares no core with transfers")
    options = parser.parse_args()
    if options.own_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory(prefix="pai-file-load-") as folder:
        file = Path(folder, "file")
        make_file(file, options.mb * 2**20)
        running = RunningScheduler(Path(folder))
        try:
            running.put("/alice/file").unlink()
            subprocess.run(_send(running, file, "file"), check=True)
            if options.own_core:
                _move_children(running.process.pid)
            headers = {"Authorization": "Bearer token-of-bob"}
            with (
                _plain_server(Path(folder), _beside(options)) as plain,
                httpx.Client(headers=headers, trust_env=False, timeout=60) as bob,
            ):
                for _ in range(options.rounds):
                    _round(running, file, plain, bob, options)
        finally:
            running.close()


def _round(
    running: RunningScheduler, file: Path, plain: str, bob: httpx.Client, options: argparse.Namespace
) -> None:
    address = f"{running.url}/webhdfs/v1/alice/file?op=OPEN&data=true"
    ways: dict[str, Callable[[int], tuple[str, ...]] | None] = {
        "nobody transfers": None,
        "fetched from another server": lambda _: (*_CURL, f"{plain}/file"),
        "fetched from the scheduler": lambda _: (*_CURL, *_ALICE, address),
        "sent to the scheduler": lambda number: _send(running, file, f"sent-{number}"),
    }
    for name, command in ways.items():
        waits: list[float] = []

        def ask(waits: list[float] = waits) -> None:
            begin = time.perf_counter()
            bob.get(f"{running.url}/api/v1/jobs").raise_for_status()
            waits.append(time.perf_counter() - begin)

        done = _work(command, _beside(options), options.clients, options.seconds, ask)
        waits.sort()
        print(
            f"{name:28} {done * options.mb / options.seconds:7.0f} MiB/s   other calls: "
            f"median {_ms(waits, 0.5)}, 99 % within {_ms(waits, 0.99)}, longest {_ms(waits, 1)}",
            flush=True,
        )


def _work(
    command: Callable[[int], tuple[str, ...]] | None,
    beside: tuple[str, ...],
    clients: int,
    seconds: float,
    ask: Callable[[], None],
) -> int:
    """Ask as long as clients work, each command after `beside`; return how many files they transferred."""
    end = time.monotonic() + seconds
    done = [0] * clients

    def work(number: int) -> None:
        while command is not None and time.monotonic() < end:
            subprocess.run((*beside, *command(number)), check=True)
            done[number] += 1

    workers = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for worker in workers:
        worker.start()
    while time.monotonic() < end:
        ask()
        time.sleep(_PAUSE)
    for worker in workers:
        worker.join()
    return sum(done)


def _beside(options: argparse.Namespace) -> tuple[str, ...]:
    """Return what stands before a command that is not to run on the scheduler's core."""
    return ("taskset", "--cpu-list", ",".join(map(str, _other_cores()))) if options.own_core else ()


def _other_cores() -> set[int]:
    return set(range(os.cpu_count() or 1)) - os.sched_getaffinity(0)


def _move_children(pid: int) -> None:
    """Let the processes that a scheduler has begun (its file servers) run on the other cores."""
    for child in map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        for thread in Path(f"/proc/{child}/task").iterdir():
            os.sched_setaffinity(int(thread.name), _other_cores())


def _send(running: RunningScheduler, file: Path, name: str) -> tuple[str, ...]:
    address = f"{running.url}/webhdfs/v1/alice/{name}?op=CREATE&data=true&overwrite=true"
    return (*_CURL, *_ALICE, "-T", str(file), address)


@contextmanager
def _plain_server(folder: Path, beside: tuple[str, ...]) -> Iterator[str]:
    port = free_port()
    options = ("--bind", "127.0.0.1", "--directory", str(folder), str(port))
    server = subprocess.Popen(
        (*beside, sys.executable, "-m", "http.server", *options),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            try:
                httpx.head(f"http://127.0.0.1:{port}/", trust_env=False)
                break
            except httpx.TransportError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _ms(waits: list[float], share: float) -> str:
    return f"{1000 * waits[min(len(waits) - 1, int(share * len(waits)))]:.1f} ms"


if __name__ == "__main__":
    main()
