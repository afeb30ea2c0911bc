"""Through which addresses the running tasks of a job are reached, and why one is not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from pai_scheduler.core.model import Job, Task
from pai_scheduler.engine.protocol import Engine, NoSshEndpointError
from pai_scheduler.i18n import Message, msg

from .ssh_task_choice import running

#: tasks of which is asked at once, and the seconds after which one's answer is waited for no longer
_AT_ONCE, _SECONDS = 16, 10.0


@dataclass(frozen=True, slots=True)
class SshAddress:
    """A task's own SSH server. `published`: where others than this machine reach it; `off`: why it is not."""

    task: Task
    published: tuple[str, int] | None = None
    off: Message | None = None


async def ssh_addresses(engine: Engine, job: Job, name: str | None = None) -> list[SshAddress]:
    """List the SSH addresses of the running tasks of a job, in the order of its roles.

    `name`: only of the task that is called so (`worker-0`); others are not asked.
    """
    slots = asyncio.Semaphore(_AT_ONCE)

    async def look(task: Task) -> SshAddress:
        # where tasks have no machine of their own nothing is published, and to ask would start a server
        if engine.shares_host_ports:
            return SshAddress(task)
        try:
            async with slots, asyncio.timeout(_SECONDS):
                return SshAddress(task, (await engine.ssh_endpoint(task.ref)).published)
        except NoSshEndpointError as error:
            return SshAddress(task, off=error.message)
        except TimeoutError:
            return SshAddress(task, off=msg("Nobody could say in time whether its SSH server answers."))

    return list(
        await asyncio.gather(*(look(task) for task in running(job) if name in (None, task.ref.hostname)))
    )
