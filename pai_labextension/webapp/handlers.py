"""`<base_url>/pai/service`: what the service of this server does, and how it is started again."""

from __future__ import annotations

import json
from http import HTTPStatus

from jupyter_server.auth.decorator import authorized
from tornado import web

from pai_labextension.base_handlers import PAIHandler, RefusedError
from pai_labextension.messages import msg

from .program import PATH, SETTING, Program


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
    def _program(self) -> Program:
        program = self.settings.get(SETTING)
        if not isinstance(program, Program):
            raise RefusedError(HTTPStatus.NOT_FOUND, msg("No service opens in this server."))
        return program
