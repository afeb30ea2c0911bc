"""Requests of people: the language of the answer, how one is refused, with whose token one asks further."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any

from tornado import web

from pai_scheduler.i18n import Message, choose_locale

#: The job contract's names for what is refused here already.
_CODES = {
    HTTPStatus.BAD_REQUEST: "InvalidParametersError",
    HTTPStatus.UNAUTHORIZED: "UnauthorizedUserError",
    HTTPStatus.FORBIDDEN: "ForbiddenUserError",
    HTTPStatus.NOT_FOUND: "NoApiError",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowedError",
    HTTPStatus.BAD_GATEWAY: "SchedulerUnreachable",
}


class RefusedError(web.HTTPError):
    """A request that is not done, with a sentence in the reader's language; `again`: it may be soon."""

    def __init__(
        self,
        status: int,
        message: Message | str,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        again: bool = False,
    ) -> None:
        super().__init__(status)
        self.message, self.again = message, again
        self.headers = headers

    def sentence(self, locale: str) -> str:
        """Return why it is not done."""
        return self.message.in_locale(locale) if isinstance(self.message, Message) else self.message


class PersonHandler(web.RequestHandler):
    """Answers a person, and refuses with `{"code", "message"}`.

    A notebook server has one person, the console many: each request asks here what it needs of its own.
    """

    @property
    @abstractmethod
    def caller_token(self) -> str:
        """Return the person's token for the scheduler; empty: they have none."""

    @abstractmethod
    async def check_permission(self, action: str | None) -> None:
        """Refuse who may not do this."""

    @property
    def locale_asked(self) -> str:
        """Return the language of the request."""
        return choose_locale(self.request.headers.get("Accept-Language", ""))

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """Return what is wrong as the API does."""
        error = (kwargs.get("exc_info") or (None, None))[1]
        status = HTTPStatus(status_code) if status_code in set(HTTPStatus) else HTTPStatus.BAD_GATEWAY
        # Tornado closes the connection of a request that it has not read through. Unless the Hub's proxy is
        # told, it sends the next request there, and that one fails.
        self.set_header("Connection", "close")
        if isinstance(error, RefusedError):
            message = error.sentence(self.locale_asked)
            for name, value in error.headers.items():
                self.set_header(name, value)
        else:
            message = getattr(error, "log_message", None) or status.phrase
        self.finish_error(status, message, again=isinstance(error, RefusedError) and error.again)

    def finish_error(self, status: HTTPStatus, message: str, *, again: bool) -> None:  # noqa: ARG002
        """Write a refusal; `again`: asking again may help."""
        self.set_header("Content-Type", "application/json")
        self.finish({"code": _CODES.get(status, "UnknownError"), "message": message})
