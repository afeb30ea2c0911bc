"""The engine's host of an agent in this process, whose tasks are only said to run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from pai_scheduler.engine.agent.host import EngineHost
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from tests.testbed.agents import StandInEngine


class Agent:
    """An agent in this process, whose tasks are only said to run and whose clock is `ahead` (ms)."""

    def __init__(self, folder: Path) -> None:
        self.ahead = 0
        #: its Docker does not run
        self.refuses = False
        self.folder = folder
        self.host = EngineHost(self.make, folder, clock=self.now)
        self.engines: list[StandInEngine] = []

    def now(self) -> int:
        """Return what its clock shows."""
        return time.time_ns() // 10**6 + self.ahead

    def make(self, asked: Open, on_output: Callable[[TaskRef], None]) -> StandInEngine:  # noqa: ARG002
        """Make the engine of a session."""
        if self.refuses:
            raise EngineError(msg("no Docker"))
        engine = StandInEngine(["node-b"], 4, self.folder / "logs", on_output=on_output, clock=self.now)
        self.engines.append(engine)
        return engine
