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
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import sqlalchemy as sa

from pai_scheduler.store.store import DATABASE_FILE, Store
from tests.benchmarks.rows import Against, Goal, Row
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
        seed(store, queued, _USER)
        store.close()
        environ = {"PAI_DATABASE_URL": url} if url else {}
        self.running = _WithTokens(folder, cluster=CLUSTER, environ=environ)
        self.process = psutil.Process(self.running.process.pid)

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


@dataclass
class _Found:
    """Of one number of clients: our loads, and the peer's between."""

    ours: list[Load] = field(default_factory=list)
    theirs: list[Load] = field(default_factory=list)


async def _measure(
    scheduler: _Scheduler, peer: SlurmPeer | None, clients: Sequence[int], seconds: float, rounds: int
) -> tuple[dict[int, _Found], list[str]]:
    """Load with each number of clients, the peer between; give the loads, and the acknowledged names."""
    request, acknowledged = _requests(count()), list[str]()
    found = {number: _Found() for number in clients}
    await submit(scheduler.connect, request, 4, 1.0, [scheduler.process])  # (warms up)
    for _ in range(rounds):
        for number, one in found.items():
            load = await submit(scheduler.connect, request, number, seconds, [scheduler.process])
            acknowledged += load.names
            one.ours.append(load)
            if peer is not None:
                one.theirs.append(await submit(peer.connect, peer.request, number, seconds, peer.processes))
    return found, acknowledged


async def _kill(scheduler: _Scheduler, seconds: float) -> list[str]:
    """Submit, and kill the scheduler meanwhile; return the names that were acknowledged."""
    loop = asyncio.get_running_loop()
    loop.call_later(min(2.0, seconds / 2), scheduler.process.kill)
    request = _requests(count(10**9))
    load = await submit(scheduler.connect, request, 16, 60.0, [scheduler.process])
    await asyncio.to_thread(scheduler.running.process.wait)
    return load.names


def _run(
    queued: int, url: str | None, peer: SlurmPeer | None, clients: Sequence[int], seconds: float, rounds: int
) -> dict[int, _Found]:
    """Measure with one queue; AssertionError where something acknowledged is lost."""
    with tempfile.TemporaryDirectory(prefix="pai-submits-", ignore_cleanup_errors=True) as folder:
        scheduler = _Scheduler(Path(folder), queued, url)
        try:
            found, acknowledged = asyncio.run(_measure(scheduler, peer, clients, seconds, rounds))
            acknowledged += asyncio.run(_kill(scheduler, seconds))
            lost = set(acknowledged) - scheduler.stored()
            assert not lost, f"of {len(acknowledged):,} acknowledged are lost: {sorted(lost)[:10]}"
        finally:
            if scheduler.running.process.poll() is None:
                scheduler.running.kill()
            for task in psutil.process_iter(["cmdline"]):
                if any(folder in word for word in task.info["cmdline"] or ()):
                    task.kill()
    return found


def rows(*, short: bool) -> Iterator[Row]:
    """Measure with nothing and with 100,000 jobs queued; slurmrestd is left out where it is not installed."""
    clients = (16,) if short else (1, 4, 8, 16)
    with ExitStack() as stack:
        peer = None
        with suppress(CannotError):
            peer = stack.enter_context(SlurmPeer.open())
        for queued in (0,) if short else (0, 100_000):
            found = _run(queued, None, peer, clients, 0.5 if short else 4.0, 1 if short else 3)
            for number, one in found.items():
                yield Row(
                    measure=f"durable submits, {queued:,} queued, {number} clients",
                    unit="/s",
                    ours=tuple(map(_rate, one.ours)),
                    peer="slurmrestd, not durable" if one.theirs else "",
                    theirs=tuple(map(_rate, one.theirs)),
                    goal=Goal(Against.RATIO, at_least=1.5) if number == 16 else None,
                    series=f"submits by clients, {queued:,} queued",
                    size=number,
                )
            yield Row(
                measure=f"a durable submit, {queued:,} queued, 16 clients",
                unit="ms of CPU",
                ours=tuple(map(_cost, found[16].ours)),
                peer="slurmrestd" if found[16].theirs else "",
                theirs=tuple(map(_cost, found[16].theirs)),
            )


def _rate(load: Load) -> float:
    return len(load.names) / load.seconds


def _cost(load: Load) -> float:
    return 1e3 * load.cpu / max(1, len(load.names))


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
        urls: list[str | None] = [None] * len(options.queued)
        if options.postgresql:
            server = Postgres()
            stack.callback(server.remove)
            urls += [server.new_database() for _ in options.queued]
        for queued, url in zip(options.queued * 2, urls, strict=False):
            print(f"{'SQLite' if url is None else 'PostgreSQL'}, {queued:,} queued", flush=True)
            for number, found in _run(queued, url, peer, options.clients, options.seconds, 1).items():
                print(f"    {number:3} clients  {found.ours[0]}", flush=True)
                for other in found.theirs:
                    ratio = _rate(found.ours[0]) / _rate(other)
                    print(f"    slurmrestd   {other}   {ratio:.2f} of it", flush=True)
            print("    killed under load: nothing acknowledged is lost", flush=True)


if __name__ == "__main__":
    main()
