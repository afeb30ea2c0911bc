"""Answers of a standby: that it is one, and whom to ask instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tornado.web import Application, RequestHandler

from pai_scheduler.api.webhdfs.request import remote_exception
from pai_scheduler.i18n import choose_locale, msg
from pai_scheduler.service.health import Status

from .webhdfs.request import BASE


def make_standby_app(prefix: str, leader: Callable[[], str]) -> Application:
    """Make the application that answers while another service leads; `leader` gives that one's address."""
    here = re.escape(prefix)
    settings = {"leader": leader}
    return Application(
        [
            (rf"{here}(?:api/v1/)?healthz/?", _HealthHandler),
            (rf"{here}readyz", _ReadyHandler, settings),
            (rf"{here}{BASE}(?:/.*)?", _WebHdfsHandler, settings),
        ],
        default_handler_class=_StandbyHandler,
        default_handler_args=settings,
        log_function=lambda _: None,
    )


class _Handler(RequestHandler):
    def answer(self, status: int, body: dict[str, Any]) -> None:
        self.clear_header("Server")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        self.set_status(status)
        self.finish(json.dumps(body, ensure_ascii=False).encode())


class _HealthHandler(_Handler):
    """`/healthz`: this process answers."""

    async def get(self) -> None:
        self.answer(200, {"status": "standby"})


class _StandbyHandler(_Handler):
    """Everything else, with any method, from anybody."""

    def initialize(self, leader: Callable[[], str]) -> None:
        self._leader = leader

    async def prepare(self) -> None:
        address = self._leader()
        if address:
            message = msg("This scheduler is a standby. The one that leads is at {address}.", address=address)
        else:
            message = msg("This scheduler is a standby, and none leads at present. Try again in seconds.")
        locale = choose_locale(self.request.headers.get("Accept-Language", ""))
        self.set_header("Retry-After", "5")
        self.answer(503, self.body(message.in_locale(locale)))

    def body(self, message: str) -> dict[str, Any]:
        return {"code": "StandbyError", "message": message}


class _WebHdfsHandler(_StandbyHandler):
    """`/webhdfs/v1/…`: clients that know several addresses go on to the next."""

    def body(self, message: str) -> dict[str, Any]:
        return {**super().body(message), **remote_exception("StandbyException", message)}


class _ReadyHandler(_StandbyHandler):
    """`/readyz`: it is not, but all is well."""

    def body(self, message: str) -> dict[str, Any]:
        return {"status": Status.STANDBY.value, "reasons": [message]}
