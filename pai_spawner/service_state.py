"""What the service does that opens in a server, as the server tells: asked with the server's own token."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal

import aiohttp
from yarl import URL

from pai_scheduler.i18n import Message

from .following import LOG_LINES
from .messages import counted, msg

#: Below a server's address: where it tells what its service does.
PATH = "pai/service"
#: Seconds that one answer may take.
_PATIENCE = 10.0
#: What is read of an answer, and kept of the last lines in it: it is a user's program that answers.
_MOST_BYTES, _MOST_CHARACTERS = 64 * 1024, 8000


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

    def failure(self, title: Message) -> Message:
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


def asking(token: str, patience: float = _PATIENCE) -> aiohttp.ClientSession:
    """Return what asks a server; `token`: its own, for one that opens more must not be sent to a program that
    its user may change. `patience`: seconds that an answer may take.
    """
    timeout = aiohttp.ClientTimeout(total=patience)
    return aiohttp.ClientSession(headers={"Authorization": f"token {token}"}, timeout=timeout)


async def ask(http: aiohttp.ClientSession, server_url: str) -> ServiceState | None:
    """Return what a server says of its service; None: it does not say. `server_url`: ends with `/`."""
    # as it is: aiohttp would write plainly what the Hub encodes in a name ("a:b" is "a%3Ab" there)
    url = URL(server_url + PATH, encoded=True)
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
