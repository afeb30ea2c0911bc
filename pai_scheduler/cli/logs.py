"""Prints a task's log, and goes on where it stopped when the connection breaks."""

from __future__ import annotations

import asyncio
import sys
from typing import BinaryIO

from ..client import ApiError, Client, UnreachableError
from ..job.messages import msg

#: How long (seconds) a followed log waits for a scheduler that is being restarted, and how often it asks.
PATIENCE_SECONDS = 120.0
_AGAIN_SECONDS = 1.0


async def pick_task(client: Client, user: str, job: str, wanted: str | None, locale: str) -> tuple[str, int]:
    """Give role and index: as written (`worker-0`), else the task that decided the job, else the first."""
    if wanted is not None:
        role, _, number = wanted.rpartition("-")
        if role and number.isascii() and number.isdigit():
            return role, int(number)
        message = msg("{task} is no task; write role and index, for example worker-0.", task=wanted)
        raise ApiError(400, "InvalidParametersError", message.in_locale(locale))
    detail = await client.job(user, job)
    status = detail["jobStatus"]
    tasks = [
        (role, task["taskIndex"])
        for role, tasks in detail["taskRoles"].items()
        for task in tasks["taskStatuses"]
    ]
    trigger = (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"])
    role, index = next((task for task in tasks if task == trigger), tasks[0])
    if len(tasks) > 1:
        text = msg(
            "This is {task}, one of {count} tasks; name another one to see that.",
            task=f"{role}-{index}",
            count=len(tasks),
        )
        print(text.in_locale(locale), file=sys.stderr)
    return role, index


async def copy_log(
    client: Client,
    user: str,
    job: str,
    role: str,
    index: int,
    stream: str,
    *,
    attempt: int | None,
    follow: bool,
    to: BinaryIO,
    locale: str,
) -> None:
    """Write a log to `to`; followed, until the task has ended."""
    if not follow:
        async for part in client.log_parts(user, job, role, index, stream, attempt=attempt):
            to.write(part)
        to.flush()
        return
    position = 0
    patience = Patience(locale)
    while True:
        try:
            parts = client.follow_log(user, job, role, index, stream, attempt=attempt, offset=position)
            async for part in parts:
                patience.renew()
                position += len(part)
                to.write(part)
                to.flush()
            return
        except UnreachableError as error:
            await patience.wait(error)


class Patience:
    """Waits for a scheduler that was there a moment ago: tasks run on while it is restarted."""

    def __init__(self, locale: str) -> None:
        self._locale = locale
        self._clock = asyncio.get_running_loop().time
        self._since: float | None = None
        self._answered = False

    def renew(self) -> None:
        """The scheduler has answered."""
        self._since, self._answered = None, True

    async def wait(self, error: UnreachableError) -> None:
        """Sleep before another try; raises `error` where there never was an answer, or none for too long."""
        if not self._answered:
            raise error
        if self._since is None:
            self._since = self._clock()
            text = msg("The scheduler does not answer; what runs goes on. Waiting for it to come back.")
            print(text.in_locale(self._locale), file=sys.stderr, flush=True)
        if self._clock() - self._since > PATIENCE_SECONDS:
            raise error
        await asyncio.sleep(_AGAIN_SECONDS)
