"""What the way through the SSH gateway costs beside the direct one: `python -m tests.benchmarks.gateway`.

One OpenSSH server stands for a task's. The same client goes to it directly, and through one process of the
gateway, turn and turn about in one run: a file is put and fetched by SFTP, `true` is run with a log-in of
its own, a key is struck in an open terminal. Also printed: the CPU time of the gateway's process for each of
these, which is steadier on a busy machine, and the most memory that it had.
What it prints is for people to compare, between two states of the code on one machine; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import pty
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.ssh.gateway.protocol import GatewaySettings
from pai_scheduler.ssh.gateway.supervisor import GatewaySupervisor
from pai_scheduler.ssh.keys import KeyPair
from tests.benchmarks.transfer import make_file
from tests.scheduler.ssh.gateway.stand_in import KEYS, StandIn, TaskServer, write_key

_STROKES, _LOGINS = 300, 10


@dataclass(frozen=True)
class Way:
    """How a client goes: `options` for OpenSSH's programs, `host` with the login name."""

    name: str
    options: list[str]
    host: str
    port: int

    def ssh(self, *arguments: str) -> list[str]:
        """Return a command line."""
        return ["ssh", *self.options, "-p", str(self.port), self.host, *arguments]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--gb", type=float, default=1, help="size of the file (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is measured (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pai-gateway-") as name:
        asyncio.run(measure(Path(name), int(options.gb * 1e9), options.rounds))


async def measure(folder: Path, size: int, rounds: int) -> None:
    """Start both ways, and go them in turn."""
    task = TaskServer(folder / "task")
    service = StandIn(task.target())
    own = KeyPair.from_seed(b"b" * 32)
    service.users[own.public] = "alice"
    settings = GatewaySettings(
        service.url, service.token, KEYS.gateway_host().private.decode(), log_level="warning"
    )
    supervisor = GatewaySupervisor(settings, "127.0.0.1", 0, processes=1)
    await supervisor.start()
    try:
        common = ["-F", "none", "-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"]
        common += ["-oLogLevel=ERROR", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-i"]
        ways = [
            Way(
                "direct",
                [*common, str(write_key(folder / "job", task.identity))],
                "root@127.0.0.1",
                task.port,
            ),
            Way(
                "gateway",
                [*common, str(write_key(folder / "own", own))],
                "alice@127.0.0.1",
                supervisor.port,
            ),
        ]
        file = make_file(folder / "file", size)
        await asyncio.sleep(0)
        [pid] = supervisor.process_ids
        await asyncio.to_thread(compare, ways, file, rounds, pid)
        status = Path(f"/proc/{pid}/status").read_text()
        print(f"gateway's process: at most {int(status.split('VmHWM:')[1].split()[0]) / 1e3:.0f} MB")
    finally:
        await supervisor.close()
        task.end()
        await service.close()


def compare(ways: list[Way], file: Path, rounds: int, gateway: int) -> None:
    """Print the median of each measure, for each way, and their ratio; `gateway`: the process's number."""
    measures: dict[str, tuple[str, Callable[[Way], float]]] = {
        f"put {file.stat().st_size / 1e9:g} GB": ("MB/s", lambda way: put(way, file)),
        f"get {file.stat().st_size / 1e9:g} GB": ("MB/s", lambda way: get(way, file)),
        "true, with its log-in": ("ms", run_true),
        "a key stroke": ("ms", strike),
    }
    for name, (unit, measure_way) in measures.items():
        found: dict[str, list[float]] = {way.name: [] for way in ways}
        before = cpu_seconds(gateway)
        for _ in range(rounds):
            for way in ways:
                found[way.name].append(measure_way(way))
        medians = [statistics.median(found[way.name]) for way in ways]
        shown = ", ".join(
            f"{way.name} {median:.2f} {unit}" for way, median in zip(ways, medians, strict=True)
        )
        cpu = (cpu_seconds(gateway) - before) / rounds
        print(
            f"{name}: {shown}; gateway / direct = {medians[1] / medians[0]:.2f}; its CPU: {cpu:.2f} s",
            flush=True,
        )


def cpu_seconds(pid: int) -> float:
    """Return the CPU time that a process has had."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def put(way: Way, file: Path) -> float:
    """Return MB/s."""
    return _sftp(way, f"put {file} {file}.there\n", file)


def get(way: Way, file: Path) -> float:
    """Return MB/s."""
    return _sftp(way, f"get {file}.there {file}.back\n", file)


def _sftp(way: Way, batch: str, file: Path) -> float:
    begun = time.perf_counter()
    command = ["sftp", *way.options, "-P", str(way.port), "-b", "-", way.host]
    subprocess.run(command, input=batch.encode(), stdout=subprocess.DEVNULL, check=True)
    return file.stat().st_size / 1e6 / (time.perf_counter() - begun)


def run_true(way: Way) -> float:
    """Return milliseconds."""
    begun = time.perf_counter()
    for _ in range(_LOGINS):
        subprocess.run(way.ssh("true"), check=True)
    return (time.perf_counter() - begun) / _LOGINS * 1e3


def strike(way: Way) -> float:
    """Return the median of many strokes, in milliseconds: sent, echoed by the terminal in the task, seen."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(way.ssh("-tt", "echo ready; exec sleep 600"), stdin=terminal, stdout=terminal)
    os.close(terminal)
    seen = b""
    while b"ready\r\n" not in seen:
        seen += os.read(controller, 1000)
    strokes = []
    for _ in range(_STROKES):
        begun = time.perf_counter()
        os.write(controller, b"x")
        os.read(controller, 1000)
        strokes.append(time.perf_counter() - begun)
        time.sleep(0.002)
    process.kill()
    process.wait()
    os.close(controller)
    return statistics.median(strokes) * 1e3


if __name__ == "__main__":
    main()
