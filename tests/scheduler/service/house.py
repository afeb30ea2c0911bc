"""A scheduler within this process whose tasks can be entered; tests speak to it as gateway and users."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from tornado.netutil import bind_sockets

from pai_scheduler.api.auth import TokensFile
from pai_scheduler.api.base import HandlerContext
from pai_scheduler.cluster.definition import parse_definition
from pai_scheduler.core.model import Job, State, SubState
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.protocol import NoSshEndpointError, SshEndpoint
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import Principal
from pai_scheduler.rest.models import SshGateway
from pai_scheduler.service.input_identity import JobIdentities
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.ssh.keys import JobKeys
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.protocol import Storage
from pai_scheduler.store.store import Store
from tests.scheduler.api.gateway import served
from tests.scheduler.making import make_config, make_role
from tests.testbed.empty_store import put_empty_store

ALICE, ROOT = Principal("alice"), Principal("root", admin=True)
TOKENS = """{
    "token-a": {"name": "alice"}, "token-b": {"name": "bob"}, "token-plus": {"name": "a+b"},
    "token-shell": {"name": "$(id);`id`"}, "token-root": {"name": "root", "admin": true}
}"""
FOREVER = "exec sleep 1000"
NODE = parse_definition(
    {
        "nodes": [{"name": "a", "cpus": 64, "memoryMB": 8000, "storageGB": 1000}],
        "defaults": {"terminationGraceSeconds": 1},
    }
)


class DoorEngine(ProcessEngine):
    """Runs real tasks, and says of their SSH servers what a test wants: no server is asked for it."""

    published: tuple[str, int] | None = None
    isolated = False
    signals: str | None = None
    off = ""

    async def ssh_endpoint(self, _task: TaskRef) -> SshEndpoint:
        if self.off:
            raise NoSshEndpointError(msg("{reason}", reason=self.off))
        return SshEndpoint("127.0.0.1", 4711, self.published, self.isolated, self.signals)


@dataclass
class House:
    """The scheduler at `url`, and what tests do with it."""

    service: Service
    engine: DoorEngine
    store: Store
    keys: JobKeys
    folder: Path
    url: str

    async def ask(self, call: str, token: str | None = None, **body: Any) -> httpx.Response:
        """Ask as the gateway, or with another token."""
        proof = self.keys.gateway_token() if token is None else token
        headers = {"Authorization": f"Bearer {proof}"}
        async with httpx.AsyncClient(
            base_url=self.url, headers=headers, trust_env=False, timeout=30
        ) as client:
            return await client.post(f"/access/{call}", content=json.dumps(body))

    async def login(self, login: str, credential: str, method: str = "password") -> httpx.Response:
        return await self.ask("login", login=login, method=method, credential=credential, peer="10.0.0.3")

    async def session_token(self, login: str, credential: str, method: str = "password") -> str:
        answer = await self.login(login, credential, method)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["session_token"])

    async def open(
        self, login: str, credential: str, method: str = "password", language: str = "en"
    ) -> httpx.Response:
        """Log in and open."""
        session_token = await self.session_token(login, credential, method)
        return await self.ask("open", login=login, session_token=session_token, language=language)

    async def task(self, login: str, credential: str, method: str = "password") -> str:
        """Log in and open; say which job and task it is."""
        answer = await self.open(login, credential, method)
        assert answer.status_code == 200, answer.text
        return f"{answer.json()['job']}/{answer.json()['task']}"

    async def held(self, login: str, credential: str, method: str = "password") -> dict[str, str]:
        """Log in; return what the gateway keeps of it."""
        session_token = await self.session_token(login, credential, method)
        return {"login": login, "session_token": session_token, "method": method, "credential": credential}

    async def gone(self, *held: dict[str, str]) -> list[int]:
        """Ask who of them may not stay."""
        answer = await self.ask("still", held=held)
        assert answer.status_code == 200, answer.text
        return list(answer.json()["gone"])

    def rewrite_tokens(self, tokens: dict[str, Any]) -> None:
        """Let there be other tokens."""
        changed = self.folder / "changed"
        changed.write_text(json.dumps(tokens))
        changed.chmod(0o600)
        changed.replace(self.folder / "tokens.json")

    def key(self, job: Job) -> str:
        """Return the public key of a job."""
        return self.keys.identity(job.id).public

    async def begin(
        self, name: str, user: str = "alice", *, tasks: int = 1, command: str = FOREVER, **fields: Any
    ) -> Job:
        """Submit a job and wait until it runs."""
        role = make_role("worker", tasks, command=command)
        await self.service.admission.submit(Principal(user), user, make_config(role, name=name, **fields))
        return await self.until(name, user, lambda job: job.state is State.RUNNING)

    async def end(self, name: str, user: str = "alice") -> None:
        await self.service.jobs.stop(ROOT, user, name)
        await self.until(name, user, lambda job: job.sub_state is SubState.ENDED)

    async def until(self, name: str, user: str, condition: Any) -> Job:
        async for _ in self.service.job_events.follow(ROOT, user, name):
            job = await self.service.jobs.get(ROOT, user, name)
            if condition(job):
                return job
        return await self.service.jobs.get(ROOT, user, name)

    async def told(self, name: str, user: str = "alice") -> list[str]:
        """Return what the events of a job say of who was in it, once all that was reported is written."""
        # (what is requested is written after what was reported before)
        await self.service.jobs.reorder(ROOT, user, name, priority=50)
        events = await self.service.job_events.read(ROOT, user, name)
        return [str(told.entry.message) for told in events if told.entry.type == "access"]

    def client(self, token: str = "token-a") -> httpx.AsyncClient:  # noqa: S107
        """Speak to the API."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.AsyncClient(base_url=f"{self.url}/api/v1", headers=headers, trust_env=False, timeout=30)


@asynccontextmanager
async def open_house(folder: Path, storage: Storage | None = None, **options: Any) -> AsyncIterator[House]:
    """Run one; in the end its jobs are stopped. `options` are the desk's."""
    tokens = folder / "tokens.json"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    authenticator = TokensFile(tokens)
    sockets = bind_sockets(0, "127.0.0.1")
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    engine, store, keys = (
        DoorEngine(folder),
        Store.in_folder(put_empty_store(folder)),
        JobKeys.in_folder(folder),
    )
    service = Service(
        engine,
        store,
        ServiceSettings(NODE, address=url),
        job_files=JobIdentities(storage or FolderStorage(folder / "files"), folder, authenticator.find),
        keys=keys,
    )
    await service.start()
    gateway: SshGateway = {"host": None, "port": 2222, "hostKey": keys.gateway_host().public}
    desk = HandlerContext(service, authenticator, ssh=gateway, **options)
    async with served(desk, sockets):
        yield House(service, engine, store, keys, folder, url)
    for job in await service.jobs.page(ROOT):
        await service.jobs.stop(ROOT, job.user, job.name)
    for job in await service.jobs.page(ROOT):
        async for _ in service.job_events.follow(ROOT, job.user, job.name):
            pass
    await service.close()
