"""Waits until the service answers that opens in a starting server, and says why it does not."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

import aiohttp
from yarl import URL

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.job.messages import Message

from .following import LOG_LINES, LOOK_EVERY, SERVING, Address, ServerFailed, Tell, log_tail, look
from .messages import counted, msg

#: Below a server's address: where it tells what its service does.
_PATH = "pai/service"
#: Seconds between two questions, and that one answer may take.
_ASK_EVERY = 0.3
_PATIENCE = aiohttp.ClientTimeout(total=10)
#: What is read of an answer, and kept of the last lines in it: it is a user's program that answers.
_MOST_BYTES, _MOST_CHARACTERS = 64 * 1024, 8000
#: `ServerFailed.reason` where the service did not start
FAILED = "service"


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What a service does, as its server tells; `lacking`: that knows of none.

    `exit_code`: negative for a signal; None: it has none. `reason`: why it could not be started at all;
    `log`: the last lines that it wrote.
    """

    state: Literal["starting", "answers", "failed", "ended", "lacking"]
    exit_code: int | None = None
    seconds: int = 0
    reason: str = ""
    log: str = ""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ServiceState | None:
        """Read an answer; None where it has not the form of one."""
        code, seconds = raw.get("exitCode"), raw.get("startSeconds")
        texts = [raw.get(name) for name in ("reason", "log")]
        if raw.get("state") not in ("starting", "answers", "failed", "ended"):
            return None
        if not (code is None or isinstance(code, int)) or not isinstance(seconds, int):
            return None
        reason, log = (text if isinstance(text, str) else "" for text in texts)
        lines = log[-_MOST_CHARACTERS:].splitlines()[-LOG_LINES:]
        return cls(raw["state"], code, seconds, reason[:_MOST_CHARACTERS], "\n".join(lines))

    def failure(self, title: str) -> Message:
        """Say why it does not answer."""
        if self.state == "lacking":
            return msg(
                "The image of the server has no pai-for-jupyter that can open {title}. Take one that has "
                "pai-for-jupyter[services] of the Hub's version.",
                title=title,
            )
        if self.reason:
            return msg("{title} cannot be started: {reason}", title=title, reason=self.reason)
        if self.exit_code is None:
            return counted(
                "{title} did not answer within {count} second.",
                "{title} did not answer within {count} seconds.",
                title=title,
                count=self.seconds,
            )
        if self.exit_code == -signal.SIGKILL:
            return msg(
                "{title} was ended by signal 9 before it answered. Where nobody sent that, the memory was "
                "not enough: choose more at the next start.",
                title=title,
            )
        if self.exit_code < 0:
            return msg(
                "{title} was ended by signal {number} before it answered.",
                title=title,
                number=-self.exit_code,
            )
        return msg(
            "{title} ended with exit code {code} before it answered.", title=title, code=self.exit_code
        )


async def wait_until_serving(
    client: Client,
    user: str,
    job: str,
    address: Address,
    *,
    base_url: str,
    title: str,
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
    # the server's own token: one that opens more must not be sent to a program that its user may change
    token = str((await client.config(user, job))["jobEnvs"]["JUPYTERHUB_API_TOKEN"])
    # as it is: aiohttp would write plainly what the Hub encodes in a name ("a:b" is "a%3Ab" there)
    url = URL(f"http://{address.ip}:{address.port}{base_url}{_PATH}", encoded=True)
    async with aiohttp.ClientSession(headers={"Authorization": f"token {token}"}, timeout=_PATIENCE) as http:
        while True:
            found = await _ask(http, url)
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


async def _ask(http: aiohttp.ClientSession, url: URL) -> ServiceState | None:
    """Return what a server says of its service; None: it does not say."""
    try:
        async with http.get(url, allow_redirects=False) as answer:
            if answer.status == HTTPStatus.NOT_FOUND:
                return ServiceState("lacking")
            if answer.status != HTTPStatus.OK:
                return None
            body = bytearray()
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > _MOST_BYTES:
                    return None
            raw = json.loads(body)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
    return ServiceState.read(raw) if isinstance(raw, dict) else None
