"""A real scheduler, spawners as the Hub makes them, and Hubs that are configured and not started."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from jupyterhub import orm
from jupyterhub.objects import Hub, Server
from jupyterhub.user import User

from pai_spawner import PAISpawner, startup
from pai_spawner.doctor.configuration import HubConfiguration, read_configuration
from tests.testbed.scheduler import RunningScheduler, StartScheduler

#: Stands in for a single-user server: listens where it is told, and starts at once.
SERVER = """
import http.server, os, urllib.parse
url = urllib.parse.urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
print("serving", url.path, flush=True)
http.server.HTTPServer((url.hostname, url.port), http.server.SimpleHTTPRequestHandler).serve_forever()
"""

Make = Callable[..., PAISpawner]
Configure = Callable[..., HubConfiguration]


@pytest.fixture(scope="module")
def scheduler(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler on the process engine."""
    return module_scheduler()


@pytest.fixture
async def make(scheduler: RunningScheduler, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Make]:
    """Return what makes a spawner as the Hub does, for a user in the Hub's database."""
    monkeypatch.setattr(startup, "LOOK_EVERY", 0.2)
    if scheduler.process.poll() is not None:
        scheduler.start()
    db = orm.new_session_factory("sqlite:///:memory:")()
    made: list[PAISpawner] = []

    def make(name: str = "alice", program: str = SERVER, **settings: Any) -> PAISpawner:
        orm_user = orm.User.find(db, name) or orm.User(name=name)
        db.add(orm_user)
        if orm_user.orm_spawners.get("") is None:
            db.add(orm.Spawner(name="", user=orm_user))
        db.commit()
        orm_spawner = orm_user.orm_spawners[""]
        user = User(orm_user, {"spawner_class": PAISpawner}, db=db)
        spawner = PAISpawner(
            user=user,
            orm_spawner=orm_spawner,
            hub=Hub(base_url="/hub/"),
            scheduler_url=settings.pop("scheduler_url", scheduler.url),
            scheduler_token="token-of-root",
            images={"Test": "local/test"},
            cmd=[sys.executable, "-c", program],
            stop_patience=settings.pop("stop_patience", 20.0),
            **settings,
        )
        spawner.load_state(orm_spawner.state or {})
        if orm_spawner.server is None:
            orm_server = orm.Server(base_url=f"/user/{name}/")
            db.add(orm_server)
            db.commit()
            spawner.server = Server(orm_server=orm_server)
        made.append(spawner)
        return spawner

    yield make
    for spawner in made:
        if await spawner.poll() is None:
            await spawner.stop()
    db.close()


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    """Return how to configure a Hub, by the lines of its file and its environment."""

    def make(*lines: str, **environ: str) -> HubConfiguration:
        file = tmp_path / "configuration.py"
        file.write_text("\n".join(("c = get_config()", *lines)))
        return read_configuration(file, tmp_path, environ)

    return make


async def eventually(fits: Callable[[], Any]) -> None:
    """Wait until something is so, or the server that is asked for has ended."""
    async with asyncio.timeout(60):
        while True:
            answer = fits()
            if isawaitable(answer):
                answer = await answer is not None
            if answer:
                return
            await asyncio.sleep(0.05)
