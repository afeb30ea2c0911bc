"""Follows one log of one task, through restarts of the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from pai_scheduler.client.rest import ApiError, Client, UnreachableError

from .log_text import KEPT

Stream = Literal["all", "stdout", "stderr"]
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class LogChoice:
    """Selected log, by attempt, task and stream; `live`: the last attempt's, which may still grow."""

    role: str
    index: int
    stream: Stream
    attempt: int
    live: bool


async def follow_log(
    client: Client,
    user: str,
    job: str,
    choice: LogChoice,
    *,
    on_begin: Callable[[], None],
    on_data: Callable[[bytes], None],
    on_trouble: Callable[[str | None], None],
) -> None:
    """Read the last megabyte and what is written from then on, until the task has ended.

    After a break it begins again (`on_begin`) with the last megabyte. `on_trouble` gets a sentence while
    something is in the way, and None afterwards.
    """
    delay = FIRST_RETRY
    while True:
        begun = False
        try:
            if not choice.live:
                data = await client.log(
                    user, job, choice.role, choice.index, choice.stream, attempt=choice.attempt, offset=-KEPT
                )
                on_begin()
                on_data(data)
                on_trouble(None)
                return
            async for data in client.follow_log(
                user, job, choice.role, choice.index, choice.stream, offset=-KEPT
            ):
                if not begun:
                    on_begin()
                    on_trouble(None)
                    begun, delay = True, FIRST_RETRY
                on_data(data)
        except UnreachableError as error:
            on_trouble(str(error))
        except ApiError as error:
            on_trouble(error.message)
            if error.status < 500:
                return
        else:
            on_trouble(None)
            return
        await asyncio.sleep(delay)
        delay = min(2 * delay, LONGEST_RETRY)
