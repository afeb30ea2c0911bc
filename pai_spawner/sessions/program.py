"""The program `pai-sessions`: a service that the Hub starts, which watches over its notebook servers."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from tornado.httpserver import HTTPServer
from tornado.web import Application, RedirectHandler

from pai_scheduler.client.rest import Client

from .culler import Records, SessionKeeper, asker
from .handlers import (
    SESSION_PATH,
    Context,
    EndHandler,
    KeepSessionHandler,
    MessageHandler,
    SessionHandler,
    SessionsHandler,
    StrangersHandler,
)
from .hub_client import HubClient
from .policy_file import PolicyError, PolicySource

# The service's routes.


def make_app(context: Context) -> Application:
    """Make the application below the service's prefix."""
    prefix, given = context.prefix, {"context": context}
    return Application(
        [
            # (where the administrators' page was, people have bookmarks)
            (prefix, RedirectHandler, {"url": context.console_url + "admin", "permanent": False}),
            (prefix + "api/sessions", SessionsHandler, given),
            (prefix + "api/strangers", StrangersHandler, given),
            (prefix + SESSION_PATH, SessionHandler, given),
            (prefix + SESSION_PATH + "/keep", KeepSessionHandler, given),
            (prefix + SESSION_PATH + "/end", EndHandler, given),
            (prefix + SESSION_PATH + "/messages", MessageHandler, given),
        ]
    )


_log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until told to end; gives the exit status."""
    parser = argparse.ArgumentParser(
        prog="pai-sessions",
        description="Watches over the notebook servers of a Hub, whose managed service it is: ends idle "
        "ones, and warns before.",
    )
    parser.add_argument("--policy", type=Path, required=True, metavar="FILE", help="what holds for sessions")
    parser.add_argument(
        "--data-dir", type=Path, required=True, metavar="DIR", help="where it remembers what users put off"
    )
    parser.add_argument(
        "--scheduler-url", required=True, metavar="URL", help="the scheduler, without /api/v1"
    )
    parser.add_argument(
        "--console-url",
        metavar="URL",
        default=os.environ.get("JUPYTERHUB_BASE_URL", "/") + "services/pai-console/",
        help="the console, where administrators find all sessions; default: at the Hub's own address",
    )
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="[%(levelname).1s %(asctime)s %(name)s] %(message)s")
    try:
        policy = PolicySource(given.policy)
    except PolicyError as error:
        print(f"pai-sessions: {error}", file=sys.stderr)
        return 1
    missing = [
        name for name in ("JUPYTERHUB_API_TOKEN", "JUPYTERHUB_SERVICE_URL") if not os.environ.get(name)
    ]
    if missing:
        print(f"pai-sessions: the Hub has to start it; {missing[0]} is not set.", file=sys.stderr)
        return 1
    given.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    asyncio.run(_serve(policy, given.data_dir, given.scheduler_url, given.console_url))
    return 0


async def _serve(policy: PolicySource, data_dir: Path, scheduler_url: str, console_url: str) -> None:
    token = os.environ["JUPYTERHUB_API_TOKEN"]
    address = urlsplit(os.environ["JUPYTERHUB_SERVICE_URL"])
    async with (
        aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as http,
        Client(scheduler_url, token) as scheduler,
    ):
        hub = HubClient(os.environ["JUPYTERHUB_API_URL"], token, http)
        keeper = SessionKeeper(
            hub,
            scheduler,
            policy,
            Records(data_dir / "sessions.json"),
            asker(http),
            lambda: datetime.now(UTC),
        )
        context = Context(
            hub,
            keeper,
            os.environ.get("JUPYTERHUB_SERVICE_PREFIX", "/services/pai-sessions/"),
            console_url,
        )
        server = HTTPServer(make_app(context), xheaders=True)
        server.listen(address.port or 0, address.hostname or "127.0.0.1")
        _log.info("listening at port %s", address.port)
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        watching = asyncio.create_task(keeper.run())
        await ended.wait()
        watching.cancel()
        server.stop()
        await asyncio.gather(watching, return_exceptions=True)
