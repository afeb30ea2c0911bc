"""One call of `pai`: who is asked, and how what it says is printed."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.i18n import msg

from .tables import printable_lines

OK, REFUSED = 0, 1
#: What `ssh` says where it is not the command that failed.
NO_WAY = 255


@dataclass(frozen=True, slots=True)
class CliSession:
    """One call of `pai`."""

    client: Client
    files: FilesClient
    locale: str
    as_json: bool

    def say(self, template: str, /, **values: Any) -> None:
        """Print a sentence in the user's language."""
        print(printable_lines(msg(template, **values).in_locale(self.locale)))

    def print_json(self, value: Any) -> None:
        """Print an answer for programs."""
        print(json.dumps(value, ensure_ascii=False, indent=2))

    async def owner(self, user: str | None) -> str:
        """Return the user whose job is meant: who is named, else who asks."""
        return user or (await self.client.whoami())["username"]


def complain(text: str) -> None:
    """Print a sentence about what went wrong."""
    print(printable_lines(text), file=sys.stderr)
