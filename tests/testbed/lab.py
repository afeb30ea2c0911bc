"""A real JupyterLab before a real scheduler, for many tests: what one of them changes is set back."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.testbed.machine import CannotError
from tests.testbed.scheduler import RunningScheduler, remove
from tests.testbed.warm import WarmProcess, WarmScheduler, run_jupyterlab

LAB_TOKEN = "lab-token"
#: The job that the notebook server in the browser is.
OWN_SERVER = "notebook_0a1b2c3d"
_INSTALLED = Path(sys.prefix) / "share/jupyter/labextensions/pai-labextension/package.json"


class RunningLab:
    """JupyterLab as a person starts it. `home`: what its file browser shows; `address`: where its page is.

    `config`: of the notebook server; `environ`: in place of what the scheduler's address and our token say.
    """

    def __init__(
        self,
        folder: Path,
        port: int,
        environ: dict[str, str],
        config: dict[str, Any] | None = None,
    ) -> None:
        if not _INSTALLED.exists():
            raise CannotError("the built front end is missing (`make` builds and installs it)")
        self.home = folder / "home"
        self._settings, self._workspaces = folder / "settings", folder / "workspaces"
        (folder / "config").mkdir()
        (folder / "config" / "jupyter_server_config.json").write_text(json.dumps(config or {}))
        for made in (self.home, self._settings, self._workspaces):
            made.mkdir()
        environment = {
            **os.environ,
            "HOME": str(self.home),
            "JUPYTER_CONFIG_DIR": str(folder / "config"),
            "JUPYTER_DATA_DIR": str(folder / "data"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            # (kernels know the language by it)
            "JUPYTERLAB_SETTINGS_DIR": str(self._settings),
            "PAI_JOB_NAME": OWN_SERVER,
            **environ,
        }
        arguments = [
            *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
            *(f"--ServerApp.root_dir={self.home}", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
            *(f"--IdentityProvider.token={LAB_TOKEN}", "--LabApp.news_url=None"),
            # (their defaults are what the environment said when the program was loaded)
            f"--LabApp.user_settings_dir={self._settings}",
            f"--LabApp.workspaces_dir={self._workspaces}",
        ]
        self._url = f"http://127.0.0.1:{port}"
        self._api = httpx.Client(
            base_url=f"{self._url}/api",
            headers={"Authorization": f"token {LAB_TOKEN}"},
            timeout=60,
            trust_env=False,
        )
        self._process = WarmProcess(run_jupyterlab, arguments, environment, folder / "lab.log")
        self._wait()

    @property
    def address(self) -> str:
        """Return the address of the page, with the token."""
        return f"{self._url}/lab?token={LAB_TOKEN}"

    def choose(self, plugin: str, **settings: Any) -> None:
        """Have settings of a plugin of JupyterLab's chosen, from the next page on."""
        extension, name = plugin.split(":")
        file = self._settings / "@jupyterlab" / extension / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings))

    def clear(self) -> None:
        """End the kernels and terminals; forget files, settings and what was open. No page is open."""
        for kind, key in (("sessions", "id"), ("kernels", "id"), ("terminals", "name")):
            for one in self._api.get(f"/{kind}").raise_for_status().json():
                self._api.delete(f"/{kind}/{one[key]}")
        for folder in (self.home, self._settings, self._workspaces):
            for entry in folder.iterdir():
                remove(entry)

    def close(self) -> None:
        """End it as an administrator does."""
        self._api.close()
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def _wait(self) -> None:
        for _ in range(600):
            assert self._process.poll() is None, "JupyterLab ended at once; see lab.log"
            try:
                if self._api.get(self._url + "/api").is_success:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.1)
        raise AssertionError("JupyterLab does not answer after a minute")


class SharedLab(RunningLab):
    """A JupyterLab of alice's with the scheduler that it asks."""

    def __init__(
        self, folder: Path, port: int, scheduler: RunningScheduler, config: dict[str, Any] | None = None
    ) -> None:
        self.scheduler = scheduler
        environ = {"PAI_API_URL": scheduler.url, "PAI_TOKEN": "token-of-alice"}
        super().__init__(folder, port, environ, config)


@contextmanager
def shared_lab(
    folder: Path,
    port: int,
    scheduler: RunningScheduler | None = None,
    config: dict[str, Any] | None = None,
    **options: Any,
) -> Iterator[SharedLab]:
    """Run a JupyterLab, with a scheduler of its own where none is given; `options`: of `RunningScheduler`."""
    with ExitStack() as stack:
        if scheduler is None:
            (folder / "scheduler").mkdir()
            scheduler = WarmScheduler(folder / "scheduler", **options)
            stack.callback(scheduler.close)
        lab = SharedLab(folder, port, scheduler, config)
        stack.callback(lab.close)
        yield lab
