"""Where a scheduler may be killed: every step of writer, launcher and engines says that it is being passed.

For a scheduler in a process of its own (`tests.testbed.warm`), before it begins. A passage is named by what
passes, not by its number alone ("before ProcessEngine.launch gang-0-ps-1"), so that the same passage is found
again in the next run, whatever the order of things then.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import sqlalchemy as sa

from pai_scheduler.core import completion
from pai_scheduler.core.events import Event, NodesChanged, Progress, SharesChanged, Submitted, Tick
from pai_scheduler.core.model import Job
from pai_scheduler.core.state_machine import Core
from pai_scheduler.engine.docker.client import DockerApi
from pai_scheduler.engine.docker.containers import ContainerCreator
from pai_scheduler.engine.docker.context import EngineContext
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.network import GangNetworks
from pai_scheduler.engine.docker.runtime import VOLUME_PREFIX
from pai_scheduler.engine.process import folder_operations
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.process.spawner import Spawner
from pai_scheduler.engine.process.task_folder import TaskFolder
from pai_scheduler.engine.protocol import Gang, Launch
from pai_scheduler.job.task import TaskRef
from pai_scheduler.service.inputs import FolderCache, JobInputs
from pai_scheduler.service.launcher import Launcher
from pai_scheduler.service.service import Service
from pai_scheduler.store.store import Store

#: Steps of the two engines: between them lies what a kill may separate.
_ENGINE_CALLS = ("start", "adopt", "prepare", "launch", "kill", "release", "forget")


@dataclass(frozen=True)
class Plan:
    """Write the name of each passage into the file `passed`; at the passage `kill_at`, the n-th of that name,
    end with SIGKILL. No name: only write."""

    passed: Path
    kill_at: str = ""
    nth: int = 1


def install(plan: Plan) -> None:
    """Put the points into this process, and let what is repeated be repeated soon."""
    completion.AT_ONCE, completion.FIRST_DELAY_MS = 1, 200
    points = _Points(plan)
    points.around(Service, "start")
    points.around(Core, "restore")
    points.around(Store, "live_jobs")
    points.put_into_writer()
    points.around(Launcher, "carry_out")
    for engine in (ProcessEngine, DockerEngine):
        for call in _ENGINE_CALLS:
            points.around(engine, call)
    for step in ("prepare", "kill", "refuse", "release"):
        points.around(folder_operations, step)
    points.around(Spawner, "request")
    for owner, steps in {
        ContainerCreator: ("_create", "fill", "start"),
        GangNetworks: ("_create", "remove"),
        DockerApi: ("remove",),
        EngineContext: ("remember", "keep_private", "forget"),
        FolderCache: ("fetch", "forget"),
        JobInputs: ("fetch",),
    }.items():
        for step in steps:
            points.around(owner, step)


class _Points:
    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._file = os.open(plan.passed, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._times: Counter[str] = Counter()
        self._lock = threading.Lock()
        #: job names by their random ids
        self._jobs: dict[str, str] = {}
        #: handled and not yet durable
        self._group: list[str] = []

    def pass_by(self, passage: str) -> None:
        with self._lock:
            self._times[passage] += 1
            os.write(self._file, f"{passage}\n".encode())
            if (passage, self._times[passage]) == (self._plan.kill_at, self._plan.nth):
                os.kill(os.getpid(), signal.SIGKILL)

    def around(self, owner: type | ModuleType, name: str) -> None:
        """Make a function or method say when it begins and when it has done its work."""
        inner = getattr(owner, name)
        step = f"{owner.__name__.rpartition('.')[2]}.{name}"

        def what(arguments: tuple[Any, ...]) -> str:
            told = arguments if isinstance(owner, ModuleType) else arguments[1:]
            return " ".join(filter(None, (step, *(self._say(argument) for argument in told))))

        if inspect.iscoroutinefunction(inner):

            @functools.wraps(inner)
            async def in_loop(*arguments: Any, **more: Any) -> Any:
                self.pass_by(f"before {what(arguments)}")
                result = await inner(*arguments, **more)
                self.pass_by(f"after {what(arguments)}")
                return result

            setattr(owner, name, in_loop)
        else:

            @functools.wraps(inner)
            def at_once(*arguments: Any, **more: Any) -> Any:
                self._learn(inner, arguments)
                self.pass_by(f"before {what(arguments)}")
                result = inner(*arguments, **more)
                self.pass_by(f"after {what(arguments)}")
                return result

            setattr(owner, name, at_once)

    def put_into_writer(self) -> None:
        """Pass before an event is handled, and before its commit, within it after the SQL, and after it."""
        handle, commit, opened = Core.handle, Store.commit, Store.__init__

        def handled(core: Core, event: Event, *others: Any, **more: Any) -> None:
            if isinstance(event, Submitted):
                self._jobs[event.job_id] = event.spec.name
            name = self._event(event)
            self.pass_by(f"before handling {name}")
            handle(core, event, *others, **more)
            self._group.append(name)

        def committed(store: Store, *arguments: Any, **more: Any) -> Any:
            group = self._group = self._group or ["what was restored"]
            for name in group:
                self.pass_by(f"before writing {name}")
            result = commit(store, *arguments, **more)
            for name in group:
                self.pass_by(f"after COMMIT of {name}")
            self._group = []
            return result

        def opened_with_point(store: Store, *arguments: Any, **more: Any) -> None:
            opened(store, *arguments, **more)

            @sa.event.listens_for(store.engine, "commit")
            def before_commit(_connection: sa.Connection) -> None:
                for name in self._group:
                    self.pass_by(f"before COMMIT of {name}")

        Core.handle = handled  # type: ignore[method-assign, assignment]
        Store.commit = committed  # type: ignore[method-assign, assignment]
        Store.__init__ = opened_with_point  # type: ignore[method-assign, assignment]

    def _learn(self, inner: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        if inner.__qualname__ == "Core.restore":
            self._jobs.update((job.id, job.name) for job in arguments[1])

    def _event(self, event: Event) -> str:
        """Name an event."""
        kind = type(event).__name__
        if isinstance(event, NodesChanged | SharesChanged | Tick):
            return kind
        if isinstance(event, Progress):
            return f"{kind} {self._ref(event.task)}"
        return f"{kind} {self._say(getattr(event, 'task', None) or event.job_id)}"  # type: ignore[union-attr]

    def _say(self, argument: object) -> str:
        """Name what a step is about; nothing where it is about nothing in particular."""
        match argument:
            case TaskRef():
                return self._ref(argument)
            case Launch(task=task):
                return self._ref(task)
            case Job(name=name):
                return name
            case Gang(job_id=job_id, attempt=number):
                return f"{self._jobs.get(job_id, job_id)}-{number}"
            case TaskFolder(path=path):
                return self._say(path.name)
            case str():
                if argument.startswith(VOLUME_PREFIX):  # all containers have the same runtime
                    return ""
                ref = TaskRef.parse(argument)
                return self._ref(ref) if ref is not None else self._network(argument)
            case float() | int() | list() | tuple() | dict() | None:
                return ""
        kind = type(argument).__name__
        if hasattr(argument, "task"):
            return f"{kind} {self._ref(argument.task)}"
        if hasattr(argument, "job_id"):
            return f"{kind} {self._say(argument.job_id)}-{getattr(argument, 'attempt', '')}"
        return kind if kind == "WakeAt" else ""

    def _network(self, name: str) -> str:
        for job_id, job in self._jobs.items():
            name = name.replace(job_id, job)
        return name

    def _ref(self, ref: TaskRef) -> str:
        return f"{self._jobs.get(ref.job_id, ref.job_id)}-{ref.attempt}-{ref.role}-{ref.index}"
