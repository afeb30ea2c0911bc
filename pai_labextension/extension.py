"""The server extension: settings, and the routes it adds to jupyter_server."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from jupyter_server.extension.application import ExtensionApp
from jupyter_server.serverapp import ServerApp
from traitlets import Unicode, default

from pai_scheduler.client import DEFAULT_URL

from .code import CodeSubmitter
from .code_handlers import PlanHandler, SubmitHandler
from .connect import Connect
from .connect_handlers import CheckHandler, CodeServerHandler, DescribeHandler
from .handlers import ForwardHandler
from .port_handlers import PortHandler
from .ports import Ports
from .storage_handlers import StorageHandler
from .task_doors import TaskDoors
from .terminal_handlers import NAME_PATTERN, TASK_PATTERN, TerminalHandler, TerminalsHandler, TerminalSocket
from .upstream import Upstream

#: Names of the page's options that `ui/src/index.ts` reads.
OWN_JOB_OPTION, STORAGE_OPTION = "paiJobName", "paiStorageUri"


class PAIExtension(ExtensionApp):
    """Gives the browser the scheduler's API and storage under `<base_url>/pai/`."""

    name = "pai_labextension"
    description = "GPU notebooks and distributed jobs: the scheduler's API for JupyterLab"
    load_other_extensions = True

    api_url = Unicode(
        help="Where the scheduler is, without /api/v1. Default: $PAI_API_URL, then this machine's port 9186."
    ).tag(config=True)
    token = Unicode(
        help="The user's own token. Default: $PAI_TOKEN, then $JUPYTERHUB_API_TOKEN.",
    ).tag(config=True)

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
        super()._link_jupyter_server_extension(serverapp)
        shell = os.environ.get("SHELL") or shutil.which("bash") or "/bin/sh"
        ours = {"shell_command": [shell]}
        serverapp.terminado_settings = {**ours, **serverapp.terminado_settings}

    def initialize_handlers(self) -> None:
        """Add the routes."""
        self._upstream = Upstream(self.api_url, self.token)
        root = Path(self.serverapp.root_dir if self.serverapp else ".")
        submitter = CodeSubmitter(self.api_url, self.token, root)
        doors = self._doors = TaskDoors(self.api_url, self.token)
        terminals = rf"/pai/terminals/{TASK_PATTERN}"
        ports = self._ports = Ports(doors)
        port = rf"{TASK_PATTERN}/([^/]+)(/.*)?"
        base_url = self.serverapp.base_url if self.serverapp else "/"
        connect = {"connect": Connect(doors, ports, base_url)}
        self.handlers += [
            (r"/pai/api/v1/(.*)", ForwardHandler, {"upstream": self._upstream}),
            (r"/pai/webhdfs/v1/(.*)", StorageHandler, {"upstream": self._upstream}),
            (r"/pai/code-plan", PlanHandler, {"submitter": submitter}),
            (r"/pai/submit-with-code", SubmitHandler, {"submitter": submitter}),
            (rf"{terminals}/api/terminals", TerminalsHandler, {"doors": doors}),
            (rf"{terminals}/api/terminals/({NAME_PATTERN})", TerminalHandler, {"doors": doors}),
            (rf"{terminals}/terminals/websocket/({NAME_PATTERN})", TerminalSocket, {"doors": doors}),
            (rf"/pai/connect/{TASK_PATTERN}", DescribeHandler, connect),
            (rf"/pai/connect/{TASK_PATTERN}/check", CheckHandler, connect),
            (rf"/pai/connect/{TASK_PATTERN}/code-server", CodeServerHandler, connect),
            (rf"/pai/ports/{port}", PortHandler, {"ports": ports, "absolute": False}),
            (rf"/pai/ports-absolute/{port}", PortHandler, {"ports": ports, "absolute": True}),
        ]

    def initialize_settings(self) -> None:
        """Tell the front end which job this server is (empty: none), and how tasks name the storage."""
        if self.serverapp is None:
            return
        # shared with JupyterLab, whichever of the two is loaded first
        page = self.serverapp.web_app.settings.setdefault("page_config_data", {})
        page[OWN_JOB_OPTION] = os.environ.get("PAI_JOB_NAME", "")
        page[STORAGE_OPTION] = (os.environ.get("PAI_DEFAULT_FS_URI") or self.api_url).rstrip("/")

    async def stop_extension(self) -> None:
        """Close the connections to the scheduler, and to tasks."""
        await self._ports.close()
        await self._doors.close()
        await self._upstream.close()
