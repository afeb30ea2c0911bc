"""Web programs beyond Jupyter for the tests: TensorBoard and code-server, fetched once and kept."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.testbed.machine import CACHE, CannotError, apt_install, locked, say

_TENSORBOARD, _CODE_SERVER = "2.21.0", "4.100.3"
#: the Node for which this code-server's native parts are
_NODE = "v20."
#: Writes a training's curve with TensorBoard's own classes, which need no TensorFlow.
_CURVE = """
import sys
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
writer = EventFileWriter(sys.argv[1])
for step in range(50):
    value = Summary.Value(tag=sys.argv[2], simple_value=1 / (step + 1))
    writer.add_event(Event(step=step, wall_time=1.7e9 + step, summary=Summary(value=[value])))
writer.close()
"""


def provide_tensorboard() -> Path:
    """Return the folder with the program `tensorboard`; CannotError where that cannot be fetched."""
    return _provided(f"tensorboard-{_TENSORBOARD}", _fetch_tensorboard) / "bin"


def provide_code_server() -> Path:
    """Return the folder with the program `code-server`; CannotError where that cannot be built."""
    return _provided(f"code-server-{_CODE_SERVER}", _fetch_code_server) / "node_modules" / ".bin"


def write_curve(tensorboard: Path, folder: Path, tag: str) -> None:
    """Write the events of a training into a folder; `tensorboard`: the folder of that program."""
    _run(tensorboard, str(tensorboard / "python"), "-c", _CURVE, str(folder), tag)


def _provided(name: str, fetch: Callable[[Path], None]) -> Path:
    """Return the folder that `fetch` has filled, now or before."""
    folder = CACHE / name
    with locked(name):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            fetch(folder)
            (folder / "complete").touch()
    return folder


def _fetch_tensorboard(folder: Path) -> None:
    say(f"fetching TensorBoard {_TENSORBOARD} from PyPI")
    _run(folder, sys.executable, "-m", "venv", str(folder))
    _run(folder, str(folder / "bin" / "pip"), "install", "--quiet", f"tensorboard=={_TENSORBOARD}")


def _fetch_code_server(folder: Path) -> None:
    version = (
        subprocess.run(["node", "--version"], capture_output=True, text=True).stdout
        if shutil.which("node")
        else ""
    )
    if not version.startswith(_NODE):
        raise CannotError(f"code-server {_CODE_SERVER} needs Node {_NODE}x, not {version.strip() or 'none'}")
    headers = {
        "/usr/include/X11/extensions/XKBrules.h": "libxkbfile-dev",
        "/usr/include/gssapi/gssapi.h": "libkrb5-dev",
    }
    missing = {header: package for header, package in headers.items() if not Path(header).exists()}
    apt_install({"rg": "ripgrep", "g++": "g++", "make": "make", **missing})
    say(f"fetching code-server {_CODE_SERVER} from npm, and building its native parts (minutes)")
    # its installation scripts fetch parts from places that a machine may not reach: what they do is done here
    install = ("npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
    _run(folder, *install, f"code-server@{_CODE_SERVER}")
    modules = folder / "node_modules"
    code = modules / "code-server" / "lib" / "vscode"
    _run(code, *install, "--omit=dev")
    _run(code / "extensions", *install, "--omit=dev")
    _run(modules / "argon2", "npx", "--yes", "node-pre-gyp", "install", "--fallback-to-build")
    for part in ("node-pty", "@vscode/spdlog", "native-watchdog", "kerberos"):
        _run(code / "node_modules" / part, "npx", "--yes", "node-gyp", "rebuild")
    (code / "node_modules.asar").symlink_to("node_modules")
    ripgrep = code / "node_modules" / "@vscode" / "ripgrep" / "bin" / "rg"
    ripgrep.parent.mkdir(parents=True, exist_ok=True)
    ripgrep.symlink_to(shutil.which("rg") or "/usr/bin/rg")


def _run(folder: Path, *command: str) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env={**os.environ, "CI": "1"})
    if done.returncode != 0:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        raise CannotError(f"{command[0]}: {' '.join(last)}")
