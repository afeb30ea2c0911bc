"""What `extras.notify` asks for: who outside is told of a job's end; and what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pai_scheduler.i18n import Message, msg

from .paths import Path, quoted

#: What a job is told of: its end, however it comes out, or only that it has failed.
END, FAILURE = "end", "failure"
#: Printable, without what one program may read in another way than the next.
_URL = re.compile(r"[!-\[\]-~]+")
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


@dataclass(frozen=True, slots=True)
class NotifyRequest:
    """What is told and where. `webhook` empty: none; `mail`: True (the user's own), an address, or False."""

    on: tuple[str, ...]
    webhook: str
    mail: bool | str


def notify_of(extras: Mapping[str, Any]) -> NotifyRequest | None:
    """Read it; None where nothing is asked for.

    A job that is older than this field may have anything under its name: that asks for nothing.
    """
    given = extras.get("notify")
    if given is None or any(notify_errors(extras)):
        return None
    on, webhook, mail = given.get("on", [END]), given.get("webhook", ""), given.get("mail", False)
    if not (isinstance(on, list) and isinstance(webhook, str) and isinstance(mail, bool | str)):
        return None
    return NotifyRequest(tuple(str(one) for one in on), webhook, mail)


def notify_errors(extras: object) -> Iterator[tuple[Path, Message]]:
    """Find what a schema cannot say; what the schema refuses is left out of account."""
    given = extras.get("notify") if isinstance(extras, dict) else None
    if given is None:
        return
    path: Path = ("extras", "notify")
    if not isinstance(given, dict):
        yield path, msg("{field} must be an object.", field="extras.notify")
        return
    webhook, mail = given.get("webhook"), given.get("mail", False)
    if webhook is None and mail is False:
        yield path, msg("Say where the end of the job is told: a webhook, mail, or both.")
    if isinstance(webhook, str) and webhook and not _is_url(webhook):
        yield (
            (*path, "webhook"),
            msg(
                "{url} is no address for a webhook: begin with https:// or http:// and a host; no user, "
                "no password and no spaces.",
                url=quoted(webhook),
            ),
        )
    if isinstance(mail, str) and not is_address(mail):
        yield (
            (*path, "mail"),
            msg(
                "{address} is no mail address. Say true for your own, or an address as ada@lab.example.",
                address=quoted(mail),
            ),
        )


def is_address(text: str) -> bool:
    """Return whether this is a plain mail address, which needs no quoting anywhere."""
    return len(text) <= 254 and _ADDRESS.fullmatch(text) is not None


def _is_url(text: str) -> bool:
    if not _URL.fullmatch(text):
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        return False
