"""Programs forked from one interpreter that has everything imported: they start in a tenth of the time.

For tests that start the real program again and again: a scheduler, a JupyterLab, `pai`. It runs its `main` in
its own process; only the start of the interpreter and the imports are saved.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path

from tests.testbed.scheduler import RunningScheduler, clean_environ

#: Gets the arguments of the command line, and returns an exit code.
Program = Callable[[list[str]], int | None]

_CONTEXT = get_context("forkserver")
# what the programs import late, too
_CONTEXT.set_forkserver_preload(
    [
        "pai_scheduler.server.main",
        "pai_scheduler.engine.docker.engine",
        "pai_scheduler.engine.process.engine",
        *(
            f"pai_scheduler.client.cli.{name}"
            for name in ("admin", "fs", "jobs", "logs", "schedules", "show")
        ),
        *(f"pai_scheduler.client.cli.{name}" for name in ("ssh", "ssh_config", "submit")),
        "sqlalchemy.dialects.sqlite",
        "jupyterlab.labapp",
        "jupyter_lsp",
        "jupyter_server_terminals",
        "notebook_shim.nbserver",
        "pai_labextension.extension",
        "tests.testbed.warm",
    ]
)


def run_scheduler(arguments: list[str]) -> int:
    """Be `pai-scheduler`."""
    from pai_scheduler.server.main import main

    return main(arguments)


def run_jupyterlab(arguments: list[str]) -> None:
    """Be `jupyter lab`."""
    from jupyterlab.labapp import main

    main(arguments)


def run_pai(
    words: Sequence[str | os.PathLike[str]],
    environ: Mapping[str, str],
    stdin: bytes = b"",
    folder: Path | None = None,
    timeout: float = 60.0,
) -> subprocess.CompletedProcess[bytes]:
    """Run `pai` at pipes, as `subprocess.run` does; `folder`: where, instead of here. TimeoutError."""
    words = [os.fspath(word) for word in words]
    (in_end, feed), (told, out_end), (complained, err_end) = (_CONTEXT.Pipe(duplex=False) for _ in range(3))
    ends = (in_end, out_end, err_end)
    process = _CONTEXT.Process(
        target=_be_pai, args=(words, dict(environ), str(folder or Path.cwd()), ends), daemon=True
    )
    process.start()
    for end in ends:
        end.close()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(os.dup(feed.fileno()), "wb") as pipe:
            feed.close()
            pipe.write(stdin)

    def read(end: Connection) -> bytes:
        with open(os.dup(end.fileno()), "rb") as pipe:
            end.close()
            return pipe.read()

    with ThreadPoolExecutor(3) as pool:
        wrote, out, err = pool.submit(write), pool.submit(read, told), pool.submit(read, complained)
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"pai does not end: {words}")
        wrote.result()
        return subprocess.CompletedProcess(words, process.exitcode, out.result(), err.result())


def run_pai_text(
    words: Sequence[str | os.PathLike[str]],
    environ: Mapping[str, str],
    stdin: str = "",
    folder: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `pai` as `run_pai` does, with text in and out."""
    done = run_pai(words, environ, stdin.encode(), folder)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class WarmProcess:
    """A program as a forked process, with what tests use of `subprocess.Popen`.

    `prepare` is called in the child before the program begins; it can be pickled.
    """

    def __init__(
        self,
        program: Program,
        arguments: Sequence[str],
        environ: Mapping[str, str],
        log: Path,
        prepare: Callable[[], None] | None = None,
    ) -> None:
        log.touch(0o600)
        # daemon: it ends with the tests
        self._process = _CONTEXT.Process(
            target=_run, args=(program, list(arguments), dict(environ), log, prepare), daemon=True
        )
        self._process.start()

    @property
    def pid(self) -> int:
        """Return the process id."""
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return the exit code, -n for signal n; None while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code."""
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise TimeoutError(f"process {self.pid} does not end")
        return code

    def kill(self) -> None:
        """End it as a power cut does."""
        self._process.kill()

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        if self.poll() is None:
            os.kill(self.pid, number)


class WarmScheduler(RunningScheduler):
    """A `RunningScheduler` that starts quickly."""

    def spawn(self) -> WarmProcess:
        """Begin a scheduler's process."""
        environ = clean_environ(self._environ)
        return WarmProcess(run_scheduler, self.command()[1:], environ, self.log, self.preparation())

    def preparation(self) -> Callable[[], None] | None:
        """Return what is to be called in the new process before the scheduler begins."""
        return None


def _be_pai(words: list[str], environ: dict[str, str], folder: str, ends: Sequence[Connection]) -> None:
    """Be `pai`, in the child, as its own interpreter would make its surroundings."""
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(folder)
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.argv = ["pai", *words]
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, "utf-8", "backslashreplace", closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from pai_scheduler.client.cli import main

    sys.exit(main())


def _run(
    program: Program,
    arguments: list[str],
    environ: dict[str, str],
    log: Path,
    prepare: Callable[[], None] | None,
) -> None:
    """Be the program, in the child."""
    os.environ.clear()
    os.environ.update(environ)
    nothing = os.open(os.devnull, os.O_RDONLY)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number, file in enumerate((nothing, output, output)):
        os.dup2(file, number)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=_end_with_the_tests, daemon=True).start()
    if prepare is not None:
        prepare()
    sys.exit(program(arguments))


def _end_with_the_tests() -> None:
    """End when the tests do, killed ones too."""
    tests = parent_process()
    if tests is not None:
        tests.join()
        os.kill(os.getpid(), signal.SIGTERM)
