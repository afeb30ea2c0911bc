"""How many submits a second a scheduler takes, durably: `python -m tests.benchmarks.submits`.

A real scheduler process on SQLite (`--postgresql`: on a PostgreSQL too), and 1, 4, 8 and 16 clients that each
submit one job after another over one HTTP connection, while nothing, 100,000 or 1,000,000 jobs wait. One job
runs, all others wait for its GPU. Where slurmrestd is installed, it takes the same between, on the same
machine; it does not wait for the disk. At the end of each queue the scheduler is killed with SIGKILL under
load, and each job that was acknowledged is looked for in its database by SQLite itself.

Clients and servers share the machine, so beside the rate stands what a submit takes of a core in the server.
What it prints is for people to compare; only that nothing acknowledged is lost is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import sqlalchemy as sa

from pai_scheduler.store.store import DATABASE_FILE, Store
from tests.benchmarks.slurm_peer import SlurmPeer
from tests.benchmarks.submit_load import CLUSTER, Load, http_request, job_of_one_gpu, seed, submit
from tests.testbed.machine import CannotError
from tests.testbed.postgres import Postgres
from tests.testbed.scheduler import RunningScheduler

_USER, _TOKEN = "alice", "token-of-alice"


class _Scheduler:
    """A scheduler with a queue; `url` is its PostgreSQL's, None: it has SQLite."""

    def __init__(self, folder: Path, queued: int, url: str | None) -> None:
        self._folder, self._url = folder, url
        data = folder / "data"
        store = Store(url) if url else Store.in_folder(data)
        begin = time.perf_counter()
        seed(store, queued, _USER)
        store.close()
        print(f"    (made in {time.perf_counter() - begin:.0f} s", end="", flush=True)
        begin = time.perf_counter()
        environ = {"PAI_DATABASE_URL": url} if url else {}
        self.running = _WithTokens(folder, cluster=CLUSTER, environ=environ)
        self.process = psutil.Process(self.running.process.pid)
        rss = self.process.memory_info().rss / 2**20
        print(f", started in {time.perf_counter() - begin:.1f} s, {rss:,.0f} MiB)", flush=True)

    async def connect(
        self, protocol: Callable[[], asyncio.Protocol]
    ) -> tuple[asyncio.BaseTransport, asyncio.Protocol]:
        """Open a connection."""
        place = urlsplit(self.running.url)
        return await asyncio.get_running_loop().create_connection(
            protocol, str(place.hostname), place.port or 80
        )

    def stored(self) -> set[str]:
        """Return the names of all jobs in the database, read past the scheduler's own code."""
        query = "SELECT name FROM jobs WHERE NOT doomed"
        if self._url is None:
            with closing(sqlite3.connect(self._folder / "data" / DATABASE_FILE)) as database:
                return {name for (name,) in database.execute(query)}
        engine = sa.create_engine(sa.make_url(self._url).set(drivername="postgresql+psycopg"))
        with engine.connect() as connection:
            return set(connection.execute(sa.text(query)).scalars())


class _WithTokens(RunningScheduler):
    """A scheduler whose users are in its tokens file, although it may have variables of its own."""

    def command(self) -> tuple[str, ...]:
        """Return the command line."""
        tokens = ("--tokens", str(self.tokens)) if self._environ else ()
        return (*super().command(), *tokens)


def _requests(numbers: count[int]) -> Callable[[], tuple[str, bytes]]:
    headers = {"Authorization": f"Bearer {_TOKEN}"}

    def request() -> tuple[str, bytes]:
        name = f"job-{next(numbers)}"
        return name, http_request("/api/v1/jobs", job_of_one_gpu(name), headers)

    return request


async def _measure(scheduler: _Scheduler, peer: SlurmPeer | None, options: argparse.Namespace) -> list[str]:
    """Print a line for each number of clients, the peer's between; return all acknowledged names."""
    request, acknowledged = _requests(count()), list[str]()
    await submit(scheduler.connect, request, 4, 1.0, [scheduler.process])  # (warms up)
    for clients in options.clients:
        load = await submit(scheduler.connect, request, clients, options.seconds, [scheduler.process])
        acknowledged += load.names
        print(f"    {clients:3} clients  {load}", flush=True)
        if peer is not None:
            other = await submit(peer.connect, peer.request, clients, options.seconds, peer.processes)
            print(f"    slurmrestd   {other}   {_ratio(load, other)}", flush=True)
    return acknowledged


async def _kill(scheduler: _Scheduler, options: argparse.Namespace) -> list[str]:
    """Submit, and kill the scheduler meanwhile; return the names that were acknowledged."""
    loop = asyncio.get_running_loop()
    loop.call_later(min(2.0, options.seconds / 2), scheduler.process.kill)
    request = _requests(count(10**9))
    load = await submit(scheduler.connect, request, 16, 60.0, [scheduler.process])
    await asyncio.to_thread(scheduler.running.process.wait)
    return load.names


def _ratio(own: Load, other: Load) -> str:
    return f"{len(own.names) / own.seconds / (len(other.names) / other.seconds):.2f} of it"


def _run(queued: int, url: str | None, peer: SlurmPeer | None, options: argparse.Namespace) -> None:
    print(f"{'SQLite' if url is None else 'PostgreSQL'}, {queued:,} queued", flush=True)
    with tempfile.TemporaryDirectory(prefix="pai-submits-", ignore_cleanup_errors=True) as folder:
        scheduler = _Scheduler(Path(folder), queued, url)
        try:
            acknowledged = asyncio.run(_measure(scheduler, peer, options))
            acknowledged += asyncio.run(_kill(scheduler, options))
            lost = set(acknowledged) - scheduler.stored()
            print(f"    killed: of {len(acknowledged):,} acknowledged, {len(lost)} are lost", flush=True)
            if lost:
                raise SystemExit(f"lost: {sorted(lost)[:10]}")
        finally:
            if scheduler.running.process.poll() is None:
                scheduler.running.kill()
            for task in psutil.process_iter(["cmdline"]):
                if any(folder in word for word in task.info["cmdline"] or ()):
                    task.kill()


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queued", type=int, nargs="+", default=[0, 100_000, 1_000_000])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each load (%(default)s)")
    parser.add_argument("--postgresql", action="store_true", help="on a PostgreSQL too")
    parser.add_argument("--no-peer", action="store_true", help="without slurmrestd")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load of the machine before: {os.getloadavg()[0]:.1f}")
    with ExitStack() as stack:
        peer = None
        try:
            peer = None if options.no_peer else stack.enter_context(SlurmPeer.open())
        except CannotError as missing:
            print(f"slurmrestd is left out: {missing}")
        for queued in options.queued:
            _run(queued, None, peer, options)
        if options.postgresql:
            server = Postgres()
            stack.callback(server.remove)
            for queued in options.queued:
                _run(queued, server.new_database(), peer, options)


if __name__ == "__main__":
    main()
