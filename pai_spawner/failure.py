"""How a person learns why a server did not start."""

from __future__ import annotations

import html

from jupyterhub.spawner import SpawnException

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.i18n import LOCALES

from .ending import End, Ending, now_ms
from .following import EXITED, STOPPED, ServerFailed
from .messages import msg


class ServerNotStarted(SpawnException):  # type: ignore[misc]  # jupyterhub has no types
    """Why a server does not start, in the person's own language, with the last lines of its log beside it."""

    def __init__(self, message: str, *, reason: str, log: str = "", status_code: int = 400) -> None:
        super().__init__(
            message, reason=reason, log_message=f"{message}\n{log}".strip(), status_code=status_code
        )
        # these two are what the Hub's pages show
        self.jupyterhub_message = f"{message}\n{log}".strip()
        if log:
            self.jupyterhub_html_message = (
                f"<p>{html.escape(message)}</p><pre class='text-start'>{html.escape(log)}</pre>"
            )


Problem = ServerFailed | ServerNotStarted | ApiError | UnreachableError


def ending_of_start(error: Problem, locale: str) -> Ending | None:
    """Return how a start came to its end; None where its job knows that better.

    `locale`: in which it was begun. Who reads it may read another language, in which all is kept that is
    known in it: what the scheduler has refused is known in this one.
    """
    if isinstance(error, ServerFailed) and error.reason in (EXITED, STOPPED):
        return None
    log = error.log if isinstance(error, ServerFailed) else ""
    known = (locale,) if isinstance(error, ServerNotStarted | ApiError) else LOCALES
    why = {one: not_started(error, one).message for one in known}
    return Ending(End.NOT_STARTED, now_ms(), why=why, log=log)


def not_started(error: Problem, locale: str) -> ServerNotStarted:
    """Put what went wrong into the words, and the status, that the Hub shows."""
    if isinstance(error, ServerNotStarted):
        return error
    if isinstance(error, ServerFailed):
        message = error.message.in_locale(locale)
        return ServerNotStarted(message, reason=error.reason, log=error.log, status_code=500)
    if isinstance(error, ApiError):
        return ServerNotStarted(error.message, reason=error.code, status_code=error.status)
    message = msg(
        "The scheduler does not answer. Try again in a minute, or tell your administrator."
    ).in_locale(locale)
    return ServerNotStarted(message, reason="unreachable", status_code=503)
