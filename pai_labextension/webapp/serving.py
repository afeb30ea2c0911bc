"""The proxy of a profile's web program: its status page while it starts or has failed, its handlers."""

from __future__ import annotations

import json
import signal
from html import escape
from http import HTTPStatus
from typing import Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.serverapp import ServerApp
from jupyter_server_proxy.config import ServerProcess
from jupyter_server_proxy.handlers import NamedLocalProxyHandler
from tornado import web
from traitlets import Instance

from pai_labextension.base_handlers import PAIHandler
from pai_labextension.callers import RefusedError
from pai_labextension.lazy_routes import RouteGroup, RouteSettings
from pai_labextension.messages import counted, msg
from pai_scheduler.i18n import Message, choose_locale

from .program import PATH, SETTING, Command, ProgramPhase, WebProgram

# What is said of a service that does not answer.


def title_of(program: WebProgram) -> Message:
    """Say what it does, in a few words."""
    title = program.command.title
    match program.state:
        case ProgramPhase.STARTING:
            return msg("{title} is starting", title=title)
        case ProgramPhase.FAILED:
            return msg("{title} did not start", title=title)
        case ProgramPhase.ENDED:
            return msg("{title} has ended", title=title)
    return msg("{title} is running", title=title)


def sentence_of(program: WebProgram) -> Message:
    """Say why it does not answer."""
    code, seconds = program.exit_code, program.command.start_seconds
    if program.state is ProgramPhase.STARTING:
        return msg("It is shown here as soon as it answers.")
    if program.reason:
        return msg("It cannot be started: {reason}", reason=program.reason)
    if code is None:
        return counted(
            "It did not answer within {count} second, and was ended.",
            "It did not answer within {count} seconds, and was ended.",
            count=seconds,
        )
    if code == -signal.SIGKILL:
        return msg(
            "It was ended by signal 9. Where nobody sent that, the memory was not enough: choose more at the "
            "server's next start."
        )
    if code < 0:
        return msg("It was ended by signal {number}.", number=-code)
    return msg("It ended by itself, with exit code {code}.", code=code)


# The page at a service's address while it does not answer: what it does, and how it is started again.

#: Seconds after which the page of a starting service looks again.
_AGAIN_SECONDS = 1
HEADERS = (
    ("Cache-Control", "no-store"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'self'",
    ),
    ("X-Content-Type-Options", "nosniff"),
)
_PAGE = """<!DOCTYPE html>
<html lang="{lang}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title}</title>{again}
<style>
:root {{color-scheme: light dark}}
body {{font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 12vh auto; padding: 0 1rem}}
h1 {{font-size: 1.5rem; overflow-wrap: anywhere}}
h2 {{font-size: 1rem; margin-bottom: .25rem}}
pre {{white-space: pre-wrap; overflow-wrap: anywhere; font-size: .8rem}}
pre {{border: 1px solid; border-radius: .5rem; padding: .75rem}}
button {{font: inherit; padding: .5rem 1rem; border: 0; border-radius: .4rem; cursor: pointer}}
button {{background: #1558c0; color: #fff}}
form, a {{display: inline-block; margin: .5rem 1rem .5rem 0}}
</style></head>
<body><main><h1>{title}</h1><p role="status">{sentence}</p>{log}{actions}</main></body></html>
"""


def page(program: WebProgram, locale: str, *, start_url: str, lab_url: str, xsrf: str) -> str:
    """Make the page in a language.

    `start_url`: where a click starts the service; `xsrf`: the token that shows that it was a click.
    """
    starting = program.state is ProgramPhase.STARTING
    return _PAGE.format(
        lang=locale.replace("_", "-"),
        title=escape(title_of(program).in_locale(locale)),
        sentence=escape(sentence_of(program).in_locale(locale)),
        again=f'<meta http-equiv="refresh" content="{_AGAIN_SECONDS}">' if starting else "",
        log="" if starting else _log(program.log, locale),
        actions="" if starting else _actions(locale, start_url, lab_url, xsrf),
    )


def _log(log: str, locale: str) -> str:
    if not log:
        return f"<p>{escape(msg('It has written nothing.').in_locale(locale))}</p>"
    heading = msg("The last lines that it wrote").in_locale(locale)
    return f"<h2>{escape(heading)}</h2><pre>{escape(log)}</pre>"


def _actions(locale: str, start_url: str, lab_url: str, xsrf: str) -> str:
    again, look = msg("Start it again"), msg("Look around in JupyterLab")
    return (
        f'<form method="post" action="{escape(start_url)}">'
        f'<input type="hidden" name="_xsrf" value="{escape(xsrf)}">'
        f"<button>{escape(again.in_locale(locale))}</button></form>"
        f'<a href="{escape(lab_url)}">{escape(look.in_locale(locale))}</a>'
    )


# Gives `jupyter-server-proxy` the service: it passes on what the program answers, which is watched here.
#
# Its own supervision starts a program at the first request, again and again where that ends with an error,
# and says nothing of it but "could not start in time".

#: Seconds within which the end of a program is noticed that answered no more.
_NOTICED_WITHIN = 0.5


class ServiceHandler(NamedLocalProxyHandler):  # type: ignore[misc]  # jupyter-server-proxy has no types
    """Passes requests and WebSockets on while the program answers, else says why it does not."""

    def initialize(self, program: WebProgram) -> None:
        """Take the program."""
        self._program = program

    @property
    def port(self) -> int:
        """Return where it listens; 0: on a socket."""
        return self._program.port

    @property
    def unix_socket(self) -> str | None:
        """Return the socket on which it listens, where it does."""
        return self._program.unix_socket

    async def prepare(self, *args: Any, **kwargs: Any) -> None:
        """Let in who may come in, and go on only where there is somebody to go to."""
        await super().prepare(*args, **kwargs)
        if not self._finished and self._program.state is not ProgramPhase.ANSWERS:
            self._tell()

    def get_client_uri(self, protocol: str, host: str, port: int, _path: str) -> str:
        """Return where the program is asked: with the path as the browser wrote it.

        `jupyter-server-proxy` would encode a second time what is encoded in the server's own address.
        """
        path = self.request.path
        if not self.absolute_url:
            path = path.removeprefix(self._program.command.prefix) or "/"
        query = f"?{self.request.query}" if self.request.query else ""
        return f"{protocol}://{host}:{port}{path}{query}"

    async def proxy(self, port: int, path: str) -> None:
        """Pass a request on."""
        try:
            await super().proxy(port, path)
        except web.HTTPError:
            # it may have died of this request
            if not await self._program.ended_within(_NOTICED_WITHIN):
                raise
            self._tell()

    def _tell(self) -> None:
        locale = choose_locale(self.request.headers.get("Accept-Language", ""))
        self.clear()
        self.set_status(HTTPStatus.SERVICE_UNAVAILABLE)
        for name, value in HEADERS:
            self.set_header(name, value)
        if "text/html" not in self.request.headers.get("Accept", ""):
            title, sentence = title_of(self._program), sentence_of(self._program)
            self.set_header("Content-Type", "application/json")
            self.finish(json.dumps({"message": f"{title.in_locale(locale)}. {sentence.in_locale(locale)}"}))
            return
        self.finish(
            page(
                self._program,
                locale,
                start_url=f"{self.base_url}pai/service",
                lab_url=f"{self.base_url}lab",
                xsrf=self.xsrf_token.decode(),
            )
        )


class _ServiceProcess(ServerProcess):  # type: ignore[misc]  # jupyter-server-proxy has no types
    """Source of the routes of `jupyter-server-proxy`, and of the tile in JupyterLab's launcher."""

    program = Instance(WebProgram)

    def get_proxy_base_class(self) -> tuple[type, dict[str, Any]]:
        return ServiceHandler, {"program": self.program}

    def get_proxy_attributes(self) -> dict[str, Any]:
        given: dict[str, Any] = super().get_proxy_attributes()
        return {name: value for name, value in given.items() if name not in ("port", "unix_socket")}

    def __deepcopy__(self, _memo: Any) -> _ServiceProcess:
        # traitlets copies what stands in a configuration; there is one program
        return self


def serve(server: ServerApp, raw: Any) -> WebProgram:
    """Have a server pass requests on to the service that the spawner tells; the program is started later.

    To be called before `jupyter-server-proxy` makes its routes.
    """
    command = Command.read(raw, f"{server.base_url}{PATH}")
    program = WebProgram(command)
    process = _ServiceProcess(
        name=PATH,
        program=program,
        absolute_url=command.keeps_prefix,
        launcher_entry={"title": command.title},
    )
    server.config.ServerProxy.servers.update({PATH: process})
    return program


# `<base_url>/pai/service`: what the service of this server does, and how it is started again.


class ServiceStateHandler(PAIHandler):
    """Answers with `ProgramState`; a POST, which a person's click makes, starts the program again."""

    # the spawner and the Hub ask, which is no use of the server
    _track_activity = False

    @web.authenticated
    @authorized
    def get(self) -> None:
        """Say what it does."""
        self.set_header("Content-Type", "application/json")
        self.set_header("Cache-Control", "no-store")
        self.finish(json.dumps(self._program.told))

    @web.authenticated
    @authorized
    def post(self) -> None:
        """Start it, unless it runs, and show it."""
        self._program.start()
        self.redirect(f"{self.base_url}{PATH}/", status=HTTPStatus.SEE_OTHER)

    @property
    def _program(self) -> WebProgram:
        program = self.settings.get(SETTING)
        if not isinstance(program, WebProgram):
            raise RefusedError(HTTPStatus.NOT_FOUND, msg("No service opens in this server."))
        return program


# The route of the service that opens in this server.


def make_part(settings: RouteSettings) -> RouteGroup:  # noqa: ARG001 - nobody is asked
    """Make the route."""
    return RouteGroup([(r"/pai/service", ServiceStateHandler, {})], _close_nothing)


async def _close_nothing() -> None:
    """Nothing is open; the server ends the program itself."""
