"""Gives `jupyter-server-proxy` the service: it passes on what the program answers, which is watched here.

Its own supervision starts a program at the first request, again and again where that ends with an error, and
says nothing of it but "could not start in time".
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from jupyter_server.serverapp import ServerApp
from jupyter_server_proxy.config import ServerProcess
from jupyter_server_proxy.handlers import NamedLocalProxyHandler
from tornado import web
from traitlets import Instance

from pai_scheduler.i18n import choose_locale

from .page import HEADERS, page
from .program import PATH, Command, Program, State
from .words import sentence_of, title_of

#: Seconds within which the end of a program is noticed that answered no more.
_NOTICED_WITHIN = 0.5


class ServiceHandler(NamedLocalProxyHandler):  # type: ignore[misc]  # jupyter-server-proxy has no types
    """Passes requests and WebSockets on while the program answers, else says why it does not."""

    def initialize(self, program: Program) -> None:
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
        if not self._finished and self._program.state is not State.ANSWERS:
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
    """What `jupyter-server-proxy` makes routes of, and its tile in JupyterLab's launcher."""

    program = Instance(Program)

    def get_proxy_base_class(self) -> tuple[type, dict[str, Any]]:
        return ServiceHandler, {"program": self.program}

    def get_proxy_attributes(self) -> dict[str, Any]:
        given: dict[str, Any] = super().get_proxy_attributes()
        return {name: value for name, value in given.items() if name not in ("port", "unix_socket")}

    def __deepcopy__(self, _memo: Any) -> _ServiceProcess:
        # traitlets copies what stands in a configuration; there is one program
        return self


def serve(server: ServerApp, raw: Any) -> Program:
    """Have a server pass requests on to the service that the spawner tells; the program is started later.

    To be called before `jupyter-server-proxy` makes its routes.
    """
    command = Command.read(raw, f"{server.base_url}{PATH}")
    program = Program(command)
    process = _ServiceProcess(
        name=PATH,
        program=program,
        absolute_url=command.keeps_prefix,
        launcher_entry={"title": command.title},
    )
    server.config.ServerProxy.servers.update({PATH: process})
    return program
