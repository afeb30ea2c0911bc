"""The server extension: settings, and the routes it adds to jupyter_server."""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from tornado.routing import PathMatches, Rule
from traitlets import Bool, Dict, Unicode, default

from pai_labextension.kernels.setup import begin_job_kernels, use_job_kernels
from pai_labextension.session.address import session_address
from pai_labextension.session.disk_full import say_when_full
from pai_labextension.session.memory import watch_kernel_memory
from pai_scheduler.rest.address import DEFAULT_URL

from .lazy_routes import LateRoutes, RouteSettings
from .own_python import use_own_packages

if TYPE_CHECKING:
    from pai_labextension.webapp.program import WebProgram

#: What answers below `<base_url>/pai/`: the module that knows how, and where. Loaded when first asked for.
_PARTS = (
    (".proxy.handlers", "api|webhdfs|stream"),
    (".runs.code_handlers", "code-plan|submit-with-code"),
    (".job_editor.handlers", "job-editor"),
    (".kernels.handlers", "kernels"),
    (".session.memory_handlers", "memory"),
    (".runs.handlers", "run-plan|run-file"),
    (".tasks.handlers", "connect|ports|ports-absolute|terminals"),
    (".webapp.serving", "service"),
    (".session.handlers", "session"),
)
#: Names of the page's options that `ui/lab` reads.
OWN_JOB_OPTION, STORAGE_OPTION = "paiJobName", "paiStorageUri"
OWN_LIMITS_OPTION, SESSIONS_OPTION = "paiLimits", "paiSessions"
#: What this server may use, by the names that the front end reads.
_LIMITS = {
    "cpus": "PAI_CURRENT_TASK_ROLE_CPU_COUNT",
    "memoryMB": "PAI_CURRENT_TASK_ROLE_MEM_MB",
    "gpus": "PAI_CURRENT_TASK_ROLE_GPU_COUNT",
}


class PAIExtension(ExtensionApp):
    """Serves the browser the scheduler's API and storage under `<base_url>/pai/`."""

    name = "pai_labextension"
    description = "GPU notebooks and distributed jobs: the scheduler's API for JupyterLab"
    load_other_extensions = True

    api_url = Unicode(
        help="Where the scheduler is, without /api/v1. Default: $PAI_API_URL, then this machine's port 9186."
    ).tag(config=True)
    token = Unicode(
        help="The user's own token. Default: $PAI_TOKEN, then $JUPYTERHUB_API_TOKEN.",
    ).tag(config=True)
    service = Dict(
        help="""The web program that opens in this server instead of JupyterLab; empty: none.

        `title`, `command` (with `{port}`, `{unix_socket}`, `{base_url}` and `{prefix}`), `strip_prefix` and
        `start_seconds`. The spawner sets it, as a profile's `service` says.
        """
    ).tag(config=True)
    own_packages = Bool(
        True,
        help="""Whether pip in kernels and terminals installs into an environment in the home.

        That is so in tasks of the scheduler, and where the server's own environment is read-only.
        """,
    ).tag(config=True)
    _program: WebProgram | None = None

    @default("api_url")
    def _default_api_url(self) -> str:
        return os.environ.get("PAI_API_URL") or DEFAULT_URL

    @default("token")
    def _default_token(self) -> str:
        return os.environ.get("PAI_TOKEN") or os.environ.get("JUPYTERHUB_API_TOKEN") or ""

    def _link_jupyter_server_extension(self, serverapp: ServerApp) -> None:
        """Have terminals begin with this server's environment, unless the person has chosen a shell.

        Behind a Hub jupyter_server starts login shells, and on Debian those have a PATH without what a job's
        environment has there: `pai`, the `ssh` that knows the job's tasks, what the image brings.
        """
        # jupyter_server calls this hook by this name, before it makes its terminals; later ones are too late
        super()._link_jupyter_server_extension(serverapp)
        if self.own_packages:
            use_own_packages(serverapp)
        use_job_kernels(serverapp)
        say_when_full(serverapp)
        self._serve(serverapp)
        shell = os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"
        ours = {"shell_command": [shell]}
        serverapp.terminado_settings = {**ours, **serverapp.terminado_settings}

    def _serve(self, serverapp: ServerApp) -> None:
        if not self.service:
            return
        try:
            from pai_labextension.webapp.serving import serve  # few servers need it
        except ImportError as error:
            raise SystemExit(
                f"This image cannot serve {self.service['title']} ({error}): "
                "install pai-for-jupyter[services] in it."
            ) from error
        self._program = serve(serverapp, self.service)

    def initialize_handlers(self) -> None:
        """Add the routes; what answers there is loaded when somebody asks."""
        self._routes: list[LateRoutes] = []
        if self.serverapp is None:
            return
        settings = RouteSettings(self.api_url, self.token, self.serverapp.root_dir, self.serverapp.base_url)
        application = self.serverapp.web_app
        self._routes = [LateRoutes(application, module, settings) for module, _ in _PARTS]
        begin_job_kernels(self.serverapp)
        watch_kernel_memory(self.serverapp)
        application.add_handlers(  # type: ignore[no-untyped-call]
            ".*$",
            [
                Rule(PathMatches(rf"{re.escape(settings.base_url)}pai/(?:{names})(?:/.*)?"), routes)
                for (_, names), routes in zip(_PARTS, self._routes, strict=True)
            ],
        )

    def initialize_settings(self) -> None:
        """Configure the front end: which job this server is (empty: none) and what it may use, how tasks name
        the storage, whether somebody watches over this server.
        """
        if self.serverapp is None:
            return
        # shared with JupyterLab, whichever of the two is loaded first
        page = self.serverapp.web_app.settings.setdefault("page_config_data", {})
        page[OWN_JOB_OPTION] = os.environ.get("PAI_JOB_NAME", "")
        limits = {name: os.environ.get(variable, "") for name, variable in _LIMITS.items()}
        page[OWN_LIMITS_OPTION] = json.dumps(
            {name: int(value) for name, value in limits.items() if value.isdigit()}
        )
        page[SESSIONS_OPTION] = "true" if session_address(os.environ) else ""
        if self._program is not None:
            self.serverapp.web_app.settings["pai_service"] = self._program
            self.serverapp.io_loop.add_callback(self._program.start)
        page[STORAGE_OPTION] = (os.environ.get("PAI_DEFAULT_FS_URI") or self.api_url).rstrip("/")

    async def stop_extension(self) -> None:
        """Close the connections to the scheduler, and to tasks, and end the service."""
        if self._program is not None:
            await self._program.close()
        for routes in self._routes:
            await routes.close()
