"""Why a file cannot run as a job."""

from __future__ import annotations

from pai_scheduler.i18n import Message


class RunError(Exception):
    """It cannot run; `message` says why and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message
