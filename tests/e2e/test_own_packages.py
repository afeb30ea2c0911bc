"""What a person installs is in the home, for kernels, terminals and jobs, not for JupyterLab or the Hub."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from tests.e2e.test_kernels_as_jobs import P100, run_cell, server, start_kernel
from tests.hub import Hub, wait_for
from tests.testbed.wheels import make_wheel

#: Seconds in which a terminal does what it is told.
PATIENCE = 60.0
#: What a notebook, a terminal and so on install: a module each, with its own name in it.
WAYS = ("magic", "shell", "terminal", "ssh")


class Desk:
    """Alice's server."""

    def __init__(self, hub: Hub, folder: Path) -> None:
        self.hub, self._folder = hub, folder
        self.start()

    def start(self) -> None:
        assert self.hub.start_server("alice", {"memory_mb": 1024}).is_success
        self.hub.wait_ready("alice")

    def restart(self) -> None:
        self.hub.stop_server("alice")
        self.start()

    def bring(self, name: str, source: str) -> str:
        """Put a wheel of a module into the home; return its name there."""
        wheel = make_wheel(self._folder, name, "0.1", source)
        body = {
            "type": "file",
            "format": "base64",
            "content": base64.b64encode(wheel.read_bytes()).decode(),
        }
        answer = server(self.hub, "PUT", f"api/contents/{wheel.name}", json=body)
        assert answer.is_success, answer.text
        return wheel.name

    def cell(self, kernel: str, cell: str) -> str:
        """Run a cell; return what it printed."""
        return asyncio.run(run_cell(self.hub, kernel, cell))

    def terminal(self, line: str) -> None:
        """Type a line into a new terminal, and wait for its end."""
        name = server(self.hub, "POST", "api/terminals").json()["name"]
        asyncio.run(self._type(name, f"{line}; echo end''ed $?\n"))

    async def _type(self, name: str, line: str) -> None:
        url = f"ws{self.hub.url.removeprefix('http')}/user/alice/terminals/websocket/{name}"
        headers = {"Authorization": f"Bearer {self.hub.token('alice')}"}
        socket = await websocket_connect(HTTPRequest(url, headers=headers, request_timeout=PATIENCE))
        shown = ""
        async with asyncio.timeout(PATIENCE):
            await socket.write_message(json.dumps(["stdin", line]))
            while "ended " not in shown:
                message = await socket.read_message()
                assert message is not None, shown
                kind, *rest = json.loads(message)
                shown += rest[0] if kind == "stdout" else ""
        socket.close()
        assert "ended 0" in shown, shown

    def run_notebook(self, cell: str) -> str:
        """Run a notebook as a job; return its log."""
        made = {
            "cells": [
                {"cell_type": "code", "source": cell, "metadata": {}, "outputs": [], "execution_count": None}
            ],
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
            "nbformat": 4,
            "nbformat_minor": 4,
        }
        body = {"type": "notebook", "content": made}
        assert server(self.hub, "PUT", "api/contents/work", json={"type": "directory"}).is_success
        assert server(self.hub, "PUT", "api/contents/work/run.ipynb", json=body).is_success
        asked = {"path": "work/run.ipynb", "memoryMB": 512, "cpus": 1}
        lines = server(self.hub, "POST", "pai/run-file", json=asked).text.splitlines()
        job = json.loads(lines[-1])["job"]["name"]
        place = f"user/alice/jobs/{job}"

        def state() -> str:
            return str(self.hub.scheduler("alice", "GET", place).json()["jobStatus"]["state"])

        wait_for(lambda: state() in ("SUCCEEDED", "FAILED"), "the run to end")
        log = self.hub.scheduler("alice", "GET", f"{place}/taskRoles/run/tasks/0/logs/all").text
        assert state() == "SUCCEEDED", log
        return log


@pytest.fixture
def desk(hub: Hub, engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    if engine == "docker":
        request.getfixturevalue("runtime_image")
    folder = tmp_path / "wheels"
    folder.mkdir()
    return Desk(hub, folder)


def test_what_is_installed_is_in_the_home_and_in_all_that_its_person_runs(desk: Desk, engine: str) -> None:
    wheels = {way: desk.bring(f"by_{way}", f"value = 'by {way}'") for way in WAYS}
    options = "--no-index --no-deps -q"
    kernel = start_kernel(desk.hub, "work.ipynb", "python3")
    desk.cell(kernel, f"%pip install {options} {wheels['magic']}")
    desk.cell(kernel, f"!pip install {options} {wheels['shell']}")
    desk.terminal(f"pip install {options} {wheels['terminal']}")
    (own,) = desk.hub.running_jobs("alice")
    line = f"pai ssh {own['name']} notebook-0 -- pip install {options} {wheels['ssh']}"
    said = desk.cell(kernel, f"!{line}")
    look = "\n".join([f"import by_{way}; print(by_{way}.value)" for way in WAYS])
    expected = [f"by {way}" for way in WAYS]
    assert desk.cell(kernel, look).splitlines() == expected, said
    assert desk.cell(kernel, "import by_magic; print(by_magic.__file__)").startswith(home_of(desk, engine))

    desk.restart()
    kernel = start_kernel(desk.hub, "again.ipynb", "python3")
    assert desk.cell(kernel, look).splitlines() == expected
    far = start_kernel(desk.hub, "gpu.ipynb", P100)
    assert desk.cell(far, look).splitlines() == expected
    assert "/bin/pip" in desk.cell(far, "import shutil; print(shutil.which('pip'))")
    assert desk.cell(far, "import sys; print(sys.prefix)").startswith(home_of(desk, engine))
    assert server(desk.hub, "DELETE", "api/sessions/" + session_of(desk, far)).status_code == 204
    log = desk.run_notebook(look)
    assert [line for line in log.splitlines() if line.startswith("by ")] == expected
    call = (
        "from pai_scheduler.client import remote\n"
        "def far():\n    import by_magic, shutil, sys\n"
        "    return by_magic.value, sys.prefix, shutil.which('pip')\n"
        "value, prefix, pip = remote(memory_mb=256, output=False)(far)()\n"
        "print(value, prefix == sys.prefix, pip.startswith(sys.prefix), sep='|')"
    )
    assert desk.cell(kernel, f"import sys\n{call}").splitlines()[-1] == "by magic|True|True"


def test_a_package_that_breaks_kernels_breaks_neither_the_server_nor_the_hub_and_can_be_removed(
    desk: Desk,
) -> None:
    kernel = start_kernel(desk.hub, "work.ipynb", "python3")
    for name in ("tornado", "ipykernel", "jupyter_server", "pai_labextension", "traitlets"):
        wheel = desk.bring(name, f"raise ImportError('{name} of another time')")
        desk.cell(kernel, f"!pip install --no-index --no-deps -q {wheel}")
    desk.restart()
    assert server(desk.hub, "GET", "lab").status_code == 200
    assert server(desk.hub, "GET", "pai/kernels").status_code == 200
    assert server(desk.hub, "POST", "api/kernels", json={"name": "python3"}).status_code != 404
    # one that starts again and again, as Jupyter tries, makes what is removed meanwhile
    for broken in server(desk.hub, "GET", "api/kernels").json():
        assert server(desk.hub, "DELETE", f"api/kernels/{broken['id']}").status_code in (204, 404)
    desk.terminal('rm -rf "$VIRTUAL_ENV"')
    kernel = start_kernel(desk.hub, "again.ipynb", "python3")
    assert desk.cell(kernel, "import traitlets, sys; print(6 * 7)") == "42\n"
    # the Hub's own Python: all with which a Hub starts anew
    load = "import jupyterhub.app, ipykernel.kernelapp, jupyter_server.serverapp, pai_labextension.extension"
    subprocess.run([sys.executable, "-c", f"{load}, tornado.web, traitlets.config"], check=True)


def home_of(desk: Desk, engine: str) -> str:
    return "/home/jovyan/" if engine == "docker" else f"{desk.hub.folder}/home/alice/"


def session_of(desk: Desk, kernel: str) -> str:
    sessions: list[dict[str, Any]] = server(desk.hub, "GET", "api/sessions").json()
    return next(str(session["id"]) for session in sessions if session["kernel"]["id"] == kernel)
