"""The program `pai-console`: a service that the Hub starts, with the console for all its users."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import mimetypes
import os
import re
import secrets
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from html import escape
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from jupyterhub.services.auth import HubOAuth, HubOAuthCallbackHandler, HubOAuthenticated
from tornado.httpserver import HTTPServer
from tornado.web import Application, RequestHandler, StaticFileHandler

from pai_labextension.callers import LoginWatch, PersonHandler, PersonSocket, RefusedError, Requester
from pai_labextension.job_editor.editor_info import EditorInfoHandler
from pai_labextension.messages import msg
from pai_labextension.proxy.forwarding import Forwarding, SessionsForwarding, StorageForwarding, Upstream
from pai_labextension.proxy.stream import FollowingSocket, JoinedStreams
from pai_labextension.tasks.connect import CallerConnections, CheckHandler, CodeServerHandler, DescribeHandler
from pai_labextension.tasks.connections import NoTaskError, PerCaller, TaskName
from pai_labextension.tasks.terminals import (
    NAME_PATTERN,
    TASK_PATTERN,
    TerminalHandler,
    TerminalsHandler,
    TerminalSocket,
)

# Who asks: by the Hub's login or by a token of the Hub's, asked anew for every request.

#: Nothing but what is ours; nobody shows our pages in theirs.
_STYLES = "style-src 'self'"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        _STYLES,
        "img-src 'self' data:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)


class ConsoleAuth(HubOAuth):  # type: ignore[misc]  # jupyterhub has no types
    """The Hub's login, whose end is noticed soon; never a token in an address, which histories keep."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(cache_max_age=20, allow_token_in_url=False, **settings)

    def _get_token_url(self, handler: RequestHandler) -> str:  # noqa: ARG002
        # jupyterhub takes one from the address of a WebSocket, whatever `allow_token_in_url` says
        return ""

    async def is_there(self, token: str) -> bool:
        """Ask the Hub whether a token is still somebody's; web.HTTPError where it cannot say."""
        return await self.user_for_token(token, use_cache=False, sync=False) is not None


class ConsoleHandler(HubOAuthenticated, PersonHandler):  # type: ignore[misc]  # as above
    """Knows for each request who asks, and with which token; the Hub's checks against forged ones hold."""

    hub_auth_class = ConsoleAuth
    caller_token = ""

    async def prepare(self) -> None:
        """Find out who asks; nobody else comes further."""
        model = await self.hub_auth.get_user(self, sync=False)
        # what the Hub's own code asks for later, `current_user` among it
        self._hub_auth_user_cache = None
        if model is None:
            self.nobody()
            return
        if not self.hub_auth.check_scopes(self.hub_scopes, model):
            raise RefusedError(HTTPStatus.FORBIDDEN, msg("This token or login may not use the console."))
        self._hub_auth_user_cache = model
        self.person = str(model["name"])
        self.is_administrator = bool(model.get("admin"))
        self.caller_token = str(self.hub_auth.get_token(self) or "")

    @property
    def caller(self) -> Requester:
        """Return who asks, and with which token."""
        return Requester(self.person, self.caller_token)

    def nobody(self) -> None:
        """Refuse who has not said who they are."""
        self.set_status(HTTPStatus.FORBIDDEN)
        # (as in `write_error`: the body was not read)
        self.set_header("Connection", "close")
        message = msg("Your login has expired. Load this page again to log in.").in_locale(self.locale_asked)
        self.finish({"code": "LoginExpired", "message": message})

    async def check_permission(self, action: str | None) -> None:
        """Leave it to the scheduler, which is asked with the person's own token."""

    def set_default_headers(self) -> None:
        """Keep answers out of caches, and pages out of others' frames."""
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("Content-Security-Policy", _POLICY)


class ConsoleApiHandler(Forwarding, ConsoleHandler):
    """Forwards one request to the scheduler's API, in the name of whoever asks."""

    def initialize(self, upstream: Upstream) -> None:
        """Take the way to the scheduler."""
        self._upstream = upstream


class ConsoleStorageHandler(StorageForwarding, ConsoleApiHandler):
    """Forwards one request to the storage, in the name of whoever asks."""


class ConsoleStreamSocket(FollowingSocket, ConsoleHandler, PersonSocket):
    """Follows what whoever asks may see, through one connection of a page."""

    def initialize(self, streams: JoinedStreams) -> None:
        """Take what is followed."""
        self._streams = streams

    async def receive(self, message: str | bytes) -> None:
        """Do what a message says."""
        self.take(message)


class ConsoleEditorHandler(EditorInfoHandler, ConsoleHandler):
    """Answers what the job editor is made from, by what the scheduler knows of whoever asks."""

    def initialize(self, api_url: str) -> None:
        """Note whom to ask about images."""
        self._api_url = api_url

    async def get(self) -> None:
        """Answer with `JobEditorInfo`."""
        await self.answer()


class ConsoleSessionsHandler(SessionsForwarding, ConsoleApiHandler):
    """Forwards one request to the sessions service, in the name of whoever asks."""


class ConsoleTerminalsHandler(TerminalsHandler, ConsoleHandler):
    """Lists and opens terminals in a task, in the name of whoever asks."""


class ConsoleTerminalHandler(TerminalHandler, ConsoleHandler):
    """One terminal of whoever asks."""


class ConsoleTerminalSocket(TerminalSocket, PersonSocket, ConsoleHandler):
    """Looks at a terminal of whoever asks, and types into it."""


class ConsoleDescribeHandler(DescribeHandler, ConsoleHandler):
    """Answers how whoever asks connects to a task."""


class ConsoleCheckHandler(CheckHandler, ConsoleHandler):
    """Tries a connection to a task, in the name of whoever asks."""


class ConsoleCodeServerHandler(CodeServerHandler, ConsoleHandler):
    """Starts code-server in a task of whoever asks."""


# The page, which is the same at every address: what it shows there it finds out by itself.

_PAGE = """<!DOCTYPE html>
<html lang="{language}"><head><meta charset="utf-8"><title>PAI</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="{static}{mark}" type="image/svg+xml">
<link rel="manifest" href="{static}{manifest}" crossorigin="use-credentials">
<link rel="stylesheet" href="{static}{style}">
<script type="module" src="{static}{script}"></script></head>
<body data-facts="{facts}"><noscript>{without}</noscript></body></html>
"""


#: How files are packed beside the plain ones, the better first; and what a name has that is its content's.
_PACKED = {"br": ".br", "gzip": ".gz"}
_HASH = re.compile(r"\.[0-9a-f]{8,}\.")


class ConsolePageHandler(ConsoleHandler):
    """Answers the page."""

    def initialize(self, prefix: str, hub_prefix: str, storage_root: str, files: dict[str, str]) -> None:
        """Take where the service and the Hub are, the storage's URI, and the names of the page's files."""
        self._prefix, self._hub_prefix, self._files = prefix, hub_prefix, files
        self._storage_root = storage_root

    def nobody(self) -> None:
        """Send a browser to the Hub's login, and from there back to this address."""
        self.redirect(self.get_login_url())

    async def get(self, *_path: str) -> None:
        """Answer it, with who the person is."""
        language = self.locale_asked.replace("_", "-")
        files = self._files
        facts = {
            "user": self.person,
            "administrator": self.is_administrator,
            "prefix": self._prefix,
            "hub": self._hub_prefix,
            "language": language,
            "storageRoot": self._storage_root,
            "translation": "" if language == "en" else files["translation"],
        }
        facts |= self.more_facts()
        self.set_header("Content-Type", "text/html; charset=utf-8")
        # the token by which the page's own requests are told from forged ones comes with it, as a cookie
        _ = self.xsrf_token
        self.finish(
            _PAGE.format(
                language=language,
                static=escape(self._prefix) + "static/",
                facts=escape(json.dumps(facts)),
                without=escape(msg("The console needs JavaScript.").in_locale(self.locale_asked)),
                **{name: escape(file) for name, file in files.items() if name != "translation"},
            )
        )

    def more_facts(self) -> dict[str, str]:
        """Return what this page alone is told."""
        return {}


class ConsoleTerminalPageHandler(ConsolePageHandler):
    """Answers the page at the address of a terminal: xterm writes style sheets and attributes of its own."""

    def more_facts(self) -> dict[str, str]:
        """Let styles in that know a word of this answer's, and style attributes."""
        nonce = secrets.token_urlsafe(16)
        styles = f"style-src-elem 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'"
        self.set_header("Content-Security-Policy", _POLICY.replace(_STYLES, styles))
        return {"nonce": nonce}


# What an application in a task answers runs as a page of the origin that shows it, and ours has everybody's
# login. So it is not shown here, but by the person's own notebook server, as from JupyterLab.


class ConsolePortHandler(ConsolePageHandler):
    """Leads to a port of a task below the person's notebook server, which the Hub starts if need be."""

    async def get(self, *parts: str) -> None:
        """Lead there; the parts name user, job, task and port."""
        try:
            TaskName.read(*parts[:3])
        except NoTaskError:
            raise RefusedError(HTTPStatus.NOT_FOUND, msg("There is no such task.")) from None
        if parts[3] in {".", ".."}:
            raise RefusedError(HTTPStatus.NOT_FOUND, msg("There is no such task."))
        query = f"?{self.request.query}" if self.request.query else ""
        port = "/".join(quote(part, safe="") for part in parts)
        self.redirect(f"{self._hub_prefix}user-redirect/pai/ports/{port}/{query}")


class ConsoleFileHandler(StaticFileHandler):
    """Answers the files of the page: packed where the browser takes that, and kept by it if it may."""

    async def get(self, path: str, include_body: bool = True) -> None:
        """Answer one."""
        accepted = self.request.headers.get("Accept-Encoding", "")
        for encoding, ending in _PACKED.items():
            if encoding in accepted and (Path(self.root) / (path + ending)).is_file():
                path += ending
                self.set_header("Content-Encoding", encoding)
                break
        self.set_header("Vary", "Accept-Encoding")
        await super().get(path, include_body)

    def get_content_type(self) -> str:
        """Return the type of what is packed."""
        name = self.path
        for ending in _PACKED.values():
            name = name.removesuffix(ending)
        return mimetypes.guess_type(name)[0] or "application/octet-stream"

    def set_extra_headers(self, path: str) -> None:
        """Let it be kept where another content has another name."""
        if _HASH.search(path):
            self.set_header("Cache-Control", "public, max-age=31536000, immutable")
        self.set_header("X-Content-Type-Options", "nosniff")


# The program.

_log = logging.getLogger(__name__)


#: Seconds between two signs of life of a WebSocket; proxies close one that is silent for a minute.
_PING_SECONDS = 30


def make_app(
    prefix: str,
    hub_prefix: str,
    upstream: Upstream,
    sessions: Upstream | None,
    streams: JoinedStreams,
    static: Path,
    storage_root: str,
) -> tuple[Application, Callable[[], Awaitable[None]]]:
    """Make the application below the prefix; return it, and what closes what it has opened.

    `sessions`: the sessions service, where there is one; tasks know the storage by `storage_root`, a URI.
    """
    files = json.loads((static / "files.json").read_text(encoding="utf-8"))
    logins = LoginWatch(lambda token: ConsoleAuth.instance().is_there(token))
    access = PerCaller(
        lambda caller: CallerConnections(upstream.url, caller.token, f"{prefix}ports/"),
        logins,
    )
    people = {"people": access}
    page = {
        "prefix": prefix,
        "hub_prefix": hub_prefix,
        "storage_root": storage_root.rstrip("/"),
        "files": files,
    }
    terminals, connect = f"{prefix}terminals/{TASK_PATTERN}", f"{prefix}connect/{TASK_PATTERN}"
    application = Application(
        [
            (prefix + "api/v1/(.*)", ConsoleApiHandler, {"upstream": upstream}),
            (prefix + "webhdfs/v1/(.*)", ConsoleStorageHandler, {"upstream": upstream}),
            (prefix + "stream", ConsoleStreamSocket, {"streams": streams}),
            (prefix + "job-editor", ConsoleEditorHandler, {"api_url": upstream.url}),
            *(
                [(prefix + "sessions/(.*)", ConsoleSessionsHandler, {"upstream": sessions})]
                if sessions
                else []
            ),
            (f"{terminals}/api/terminals", ConsoleTerminalsHandler, people),
            (f"{terminals}/api/terminals/({NAME_PATTERN})", ConsoleTerminalHandler, people),
            (f"{terminals}/terminals/websocket/({NAME_PATTERN})", ConsoleTerminalSocket, people),
            (connect, ConsoleDescribeHandler, people),
            (f"{connect}/check", ConsoleCheckHandler, people),
            (f"{connect}/code-server", ConsoleCodeServerHandler, people),
            (f"{prefix}ports/{TASK_PATTERN}/([^/]+)/?", ConsolePortHandler, page),
            (prefix + "static/(.*)", ConsoleFileHandler, {"path": str(static)}),
            (prefix + "oauth_callback", HubOAuthCallbackHandler),
            (prefix + "terminal/.*", ConsoleTerminalPageHandler, page),
            (prefix + "(.*)", ConsolePageHandler, page),
        ],
        cookie_secret=secrets.token_bytes(32),
        logins=logins,
        websocket_ping_interval=_PING_SECONDS,
    )
    return application, access.close


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until told to end; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="pai-console",
        description="Jobs, queue and cluster on the web for all users of a Hub, whose managed service it is.",
    )
    parser.add_argument(
        "--scheduler-url", required=True, metavar="URL", help="the scheduler, without /api/v1"
    )
    parser.add_argument(
        "--storage-uri",
        metavar="URI",
        help="the storage as tasks know it, their PAI_DEFAULT_FS_URI (default: the scheduler's own WebHDFS)",
    )
    parser.add_argument(
        "--sessions-url",
        metavar="URL",
        help="the service pai-sessions, without /api; none: no sessions",
    )
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s %(name)s] %(message)s")
    missing = [
        name for name in ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_URL") if not os.environ.get(name)
    ]
    if missing:
        print(f"pai-console: the Hub has to start it; {missing[0]} is not set.", file=sys.stderr)
        return 1
    static = Path(str(resources.files(__package__).joinpath("static")))
    if not (static / "files.json").is_file():
        print("pai-console: its pages are not built; run `make`, or install the wheel.", file=sys.stderr)
        return 1
    asyncio.run(
        _serve(given.scheduler_url, given.sessions_url, static, given.storage_uri or given.scheduler_url)
    )
    return 0


async def _serve(scheduler_url: str, sessions_url: str | None, static: Path, storage_root: str) -> None:
    address = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    upstream = Upstream(scheduler_url)
    sessions = Upstream(sessions_url) if sessions_url else None
    # (a host is named where ours is another than the Hub's)
    hub_prefix = os.environ.get("JUPYTERHUB_HOST", "") + os.environ.get("JUPYTERHUB_BASE_URL", "/") + "hub/"
    prefix = os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/services/pai-console/")
    streams = JoinedStreams(upstream)
    application, close = make_app(prefix, hub_prefix, upstream, sessions, streams, static, storage_root)
    server = HTTPServer(application, xheaders=True)
    server.listen(address.port or 0, address.hostname or "127.0.0.1")
    _log.info("listening at port %s", address.port)
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    await ended.wait()
    server.stop()
    await streams.close()
    await close()
    for each in filter(None, (upstream, sessions)):
        await each.close()
