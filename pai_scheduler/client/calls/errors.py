"""Errors of Python code that runs as a job."""

from __future__ import annotations

from pai_scheduler.i18n import Message


class CallError(Exception):
    """Code did not run as a job, or nothing usable came back; the sentence says why and what to do."""

    def __init__(self, message: Message, locale: str = "en") -> None:
        super().__init__(message.in_locale(locale))
        self.message = message


class NotSendableError(CallError):
    """A value or a function cannot go to the job; nothing was submitted."""


class JobFailedError(CallError):
    """The job ended before its code had: no memory, no image, stopped, a lost machine.

    `job`: its name; `state` and `exit_code`: how it ended.
    """

    def __init__(
        self,
        message: Message,
        locale: str = "en",
        *,
        job: str = "",
        state: str = "",
        exit_code: int | None = None,
    ) -> None:
        super().__init__(message, locale)
        self.job, self.state, self.exit_code = job, state, exit_code


class RemoteTraceback(Exception):
    """The traceback of an exception where it was raised, in the job: the cause of what is raised here.

    `text`: the traceback; `task`: which task raised it, for example `main-0`.
    """

    def __init__(self, text: str, task: str) -> None:
        super().__init__(text, task)
        self.text, self.task = text, task

    def __str__(self) -> str:
        return f"{self.task}\n{self.text}"
