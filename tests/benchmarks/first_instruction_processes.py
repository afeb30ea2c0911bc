"""How long until a task's command runs on the process engine: from its launch, and from the submit over HTTP.

The peers are a shell that is started without more, and `sbatch` on a Slurm that looks at each job at once.
Milliseconds until the command reads the clock; each of the ways in turn, so that what else the machine does
meets all.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import httpx

from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.testing.lab import Lab
from tests.testbed.machine import CannotError
from tests.testbed.scheduler import RunningScheduler, hello_job

from .slurm_peer import SlurmPeer

#: a shell of its own, whose clock needs no other program: microseconds since the epoch
_CLOCK = "echo ${EPOCHREALTIME/./}"
_PATIENCE = 30.0
SHELL, ENGINE, SUBMIT, SBATCH = "bash -c", "engine", "submit over HTTP", "sbatch"


def _by_shell() -> float:
    begin = time.time_ns()
    said = subprocess.run(["/bin/bash", "-c", _CLOCK], capture_output=True, check=True).stdout
    return int(said) / 1e3 - begin / 1e6


async def _by_engine(lab: Lab) -> float:
    (launch,) = await lab.prepare(lab.make(_CLOCK))
    begin = time.time_ns()
    await lab.engine.launch(launch)
    await lab.ended(launch.task)
    said = lab.output(launch.task)
    await lab.engine.release(lab.gangs.pop())
    return int(said) / 1e3 - begin / 1e6


def _said(file: Path) -> int:
    """Wait until a command has written the time; give it in microseconds."""
    deadline = time.monotonic() + _PATIENCE
    while not (file.exists() and (said := file.read_bytes()).endswith(b"\n")):
        assert time.monotonic() < deadline, "the job does not start"
        time.sleep(0.002)
    return int(said)


class _Submits:
    """Submits to a running scheduler on a kept connection."""

    def __init__(self, running: RunningScheduler, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self._client = httpx.Client(
            base_url=f"{running.url}/api/v1",
            headers={"Authorization": "Bearer token-of-alice", "Content-Type": "application/json"},
            trust_env=False,
            timeout=60,
        )

    def __call__(self) -> float:
        """Submit one job; return when its command ran."""
        self._count += 1
        file = self._folder / f"submit-{self._count}"
        job = hello_job(f"first-{self._count}", f"{_CLOCK} > {file}")
        content = json.dumps(job).encode()
        begin = time.time_ns()
        answer = self._client.post("/jobs", content=content)
        assert answer.status_code == httpx.codes.ACCEPTED, answer.text
        return _said(file) / 1e3 - begin / 1e6


def _by_sbatch(peer: SlurmPeer, folder: Path) -> Callable[[], float]:
    def submit() -> float:
        file = folder / f"sbatch-{time.time_ns()}"
        script = folder / "script"
        script.write_text(f"#!/bin/bash\n{_CLOCK} > {file}\n")
        begin = time.time_ns()
        peer.sbatch(script)
        return _said(file) / 1e3 - begin / 1e6

    return submit


async def measure(rounds: int) -> dict[str, list[float]]:
    """Measure all ways in turn; a way that this machine lacks is left out. The first round counts nowhere."""
    times: dict[str, list[float]] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        for name in ("said", "engine", "scheduler"):
            (folder / name).mkdir()
        running = RunningScheduler(folder / "scheduler")
        stack.callback(running.close)
        submits, sbatch = _Submits(running, folder / "said"), None
        try:
            sbatch = _by_sbatch(stack.enter_context(SlurmPeer.open(at_once=True)), folder / "said")
        except CannotError as missing:
            print(f"sbatch is left out: {missing}")
        engine = ProcessEngine(folder / "engine")
        await engine.start()
        lab = await Lab.over(engine, "local/any")
        for _ in range(rounds + 1):
            times.setdefault(SHELL, []).append(await asyncio.to_thread(_by_shell))
            times.setdefault(ENGINE, []).append(await _by_engine(lab))
            times.setdefault(SUBMIT, []).append(await asyncio.to_thread(submits))
            if sbatch is not None:
                times.setdefault(SBATCH, []).append(await asyncio.to_thread(sbatch))
            await asyncio.sleep(0.1)  # what follows an end is not to be met by the next start
        await lab.clean()
        await engine.close()
    return {name: found[1:] for name, found in times.items()}
