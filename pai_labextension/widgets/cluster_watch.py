"""Looks at the cluster again whenever what is free, or a queue, has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from pai_scheduler.client.rest import ApiError, Client, UnreachableError

#: Seconds at least between two looks: in a busy cluster something changes all the time.
GAP = 1.0
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0


async def watch_cluster(
    client: Client,
    look: Callable[[], Awaitable[None]],
    on_trouble: Callable[[str | None], None],
    gap: float = GAP,
) -> None:
    """Call `look` now and after each change, at the latest each half a minute; it never ends by itself.

    `on_trouble` gets a sentence while the scheduler does not answer, and None when it does again.
    """
    version: str | None = None
    delay = FIRST_RETRY
    while True:
        try:
            # the version first: what changes during the look is a reason for another one
            version = await client.changes(version)
            await look()
        except (ApiError, UnreachableError) as error:
            on_trouble(str(error))
            version = None
            await asyncio.sleep(delay)
            delay = min(2 * delay, LONGEST_RETRY)
            continue
        on_trouble(None)
        delay = FIRST_RETRY
        await asyncio.sleep(gap)
