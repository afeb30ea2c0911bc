"""Puts the handlers at their addresses, under whatever prefix the Hub gives us."""

from __future__ import annotations

import re

from tornado.web import Application

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
from .answering import log_request
from .base_handlers import HandlerContext, Route, UnknownPath
from .server import STREAMED
from .webhdfs.handlers import WebHdfsHandler
from .webhdfs.request import storage_paths

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
    storage = storage_paths(context.prefix, openpai_compat=context.openpai_compat)
    routes.append((storage.pattern, WebHdfsHandler, settings))
    app = Application(
        routes,
        default_handler_class=UnknownPath,
        default_handler_args=settings,
        log_function=log_request,
    )
    app.settings[STREAMED] = storage
    return app
