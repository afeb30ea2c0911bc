"""Waits until the service answers that opens in a starting server, and says why it does not."""

from __future__ import annotations

import asyncio
import contextlib
import math

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.i18n import Message

from .following import LOOK_EVERY, SERVING, Address, ServerFailed, Tell, log_tail, look
from .messages import msg
from .service_state import ask, asking

#: Seconds between two questions.
_ASK_EVERY = 0.3
#: `ServerFailed.reason` where the service did not start
FAILED = "service"


async def wait_until_serving(
    client: Client,
    user: str,
    job: str,
    address: Address,
    *,
    base_url: str,
    title: Message,
    tell: Tell,
    patience: float,
) -> None:
    """Wait until the service of a server that listens answers.

    Raises `ServerFailed` when it does not start, when the job ends instead, or when its server says nothing
    for `patience` seconds. How long the service itself may take, its server decides.
    """
    tell(msg("The server answers; {title} is starting in it.", title=title), SERVING)
    clock = asyncio.get_running_loop().time
    heard, looked = clock(), -math.inf
    token = str((await client.config(user, job))["jobEnvs"]["JUPYTERHUB_API_TOKEN"])
    async with asking(token) as http:
        while True:
            found = await ask(http, f"http://{address.ip}:{address.port}{base_url}")
            if found is not None:
                heard = clock()
                if found.state == "answers":
                    return
                if found.state != "starting":
                    raise ServerFailed(found.failure(title), FAILED, found.log)
            if clock() - looked > LOOK_EVERY:
                looked = clock()
                with contextlib.suppress(UnreachableError):
                    await look(client, user, await client.job(user, job))
            if clock() - heard > patience:
                raise ServerFailed(
                    msg(
                        "The server did not say within {seconds:.0f} s what {title} does.",
                        seconds=patience,
                        title=title,
                    ),
                    "timeout",
                    await log_tail(client, user, job),
                )
            await asyncio.sleep(_ASK_EVERY)
