"""Client of the fork server: names the tasks to supervise, starts another server when it dies."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg

_log = logging.getLogger(__name__)

#: -I -S: neither the user's environment nor site-packages; it needs nothing but the standard library.
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from pai_scheduler.engine.process.fork_server import main; main()"
)
_ROOT = Path(__file__).parents[3]
#: What an interpreter may need to start at all.
_KEPT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR")
#: One that lives shorter than this failed to start; so often in a row, and it is given up.
_EARLY_SECONDS, _EARLY_DEATHS = 2.0, 5


class Spawner:
    """Starts supervisors. `generation` grows when a fork server dies: what it was asked may be undone."""

    def __init__(self, tasks: Path, doorbell: Path, on_death: Callable[[], None]) -> None:
        self._tasks, self._doorbell, self._on_death = tasks, doorbell, on_death
        self.generation = 1
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._early_deaths = 0

    async def start(self) -> asyncio.subprocess.Process:
        """Make sure that a fork server runs, and return it; EngineError where none can be started."""
        async with self._starting:
            if self._process is not None:
                return self._process
            if self._early_deaths >= _EARLY_DEATHS:
                self._early_deaths = 0
                raise EngineError(
                    msg("The process that starts tasks ends at once; the scheduler's log says why.")
                )
            try:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-I", "-S", "-X", "utf8", "-c", _BOOT),
                    *(str(_ROOT), str(self._tasks), str(self._doorbell)),
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.DEVNULL,
                    # not ours: supervisors outlive the service, and its tokens are no business of theirs
                    env={name: os.environ[name] for name in _KEPT if name in os.environ},
                    start_new_session=True,
                )
            except OSError as error:
                raise EngineError(
                    msg("No process can be started for the tasks: {problem}", problem=error.strerror)
                ) from error
            self._process = process
            self._watcher = asyncio.create_task(self._watch(process))
            return process

    async def request(self, task_name: str) -> int:
        """Have the prepared task supervised (harmless if it already is); return the generation asked."""
        fork_server = (await self.start()).stdin
        generation = self.generation
        # one that is gone says so by its end, and everything is asked again of the next
        if fork_server is not None:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                fork_server.write(task_name.encode() + b"\n")
                await fork_server.drain()
        return generation

    async def close(self) -> None:
        """End the fork server once it has done what it was asked."""
        if self._watcher:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        if self._process and self._process.stdin:
            self._process.stdin.close()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                await self._process.stdin.wait_closed()
            await self._process.wait()
        self._process = None

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        begin = time.monotonic()
        status = await process.wait()
        early = time.monotonic() - begin < _EARLY_SECONDS
        self._early_deaths = self._early_deaths + 1 if early else 0
        _log.warning("the process that starts tasks ended (status %s); another is started", status)
        self._process = None
        self.generation += 1
        if process.stdin:
            process.stdin.close()
        self._on_death()
