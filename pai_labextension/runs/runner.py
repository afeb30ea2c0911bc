"""Program of a notebook run's task: executes it, and puts it with its outputs into the storage.

The job brings this file along, so it needs nothing of this project: Python 3.8, nbclient and nbformat, which
every image with JupyterLab has. `runner.py NOTEBOOK PYTHON` reads `PAI_NOTEBOOK_PARAMETERS` (a JSON object),
and writes to `PAI_OUTPUT_DIR` with the job's own token. PYTHON runs the kernel, where that is one in Python.
What is there of the outputs goes there now and then, and when the notebook fails or is stopped, too. Exit
codes: 0, or one of those below.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Callable
from urllib.parse import quote

#: Exit codes of our own; the others are those of every program.
FAILED, NO_NBCLIENT, NOT_SAVED, STOPPED = 1, 69, 74, 143
#: Seconds between two saves while it runs.
SAVE_SECONDS = 30.0
#: Seconds to wait before each try to save, when that is refused for now, and for one answer.
TRIES, PATIENCE = (0.0, 2.0, 8.0, 20.0), 60.0
PARAMETERS, INJECTED = "parameters", "injected-parameters"


def main(path: str, python: str) -> int:
    """Execute a notebook, its kernel by `python` where it is one in Python; return the exit code."""
    try:
        nbclient, nbformat = (importlib.import_module(name) for name in ("nbclient", "nbformat"))
    except ImportError as error:
        report(
            f"This image cannot execute notebooks: {error}. Choose an image with JupyterLab, or install "
            "nbclient, nbformat and ipykernel in it."
        )
        return NO_NBCLIENT
    notebook = nbformat.read(path, as_version=4)
    try:
        inject(nbformat, notebook, json.loads(os.environ.get("PAI_NOTEBOOK_PARAMETERS") or "{}"))
    except ValueError as error:
        report(str(error))
        return FAILED
    results = Results(path, lambda: str(nbformat.writes(notebook)))
    client = make_client(nbclient, notebook, results, python)
    code = 0
    try:
        client.execute()
    except nbclient.exceptions.CellExecutionError as error:
        report(str(error))
        code = FAILED
    except (Exception, asyncio.CancelledError) as error:  # stopped; or the kernel died, or cannot be started
        report("Stopped." if client.stopped else f"Not executed to the end: {type(error).__name__}: {error}")
        code = STOPPED if client.stopped else FAILED
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not results.save(TRIES) and code == 0:
        code = NOT_SAVED
    return code


def make_client(nbclient: Any, notebook: Any, results: Results, python: str) -> Any:
    """Make what executes the cells, tells how far it is, and shows what they print."""
    count = sum(cell.cell_type == "code" for cell in notebook.cells)
    done: list[int] = []

    class Client(nbclient.NotebookClient):  # type: ignore[misc, name-defined, unused-ignore]
        stopped = False

        def output(self, outs: Any, msg: Any, display_id: Any, cell_index: Any) -> Any:
            content = msg.get("content", {})
            if msg.get("msg_type") == "stream":
                sys.stdout.write(content.get("text", ""))
                sys.stdout.flush()
            return super().output(outs, msg, display_id, cell_index)

        async def async_execute_cell(self, cell: Any, cell_index: int, *args: Any, **options: Any) -> Any:
            # nbclient's own handler only ends the kernel
            task = asyncio.current_task()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stop, task)
            if cell.cell_type == "code":
                done.append(cell_index)
                lines = cell.source.strip().splitlines()
                report(f"[{len(done)}/{count}] {lines[0] if lines else ''}")
            try:
                return await super().async_execute_cell(cell, cell_index, *args, **options)
            finally:
                results.save_now_and_then()

        def stop(self, task: Any) -> None:
            self.stopped = True
            task.cancel()

    return Client(
        notebook,
        timeout=None,
        kernel_name=kernel_of(notebook),
        kernel_manager_class=manager_of(python),
        resources={"metadata": {"path": str(Path.cwd())}},
        config=over_sockets(Path(__file__).parent),
    )


def over_sockets(folder: Path) -> Any:
    """Have the kernel listen on sockets in a folder of our own, not on ports that others reach, too."""
    from traitlets.config import Config

    return Config({"KernelManager": {"transport": "ipc", "ip": str(folder / "kernel")}})


def manager_of(python: str) -> Any:
    """Return what starts kernels: those in Python by `python`, which may have more packages than this one."""
    from jupyter_client.manager import AsyncKernelManager

    class Manager(AsyncKernelManager):  # type: ignore[misc, unused-ignore]
        def format_kernel_cmd(self, *args: Any, **options: Any) -> Any:
            command = super().format_kernel_cmd(*args, **options)
            return [python, *command[1:]] if command[:1] == [sys.executable] else command

    return Manager


def kernel_of(notebook: Any) -> str:
    """Return the kernel for a notebook: its own where the image has it, else one for its language."""
    from jupyter_client.kernelspec import KernelSpecManager

    spec = notebook.metadata.get("kernelspec", {})
    wanted = str(spec.get("name") or "python3")
    specs = KernelSpecManager().get_all_specs()
    # one that runs as a job of its own is not needed in a job
    if wanted in specs and wanted[:4] != "pai-":
        return wanted
    language = str(notebook.metadata.get("language_info", {}).get("name") or spec.get("language") or "python")
    found = next(
        (
            name
            for name, about in sorted(specs.items())
            if about["spec"].get("language") == language and name[:4] != "pai-"
        ),
        "",
    )
    chosen = "python3" if language == "python" and "python3" in specs else found
    if not chosen:
        # nbclient says what is missing
        return wanted
    report(f"The image has no kernel “{wanted}”; “{chosen}” is used.")
    return chosen


def inject(nbformat: Any, notebook: Any, parameters: dict[str, Any]) -> None:
    """Put a cell that sets the parameters behind the one that is tagged so, or first; ValueError.

    As papermill does it: one that an earlier run has put there is replaced.
    """
    if not parameters:
        return
    language = notebook.metadata.get("language_info", {}).get("name", "python")
    if language not in ("python", "ipython"):
        raise ValueError(f"Parameters can be set in notebooks in Python, and this one is in {language}.")
    source = "\n".join(["# Parameters", *(f"{name} = {value!r}" for name, value in parameters.items())])
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": [INJECTED]})
    if notebook.nbformat_minor < 5:
        cell.pop("id", None)
    cells = notebook.cells
    for place, one in enumerate(cells):
        if INJECTED in one.metadata.get("tags", ()):
            cells[place] = cell
            return
    tagged = [place for place, one in enumerate(cells) if PARAMETERS in one.metadata.get("tags", ())]
    cells.insert(tagged[0] + 1 if tagged else 0, cell)


class Results:
    """The executed notebook, in the job's output folder of the storage. `text`: gives it as it is now."""

    def __init__(self, path: str, text: Callable[[], str]) -> None:
        self._name, self._text = Path(path).name, text
        self._saved = time.monotonic()

    def save_now_and_then(self) -> None:
        """Save it, unless that was done a short time ago; that it is refused is told at the end."""
        if time.monotonic() - self._saved > SAVE_SECONDS:
            self.save((0.0,), quiet=True)

    def save(self, tries: tuple[float, ...], *, quiet: bool = False) -> bool:
        """Save it; False, and a sentence, where that failed at every try."""
        problem = ""
        text = self._text().encode("utf-8")
        for pause in tries:
            time.sleep(pause)
            try:
                where = put(self._name, text)
            except (OSError, ValueError) as error:
                problem = reason(error)
                continue
            self._saved = time.monotonic()
            if not quiet:
                report(f"The executed notebook is {where} in the storage.")
            return True
        self._saved = time.monotonic()
        if not quiet:
            Path(f"executed-{self._name}").write_bytes(text)
            report(f"The executed notebook could not be put into the storage: {problem}")
        return False


def put(name: str, contents: bytes) -> str:
    """Write a file into the job's output folder; return its path in the storage. OSError, ValueError."""
    root, folder = os.environ["PAI_DEFAULT_FS_URI"].rstrip("/"), os.environ["PAI_OUTPUT_DIR"].rstrip("/")
    if not root.startswith(("http://", "https://")) or not folder.startswith(root + "/"):
        raise ValueError(f"{folder} is not reached over HTTP")
    path = f"{folder[len(root) :]}/{quote(name)}"
    request = urllib.request.Request(  # noqa: S310 - the scheme was looked at
        f"{root}/webhdfs/v1{path}?op=CREATE&overwrite=true&data=true",
        data=contents,
        method="PUT",
        headers={
            "Authorization": f"Bearer {os.environ.get('PAI_STORAGE_TOKEN', '')}",
            "Content-Type": "application/octet-stream",
        },
    )
    # a proxy of the image's is none between a task and the storage
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=PATIENCE):
        return urllib.parse.unquote(path)


def reason(error: Exception) -> str:
    """Return why the storage refused, in its own words."""
    if isinstance(error, urllib.error.HTTPError):
        try:
            return str(json.loads(error.read())["RemoteException"]["message"])
        except (OSError, ValueError, KeyError, TypeError):
            pass
    return str(error)


def report(text: str) -> None:
    """Write a line to the log."""
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
