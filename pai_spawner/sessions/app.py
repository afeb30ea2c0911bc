"""The service's routes."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from jupyterhub.services.auth import HubOAuthCallbackHandler
from tornado.web import Application, StaticFileHandler

from .handlers import (
    SESSION_PATH,
    Context,
    EndHandler,
    KeepSessionHandler,
    MessageHandler,
    SessionHandler,
    SessionsHandler,
)
from .page_handlers import ActionHandler, PageHandler


def make_app(context: Context, cookie_secret: bytes) -> Application:
    """Make the application below the service's prefix."""
    prefix, given = context.prefix, {"context": context}
    static = Path(str(resources.files(__package__).joinpath("static")))
    return Application(
        [
            (prefix, PageHandler, given),
            (prefix + "actions", ActionHandler, given),
            (prefix + "api/sessions", SessionsHandler, given),
            (prefix + SESSION_PATH, SessionHandler, given),
            (prefix + SESSION_PATH + "/keep", KeepSessionHandler, given),
            (prefix + SESSION_PATH + "/end", EndHandler, given),
            (prefix + SESSION_PATH + "/messages", MessageHandler, given),
            (prefix + "static/(.*)", StaticFileHandler, {"path": str(static)}),
            (prefix + "oauth_callback", HubOAuthCallbackHandler),
        ],
        cookie_secret=cookie_secret,
    )
