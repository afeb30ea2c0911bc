"""Puts the handlers at their addresses, under whatever prefix the Hub gives us."""

from __future__ import annotations

import logging
import re

from tornado.web import Application, RequestHandler

from . import (
    account,
    cluster,
    events,
    jobs,
    logs,
    monitoring,
    openapi,
    public_keys,
    queue,
    ssh_access,
    ssh_gateway,
)
from .base_handlers import ApiHandler, HandlerContext, Route, UnknownPath
from .server import STREAMED
from .webhdfs.handlers import BASE, OPENPAI_BASE, WebHdfsHandler

_access_log = logging.getLogger("pai_scheduler.access")

#: Every address below `/api/v1`; openapi.yaml describes each.
ROUTES: tuple[Route, ...] = tuple(
    route
    for part in (account, openapi, jobs, ssh_access, public_keys, queue, events, logs, monitoring, cluster)
    for route in part.ROUTES
)


def make_app(context: HandlerContext) -> Application:
    """Make the application that answers under `context.prefix`."""
    settings = {"context": context}
    prefix = re.escape(context.prefix)
    # where OpenPAI's own proxy had it
    bases = ("api/v1", "rest-server/api/v1") if context.openpai_compat else ("api/v1",)
    routes = [(rf"{prefix}{base}{path}/?", handler, settings) for base in bases for path, handler in ROUTES]
    routes += [
        (rf"{prefix}{path}", handler, settings)
        for path, handler in [
            ("healthz", account.HealthHandler),
            *monitoring.INNER_ROUTES,
            *ssh_gateway.INNER_ROUTES,
        ]
    ]
    # the whole path is one argument, which tornado is not to decode
    webhdfs = "|".join([BASE, OPENPAI_BASE] if context.openpai_compat else [BASE])
    streamed = rf"{prefix}(?:{webhdfs})(?:/.*)?"
    routes.append((streamed, WebHdfsHandler, settings))
    app = Application(
        routes,
        default_handler_class=UnknownPath,
        default_handler_args=settings,
        log_function=_log_request,
    )
    app.settings[STREAMED] = re.compile(streamed)
    return app


def _log_request(handler: RequestHandler) -> None:
    """Log what went wrong loudly, what was refused quietly, what worked only on request; count it all."""
    status, took = handler.get_status(), handler.request.request_time()
    if isinstance(handler, ApiHandler):
        handler.service.monitor.answered(type(handler).__name__, status, took if handler.timed else None)
    level = logging.DEBUG if status < 400 else logging.INFO if status < 500 else logging.ERROR
    request = handler.request
    principal = handler.identified if isinstance(handler, ApiHandler) else None
    about = {
        "method": request.method,
        "path": request.path,
        "status": status,
        "ms": round(1000 * took, 1),
        "user": principal.name if principal else None,
    }
    _access_log.log(level, "request", extra=about)
