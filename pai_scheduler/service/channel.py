"""What a way out has, and how one says that something could not be told."""

from __future__ import annotations

from typing import Protocol

from pai_scheduler.core.instructions import Announcement
from pai_scheduler.i18n import Message


class UndeliveredError(Exception):
    """It was not told. `final`: it would not be the next time either."""

    def __init__(self, message: Message, *, final: bool = False) -> None:
        super().__init__(str(message))
        self.message, self.final = message, final


class Channel(Protocol):
    """A way on which announcements go out."""

    def refusal(self, user: str, target: str) -> Message | None:
        """Return why a user's job may not be told of at a target; None where it may."""

    def where(self, announcement: Announcement) -> str:
        """Name the target for people, without what may be secret in it."""

    async def send(self, announcement: Announcement) -> None:
        """Tell it; UndeliveredError. The receiver may get it twice, with the same id."""


def delivery_id(announcement: Announcement) -> str:
    """Return the id of an announcement: the same however often it is sent, and of no other."""
    return f"{announcement.job_id}-{announcement.channel}"
