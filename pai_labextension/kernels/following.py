"""A kernel's job as the scheduler tells of it: waited for until it runs, asked after, stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message

from ..messages import msg
from .ending import Ending, ending_of

if TYPE_CHECKING:
    from pai_labextension.tasks.connections import TaskConnections
    from pai_scheduler.rest.models import JobStatus

#: Seconds between two looks at a job of which nothing is heard, and between two tries to stop it.
_LOOK_EVERY, _AGAIN = 2.0, 0.5
#: Seconds for which a scheduler that is away is asked again to stop a job.
_STOP_PATIENCE = 600.0

#: Is told a sentence: what a task is at, or why nothing more is known.
HeardReason = Callable[[Message | str], None]
#: Is told that the job does not run: its sub-state, why, and its place in the queue.
HeardWaiting = Callable[[str, Message | str, int | None], None]


class JobFollower:
    """Follows one job with the person's own token; its sentences are in the language of who reads now."""

    def __init__(self, connections: TaskConnections, user: str, job: str) -> None:
        self._connections, self._user, self._job = connections, user, job
        self._client: Client | None = None
        self._locale = ""

    async def until_running(self, reason: HeardReason, waiting: HeardWaiting) -> Ending | None:
        """Wait until the job runs, telling why it does not; return why it never will any more."""
        news = asyncio.Event()
        hearing = asyncio.create_task(self._hear_events(news, reason))
        try:
            while True:
                client = await self._ask()
                try:
                    detail = await client.job(self._user, self._job)
                except UnreachableError:
                    reason(msg("The scheduler does not answer; the kernel goes on when it is back."))
                except ApiError as error:
                    if error.status == 404:
                        return Ending(msg("The job of this kernel was deleted."))
                    reason(error.message)
                else:
                    status = detail["jobStatus"]
                    if (ending := await ending_of(client, self._user, detail)) is not None:
                        return ending
                    if status["state"] == "RUNNING":
                        return None
                    waiting(status["subState"], status["waitingReason"], status["queuePlace"])
                news.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_EVERY):
                        await news.wait()
        finally:
            hearing.cancel()

    async def status(self) -> JobStatus:
        """Return how the job is; `ApiError`, `UnreachableError`."""
        return (await (await self._ask()).job(self._user, self._job))["jobStatus"]

    async def stop(self, after: float = 0.0) -> None:
        """Stop the job unless it ends by itself within so many seconds."""
        begun = _now()
        # it may go on when nobody follows the job any more
        async with self._connections.client() as client:
            while _now() < begun + _STOP_PATIENCE:
                try:
                    status = (await client.job(self._user, self._job))["jobStatus"]
                    if ends(status):
                        return
                    if _now() >= begun + after:
                        await client.stop(self._user, self._job)
                        return
                except UnreachableError:
                    pass
                except ApiError:
                    return
                await asyncio.sleep(_AGAIN)

    async def close(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(self) -> Client:
        if self._client is None or self._locale != self._connections.locale:
            await self.close()
            self._locale, self._client = self._connections.locale, self._connections.client()
        return self._client

    async def _hear_events(self, news: asyncio.Event, reason: HeardReason) -> None:
        last = 0
        while True:
            with suppress(UnreachableError, ApiError):
                async with self._connections.client() as client:
                    async for event in client.events(self._user, self._job, after=last):
                        last = event["id"]
                        if event["message"] and event["taskRole"] is not None:
                            reason(event["message"])
                        news.set()
                return
            await asyncio.sleep(_LOOK_EVERY)


def ends(status: JobStatus) -> bool:
    """Return whether nothing new begins in the job."""
    return status["subState"] in ("ENDING", "ENDED")


def _now() -> float:
    return asyncio.get_running_loop().time()
