"""Makes kernels' jobs, finds those that run, and knows what the notebook server itself is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pai_labextension.tasks.connections import TaskConnections
from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message

from ..locales import default_locale
from ..messages import msg
from .job_spec import ENDED, JOB_NAME, ROLE, KernelDemand, KernelRecord, kernel_job, new_job_name
from .kernel_job import KernelJob
from .settings import PAIKernels

#: Seconds for which a scheduler that is away is asked again, where a person waits for the answer.
_PATIENCE = 10.0
_AGAIN = 0.3
#: Variables of the server that its home decides: without containers the person's own packages are among them.
_OF_THE_HOME = ("HOME", "PAI_WORK_DIR", "PATH", "VIRTUAL_ENV")


class KernelNotStartedError(Exception):
    """A kernel is not started; the sentence says why, and what to do."""

    def __init__(self, message: Message | str) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class OwnServer:
    """The notebook server as a job: its image, its virtual cluster, its home in the container, what is shared
    with it, and the variables that follow from its home.

    All empty where it is none.
    """

    image: str = ""
    virtual_cluster: str = ""
    home: str = ""
    shared_folders: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, config: Mapping[str, Any]) -> OwnServer:
        """Read it from the job JSON."""
        envs, extras = config.get("jobEnvs") or {}, config.get("extras") or {}
        return cls(
            str(config.get("image", "")),
            str(config.get("virtualCluster", "")),
            str(extras.get("home", "")),
            tuple(extras.get("sharedFolders", ())),
            {name: str(envs[name]) for name in _OF_THE_HOME if name in envs},
        )


@dataclass(frozen=True, slots=True)
class FoundKernel:
    """A kernel's job that waits or runs, of this notebook server."""

    job: str
    record: KernelRecord
    config: Mapping[str, Any]


class KernelService:
    """The kernels' jobs of one notebook server, asked for with its own token."""

    def __init__(self, settings: PAIKernels) -> None:
        self.settings = settings
        self.connections = TaskConnections(settings.api_url, settings.token)
        self.connections.locale = default_locale()
        self._own: OwnServer | None = None
        self._turn = asyncio.Lock()

    async def own_server(self, client: Client) -> OwnServer:
        """Return what this server is; `ApiError`, `UnreachableError`."""
        async with self._turn:
            if self._own is None:
                job = os.environ.get("PAI_JOB_NAME", "")
                try:
                    config = await client.config(await self.connections.owner(), job) if job else {}
                except ApiError as error:
                    if error.status != 404:
                        raise
                    config = {}
                self._own = OwnServer.read(config)
        return self._own

    async def submit(self, record: KernelRecord, demand: KernelDemand) -> KernelJob:
        """Ask the scheduler for a kernel's task; KernelNotStartedError says why there can be none."""
        deadline = _now() + _PATIENCE
        name = new_job_name()
        while True:
            try:
                return await self._submit(name, record, demand)
            except UnreachableError as error:
                if _now() > deadline:
                    raise KernelNotStartedError(
                        msg("The scheduler does not answer: {reason}", reason=str(error))
                    ) from error
            except ApiError as error:
                raise KernelNotStartedError(
                    msg("The scheduler refuses: {reason}", reason=error.message)
                ) from error
            await asyncio.sleep(_AGAIN)

    async def _submit(self, name: str, record: KernelRecord, demand: KernelDemand) -> KernelJob:
        async with self.connections.client() as client:
            own = await self.own_server(client)
            user = await self.connections.owner()
            config = kernel_job(
                name, record, demand, home=own.home, shared_folders=own.shared_folders, env=own.env
            )
            verdict = await client.validate(config)
            if verdict["errors"]:
                raise KernelNotStartedError(" ".join(error["message"] for error in verdict["errors"]))
            if verdict["fits"] == "never":
                raise KernelNotStartedError(verdict["reason"])
            try:
                await client.submit(config)
            except ApiError as error:
                # an answer that got lost on its way: the job is there, and its name is nobody else's
                if error.code != "ConflictJobError":
                    raise
        return self.follow(name, user, record.id, demand.python, demand.memory_mb)

    def follow(self, name: str, user: str, kernel_id: str, python: str, memory_mb: int) -> KernelJob:
        """Follow a job that is there."""
        job = KernelJob(self.connections, user, name, kernel_id=kernel_id, python=python, memory_mb=memory_mb)
        job.begin()
        return job

    async def found(self) -> list[FoundKernel]:
        """List this server's kernels that wait or run; `ApiError`, `UnreachableError`."""
        async with self.connections.client() as client:
            user = await self.connections.owner()
            kernels = []
            for summary in await client.jobs(user):
                if not JOB_NAME.fullmatch(summary["name"]) or summary["state"] in ENDED:
                    continue
                if summary["subState"] == "ENDING":
                    continue
                config = await client.config(user, summary["name"])
                record = KernelRecord.read(config)
                if record is not None and record.server == self.settings.server:
                    kernels.append(FoundKernel(summary["name"], record, config))
        return kernels

    async def close(self) -> None:
        """Close the connections."""
        await self.connections.close()


def memory_of(config: Mapping[str, Any]) -> int:
    """Return the memory of a kernel's job, in MB."""
    return next(int(role["memoryMB"]) for role in config["taskRoles"] if role["name"] == ROLE)


def _now() -> float:
    return asyncio.get_running_loop().time()
