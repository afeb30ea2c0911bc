"""Identity of jobs at the storage: in whose name they come, and what is fetched for them."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from pai_scheduler.core.model import Job, SubState
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import StorageNames
from pai_scheduler.storage.protocol import Storage

from .credentials import JobTokens

#: Finds a user by name, with groups; None where there is none (any more). It may refuse (RequestError).
FindUser = Callable[[str], Awaitable[Principal | None]]

#: Seconds for which a job's user is remembered with the groups; as long as the Hub's tokens are.
_REMEMBERED_SECONDS = 60.0


class JobIdentities:
    """Joins the `storage` with the jobs: their tokens, their users' rights.

    `folder` is the scheduler's own, where what was fetched for jobs is kept.
    """

    def __init__(self, storage: Storage, folder: Path, find_user: FindUser) -> None:
        self.folder = folder
        self._storage = storage
        self._tokens = JobTokens.in_folder(folder)
        self._find_user = find_user
        #: those whose jobs have shown their token, until when (monotonic seconds) they are taken for that
        self._users: dict[str, tuple[Principal, float]] = {}
        self.files = Files(storage, StorageNames([storage.root_uri]))

    async def start(self, *uris: str) -> None:
        """Make the storage ready, known by these URIs too; the first is `PAI_DEFAULT_FS_URI`."""
        self.files.names = StorageNames([*uris, self._storage.root_uri])
        await self.files.start()

    async def close(self) -> None:
        """Close the storage."""
        await self.files.close()

    def token(self, job: Job) -> str:
        """Return what a job's tasks prove themselves with."""
        return self._tokens.token(job.id)

    async def user_of(self, job: Job) -> Principal:
        """Return a job's user with the groups of now; never as an administrator, whatever the user is."""
        known = await self._find_user(job.user)
        return replace(known, admin=False) if known is not None else Principal(job.user)

    async def holder(self, token: str, find_job: Callable[[str], Job | None]) -> Principal | None:
        """Return in whose name a token speaks; None where it is not that of a job that has not ended.

        It counts to the end of the last task, which may save its results when it is told to end.
        """
        job_id = self._tokens.job_of(token)
        job = find_job(job_id) if job_id is not None else None
        if job is None or job.sub_state is SubState.ENDED:
            return None
        return replace(await self._remembered(job), is_job=True)

    async def _remembered(self, job: Job) -> Principal:
        """Return a job's user as not long ago: tasks ask often, and go on while the Hub is down."""
        now = time.monotonic()
        principal, until = self._users.get(job.user, (None, 0.0))
        if principal is None or now >= until:
            try:
                principal = await self.user_of(job)
            except RequestError:
                if principal is None:
                    raise
            self._users[job.user] = (principal, now + _REMEMBERED_SECONDS)
        return principal


def storage_uris(default: str, address: str, engine: Engine) -> list[str]:
    """List the URIs of the storage, `PAI_DEFAULT_FS_URI` first: `default`, or our own WebHDFS.

    `address` is where we listen, with the path that is ours; tasks may have an address of their own
    for us, and a name that is the storage's alone.
    """
    own = [address]
    if engine.front_door_url is not None:
        own.insert(0, engine.front_door_url.rstrip("/") + urlsplit(address).path)
    if engine.storage_host is not None:
        url = urlsplit(own[0])
        port = f":{url.port}" if url.port is not None else ""
        own.insert(0, url._replace(netloc=engine.storage_host + port).geturl())
    return [default, *own] if default else own
