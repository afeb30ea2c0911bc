"""Whether the service of a running server answers, for the Hub's home: the server runs on without it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pai_scheduler.i18n import Message

from ..messages import msg
from ..service_state import ServiceState, ask, asking
from .time_left import own_token

#: Seconds that a page waits for a server, which is a user's own program, before it is shown without this.
_PATIENCE = 2.0
#: Seconds for which an answer holds: as many pages as people open, a server is asked no more often.
_KEPT = 5.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question to a server. `at`: when, by the loop's clock; `answer`: for all who ask meanwhile."""

    job: str
    at: float
    answer: asyncio.Task[ServiceState | None]


_asked: WeakKeyDictionary[Any, _Asked] = WeakKeyDictionary()


async def service_trouble(spawner: Any, config: Mapping[str, Any] | None) -> Message | None:
    """Say what keeps a running server's service from being used; None: nothing, or that is not known."""
    if not spawner.service_title or spawner.server is None or not (token := own_token(config)):
        return None
    now = asyncio.get_running_loop().time()
    asked = _asked.get(spawner)
    if asked is None or asked.job != spawner.job_name or now - asked.at > _KEPT:
        answer = asyncio.create_task(_ask(str(spawner.server.url), token))
        _asked[spawner] = asked = _Asked(spawner.job_name, now, answer)
    # a page that is given up must not take the answer from another
    found = await asyncio.shield(asked.answer)
    return None if found is None else _in_words(found, spawner.service_title)


async def _ask(server_url: str, token: str) -> ServiceState | None:
    async with asking(token, _PATIENCE) as http:
        return await ask(http, server_url)


def _in_words(found: ServiceState, title: Message) -> Message | None:
    match found.state:
        case "starting":
            return msg("The server runs, and {title} is starting in it.", title=title)
        case "failed":
            return msg("The server runs, but {title} did not start: open it to read why.", title=title)
        case "ended" if found.exit_code is not None and found.exit_code < 0:
            return msg(
                "The server runs, but {title} has ended (signal {number}): open it to read why.",
                title=title,
                number=-found.exit_code,
            )
        case "ended":
            return msg(
                "The server runs, but {title} has ended (exit code {code}): open it to read why.",
                title=title,
                code=found.exit_code,
            )
        case _:
            return None
