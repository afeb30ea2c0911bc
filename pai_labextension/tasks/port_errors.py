"""Why there is nothing behind a port: a sentence, and the page that shows it."""

from __future__ import annotations

from html import escape
from http import HTTPStatus

import aiohttp
import asyncssh
from asyncssh import OPEN_CONNECT_FAILED
from tornado import web

from pai_labextension.base_handlers import RefusedError
from pai_labextension.messages import msg
from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_scheduler.client.ssh.connection import RemoteError, UnreachableGatewayError

from .handlers import reason_of

#: Seconds after which a page that waits for an application looks again.
AGAIN_SECONDS = 2
ERROR_HEADERS = (
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'self'"),
    ("X-Content-Type-Options", "nosniff"),
)
_PAGE = """<!DOCTYPE html>
<html lang="{lang}"><head><meta charset="utf-8"><title>{title}</title>{again}
<style>body {{font: 16px/1.5 sans-serif; max-width: 40em; margin: 15vh auto; padding: 0 1em}}
@media (prefers-color-scheme: dark) {{body {{background: #111; color: #ddd}}}}</style></head>
<body><h1>{title}</h1><p role="status">{sentence}</p></body></html>
"""


def refusal_of(error: Exception, label: str, task: str) -> web.HTTPError | None:
    """Return the refusal for what happened on the way to a port of a task; None: that must not happen."""
    waiting = HTTPStatus.SERVICE_UNAVAILABLE
    match error:
        case web.HTTPError():
            return error
        case ApiError():
            return RefusedError(error.status, reason_of(error))
        case UnreachableGatewayError() | UnreachableError():
            return RefusedError(waiting, reason_of(error), again=True)
        case RemoteError():
            return RefusedError(waiting, reason_of(error))
        case asyncssh.ChannelOpenError() if error.code == OPEN_CONNECT_FAILED:
            sentence = msg(
                "Nothing listens on the port “{label}” of {task} yet. This page looks again by itself.",
                label=label,
                task=task,
            )
            return RefusedError(waiting, sentence, again=True)
        case asyncssh.ChannelOpenError():
            return RefusedError(HTTPStatus.FORBIDDEN, reason_of(error))
        case aiohttp.WSServerHandshakeError():
            return web.HTTPError(error.status)
        case aiohttp.ClientError() | asyncssh.Error() | OSError():
            sentence = msg(
                "What listens on the port “{label}” of {task} gave no HTTP answer: {reason}.",
                label=label,
                task=task,
                reason=str(error) or type(error).__name__,
            )
            return RefusedError(HTTPStatus.BAD_GATEWAY, sentence)
    return None


def page(sentence: str, locale: str, *, again: bool) -> str:
    """Make the page; one that looks again does so by itself."""
    title = msg("Waiting for the application") if again else msg("There is nothing to show")
    return _PAGE.format(
        lang=locale.replace("_", "-"),
        title=escape(title.in_locale(locale)),
        again=f'<meta http-equiv="refresh" content="{AGAIN_SECONDS}">' if again else "",
        sentence=escape(sentence),
    )
