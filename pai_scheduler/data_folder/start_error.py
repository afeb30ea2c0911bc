"""Errors that keep the scheduler from starting: one sentence with the reason and the remedy."""

from __future__ import annotations

from pai_scheduler.i18n import Message


class StartError(Exception):
    """The scheduler cannot start; `message` says why and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message
