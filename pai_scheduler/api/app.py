"""Puts the handlers at their addresses, under whatever prefix the Hub gives us."""

from __future__ import annotations

import re

from tornado.web import Application

from pai_scheduler.api.webhdfs.operations import WebHdfsHandler

from . import account, monitoring, ssh
from .account import AS_JSON, AS_YAML
from .answering import log_request
from .base import HandlerContext, UnknownPath
from .http_server import STREAMED
from .openapi import as_json, as_yaml
from .routes import ROUTES
from .webhdfs.request import storage_paths


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
            *ssh.INNER_ROUTES,
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
    app.settings.update({STREAMED: storage, AS_YAML: as_yaml, AS_JSON: as_json})
    return app
