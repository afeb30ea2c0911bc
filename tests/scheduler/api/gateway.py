"""A scheduler within this process whose WebHDFS tests talk to, over whichever storage they want."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import hdfs
import httpx
import requests
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from pai_scheduler.api.app import make_app
from pai_scheduler.api.auth import TokensFile
from pai_scheduler.api.base import HandlerContext
from pai_scheduler.api.http_server import STREAMED, serve
from pai_scheduler.api.webhdfs.handover import Transfer, TransferHandover
from pai_scheduler.cluster.definition import Definition
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.principal import Principal
from pai_scheduler.server import file_servers
from pai_scheduler.service.input_identity import JobIdentities
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.storage.paths import StoragePath
from pai_scheduler.storage.protocol import Storage
from pai_scheduler.store.store import Store
from pai_scheduler.workers.file_server.messages import Report
from pai_scheduler.workers.file_server.server import FileServer
from tests.testbed.empty_store import put_empty_store
from tests.testbed.scheduler import clean_environ

TOKENS = """{
    "a": {"name": "alice", "groups": ["vision"]}, "b": {"name": "bob", "groups": ["vision"]},
    "c": {"name": "carol"}, "root": {"name": "root", "admin": true}
}"""


@dataclass
class Gateway:
    """Its `url` has the prefix and no slash at the end; `folder` is the scheduler's own."""

    service: Service
    context: HandlerContext
    server: HTTPServer
    url: str
    folder: Path

    @property
    def port(self) -> int:
        return int(self.url.split(":")[2].split("/")[0])

    def client(self, token: str = "a") -> httpx.AsyncClient:  # noqa: S107
        """Speak HTTP to `/webhdfs/v1`, following no redirect."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.AsyncClient(
            base_url=f"{self.url}/webhdfs/v1", headers=headers, trust_env=False, timeout=30
        )

    def library(self, token: str = "a", root: str | None = None) -> hdfs.InsecureClient:  # noqa: S107
        """Return the `hdfs` library's client, for threads, with the token in its session."""
        session = requests.Session()
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {token}"
        return hdfs.InsecureClient(self.url, user="anybody", root=root, session=session)

    async def raw(self, request: bytes) -> bytes:
        """Say exactly this; return the whole answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer

    async def put(self, path: str, contents: bytes, token: str = "a") -> None:  # noqa: S107
        """Write a file past the network."""

        async def pieces() -> AsyncIterator[bytes]:
            yield contents

        await self.service.files.create(
            Principal({"a": "alice", "b": "bob"}[token]), StoragePath.parse(path), pieces(), overwrite=True
        )


class FileServerHere:
    """A file server that gets what it would get in a process of its own."""

    def __init__(self, context: HandlerContext) -> None:
        self._service = context.service
        self._ended: dict[int, asyncio.Future[None]] = {}
        self._server = FileServer(
            self._service.files,
            context.prefix,
            self._count,
            self._end,
            openpai_compat=context.openpai_compat,
        )
        self._numbers = itertools.count()

    async def serve(self, connection: socket.socket, transfer: Transfer) -> None:
        number = next(self._numbers)
        ended = self._ended[number] = asyncio.get_running_loop().create_future()
        self._server.take(number, connection, pickle.loads(pickle.dumps(transfer)))  # noqa: S301
        await ended

    async def close(self) -> None:
        await self._server.close()

    def _count(self, report: Report) -> None:
        file_servers.count(self._service.monitor, report)

    def _end(self, number: int) -> None:
        self._ended.pop(number).set_result(None)


@asynccontextmanager
async def open_gateway(
    folder: Path, storage: Storage, *, prefix: str = "/", openpai_compat: bool = False
) -> AsyncIterator[Gateway]:
    """Run one over a storage."""
    tokens = folder / "tokens.json"
    tokens.write_text(TOKENS)
    tokens.chmod(0o600)
    authenticator = TokensFile(tokens)
    sockets = bind_sockets(0, "127.0.0.1")
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}{prefix}".rstrip("/")
    service = Service(
        ProcessEngine(folder),
        Store.in_folder(put_empty_store(folder)),
        ServiceSettings(Definition(grace_seconds=1), address=url),
        job_files=JobIdentities(storage, folder, authenticator.find),
    )
    await service.start()
    context = HandlerContext(service, authenticator, prefix, openpai_compat=openpai_compat)
    async with served(context, sockets) as server:
        yield Gateway(service, context, server, url, folder)
    await service.close()


@asynccontextmanager
async def served(context: HandlerContext, sockets: Sequence[socket.socket]) -> AsyncIterator[HTTPServer]:
    """Answer as the scheduler does. The file server is in this process, so that tests may look into it."""
    app = make_app(context)
    files = FileServerHere(context)
    server = serve(app, sockets, TransferHandover(context, app.settings[STREAMED], files))
    yield server
    server.stop()
    await server.close_all_connections()
    await files.close()


async def empty(storage: Storage) -> None:
    """Remove what earlier tests have left in a storage that goes on; what begins with a dot is its own."""
    for entry in (await storage.list(StoragePath(), "")).entries:
        if not entry.path.name.startswith("."):
            await storage.delete(entry.path, "", recursive=True)


async def run(*command: str, env: dict[str, str] | None = None, stdin: bytes = b"") -> str:
    """Run a program; return what it says, which must be no complaint."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=clean_environ({"NO_PROXY": "*", **(env or {})}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate(stdin)
    assert process.returncode == 0, output.decode()
    return output.decode()


def program(name: str) -> str:
    """Find a program beside the Python that runs."""
    return str(Path(sys.executable).parent / name)
