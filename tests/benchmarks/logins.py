"""A class begins: many users log in within a minute, each starts a server; how long that takes each of them.

    python -m tests.benchmarks.logins [--users 200] [--seconds 60]

A real Hub as `make run` starts it, with its proxy, scheduler and sessions service, on the process engine. The
servers are stubs that only answer, so that what is measured is the Hub, the spawner and the scheduler. Every
user goes the way of a browser: the login form, the options form, then the Hub is asked until the server is
ready. Meanwhile somebody else asks the Hub for its version ten times a second: that is its latency. Ends with
status 1 where somebody has no server in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.hub import PASSWORD, REPOSITORY, Hub, xsrf

_PATIENCE = 300.0
_LOOK_SECONDS, _ASK_SECONDS = 0.5, 0.1
_CLUSTER = {
    "nodes": [{"name": "here", "cpus": 1024, "memoryMB": 1_000_000, "storageGB": 100_000}],
    "virtualClusters": {"default": {"capacity": 100}},
}
_CONFIG = """
load_subconfig("{config}")
c.PAISpawner.cmd = ["{python}", "-S", "{stub}"]
"""


@contextmanager
def _hub(folder: Path) -> Iterator[str]:
    """Run the Hub; return its address."""
    cluster, config = folder / "cluster.yaml", folder / "config.py"
    cluster.write_text(yaml.safe_dump(_CLUSTER))
    config.write_text(
        _CONFIG.format(
            config=REPOSITORY / "hub_config" / "jupyterhub_config.py",
            python=sys.executable,
            stub=Path(__file__).with_name("stub_server.py"),
        )
    )
    hub = Hub(folder / "run", "--cluster", str(cluster), "--config", str(config))
    hub.start()
    try:
        yield hub.url
    finally:
        hub.stop()


def _cookie(client: httpx.AsyncClient) -> str:
    return xsrf(client)  # type: ignore[arg-type]


async def _user(url: str, name: str, everybody: asyncio.Barrier) -> tuple[float, float]:
    """Log in, start a server and wait for it; seconds of the login, and from it until the server is ready.

    The server is ended when everybody has one: it would outlive the Hub.
    """
    async with httpx.AsyncClient(
        base_url=url, trust_env=False, timeout=_PATIENCE, follow_redirects=True
    ) as client:
        begin = time.monotonic()
        await client.get("/hub/login")
        form = {"username": name, "password": PASSWORD, "_xsrf": _cookie(client)}
        answer = await client.post("/hub/login", data=form, follow_redirects=False)
        if answer.status_code != 302:
            raise SystemExit(f"{name} could not log in: {answer.status_code}")
        logged_in = time.monotonic()
        await client.get(f"/hub/spawn/{name}")
        choice = {"cpus": "1", "memory_mb": "256"}
        answer = await client.post(
            f"/hub/spawn/{name}", params={"_xsrf": _cookie(client)}, data=choice, follow_redirects=False
        )
        if answer.status_code != 302:
            raise SystemExit(f"{name} has no server: {answer.status_code} {answer.text[:2000]}")
        while not await _is_ready(client, name):  # noqa: ASYNC110 - as a page does
            await asyncio.sleep(_LOOK_SECONDS)
        ready = time.monotonic()
        await everybody.wait()
        headers = _headers(client)
        (await client.delete(f"/hub/api/users/{name}/server", headers=headers)).raise_for_status()
        while await _server(client, name) is not None:  # noqa: ASYNC110 - as a page does
            await asyncio.sleep(_LOOK_SECONDS)
        return logged_in - begin, ready - logged_in


async def _is_ready(client: httpx.AsyncClient, name: str) -> bool:
    if (server := await _server(client, name)) is None:
        raise SystemExit(f"{name}'s server did not start")
    return bool(server["ready"])


async def _server(client: httpx.AsyncClient, name: str) -> dict[str, Any] | None:
    answer = await client.get(f"/hub/api/users/{name}", headers=_headers(client))
    found: dict[str, Any] | None = answer.json()["servers"].get("")
    return found


def _headers(client: httpx.AsyncClient) -> dict[str, str]:
    return {"X-XSRFToken": _cookie(client), "Referer": f"{client.base_url}/hub/home"}


async def _ask(url: str, took: list[float]) -> None:
    """Ask the Hub for its version, again and again."""
    async with httpx.AsyncClient(trust_env=False, timeout=_PATIENCE) as client:
        while True:
            begin = time.monotonic()
            (await client.get(f"{url}/hub/api")).raise_for_status()
            took.append(time.monotonic() - begin)
            await asyncio.sleep(_ASK_SECONDS)


async def _all(url: str, users: int, seconds: float) -> None:
    took: list[float] = []
    asking = asyncio.create_task(_ask(url, took))
    everybody = asyncio.Barrier(users + 1)
    begin = time.monotonic()

    async def come(number: int) -> tuple[float, float]:
        await asyncio.sleep(number * seconds / users)
        return await _user(url, f"pupil{number}", everybody)

    async with asyncio.TaskGroup() as group:
        people = [group.create_task(come(number)) for number in range(users)]
        async with asyncio.timeout(seconds + _PATIENCE):
            await everybody.wait()
        whole = time.monotonic() - begin
        asking.cancel()
    found = [person.result() for person in people]
    print(f"{users} users within {seconds:.0f} s; the last server was ready after {whole:.1f} s")
    _print("login", [login for login, _ in found])
    _print("login to ready", [ready for _, ready in found])
    _print("the Hub's latency", took)


def _print(what: str, seconds: Sequence[float]) -> None:
    ordered = sorted(seconds)
    print(
        f"{what:18} median {statistics.median(ordered):6.2f} s, 95 % within"
        f" {ordered[int(0.95 * len(ordered))]:6.2f} s, worst {ordered[-1]:6.2f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, _hub(Path(name)) as url:
        asyncio.run(_all(url, given.users, given.seconds))
