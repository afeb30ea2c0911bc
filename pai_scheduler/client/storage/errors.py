"""Why the storage did not do something: what WebHDFS answers, and the sentence for people."""

from __future__ import annotations

import httpx

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.i18n import Message


class FilesError(Exception):
    """The storage answered, and refused. `exception` is WebHDFS's name for it (`FileNotFoundException`)."""

    def __init__(self, status: int, exception: str, message: Message | str) -> None:
        super().__init__(str(message))
        self.status = status
        self.exception = exception
        self._message = message

    def in_locale(self, locale: str) -> str:
        """Return the sentence; what the scheduler wrote is in the language that the client asked for."""
        return self._message.in_locale(locale) if isinstance(self._message, Message) else self._message

    @property
    def may_pass(self) -> bool:
        """Return whether it may go better when it is tried again: the storage is there, but not ready."""
        return self.status in (429, 502, 503, 504)

    @property
    def concerns_all(self) -> bool:
        """Return whether the next file would fare no better: storage not ready or full, token unknown."""
        return self.may_pass or self.status in (401, 507)


def raise_for(response: httpx.Response) -> None:
    """Raise what an answer says: FilesError, or UnreachableError of a standby."""
    if not response.is_error:
        return
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    refusal = body.get("RemoteException")
    if not isinstance(refusal, dict):
        # where the storage was not reached, the scheduler answers as everywhere else
        refusal = {"exception": body.get("code"), "message": body.get("message")}
    if "StandbyError" in body.values() or refusal["exception"] == "StandbyException":
        raise UnreachableError(str(refusal["message"]))
    raise FilesError(
        response.status_code,
        str(refusal.get("exception") or "UnknownError"),
        str(refusal.get("message") or f"{response.status_code} {response.reason_phrase}"),
    )
