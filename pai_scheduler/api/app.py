"""Puts the handlers at their addresses, under whatever prefix the Hub gives us."""

from __future__ import annotations

import logging
import re

from tornado.web import Application, RequestHandler

from . import account, cluster, events, jobs, logs, openapi
from .desk import Desk, Route, UnknownPath

_access_log = logging.getLogger("pai_scheduler.access")

#: Every address below `/api/v1`; openapi.yaml describes each.
ROUTES: tuple[Route, ...] = tuple(
    route for part in (account, openapi, jobs, events, logs, cluster) for route in part.ROUTES
)


def make_app(desk: Desk) -> Application:
    """Make the application that answers under `desk.prefix`."""
    settings = {"desk": desk}
    prefix = re.escape(desk.prefix)
    routes = [(rf"{prefix}api/v1{path}/?", handler, settings) for path, handler in ROUTES]
    routes.append((rf"{prefix}healthz", account.HealthHandler, settings))
    return Application(
        routes,
        default_handler_class=UnknownPath,
        default_handler_args=settings,
        log_function=_log_request,
    )


def _log_request(handler: RequestHandler) -> None:
    """Log what went wrong loudly, what was refused quietly, what worked only on request."""
    status = handler.get_status()
    level = logging.DEBUG if status < 400 else logging.INFO if status < 500 else logging.ERROR
    request = handler.request
    caller = getattr(handler, "caller", None)
    _access_log.log(
        level,
        "%s %s %d %.1f ms user=%s",
        request.method,
        request.path,
        status,
        1000 * request.request_time(),
        caller.name if caller else "-",
    )
