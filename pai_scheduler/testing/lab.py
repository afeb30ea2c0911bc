"""Starts tasks on an engine and follows what becomes of them: the hands of every engine test."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pai_scheduler.engine.protocol import (
    Ended,
    Engine,
    EngineEvent,
    Gang,
    GangMember,
    HeldAfterFailure,
    Launch,
    Noticed,
    Started,
)
from pai_scheduler.job.task import TaskRef

#: Longer than anything takes on a busy machine: who waits this long waits for what never comes.
PATIENCE = 30.0

E = TypeVar("E", Started, HeldAfterFailure, Ended)


def new_job_id() -> str:
    """Make a job id that no other test has."""
    return uuid.uuid4().hex[:12]


def make_task(role: str = "main", index: int = 0, *, job_id: str | None = None, attempt: int = 0) -> TaskRef:
    """Return a task, by default of a job that no other test has."""
    return TaskRef(job_id or new_job_id(), attempt, role, index)


def make_launch(command: str, *, task: TaskRef | None = None, node: str, image: str, **fields: Any) -> Launch:
    """Make a small task; `fields` are any of `Launch`."""
    defaults: dict[str, Any] = {
        "user": "alice",
        "job_name": "a-job",
        "env": {},
        "cpus": 1,
        "memory_mb": 256,
        "shm_mb": 64,
    }
    return Launch(task=task or make_task(), node=node, image=image, command=command, **{**defaults, **fields})


def make_gang(
    *launches: Launch, ports: Mapping[TaskRef, Mapping[str, tuple[int, ...]]] | None = None
) -> Gang:
    """Make the gang of tasks of one attempt."""
    first = launches[0].task
    members = tuple(
        GangMember(launch.task, launch.node, (ports or {}).get(launch.task, {})) for launch in launches
    )
    return Gang(first.job_id, first.attempt, members)


def make_code(folder: Path) -> Path:
    """Make code in a folder as the scheduler keeps it for a job: nobody may write to it."""
    code = folder / "my code"
    (code / "deep" / "er").mkdir(parents=True)
    (code / "empty").mkdir()
    (code / "deep" / "er" / "data").write_text("data\n")
    (code / "run.sh").write_text("#!/bin/sh\necho run\n")
    (code / "deep" / "er" / "data").chmod(0o444)
    (code / "run.sh").chmod(0o555)
    for folder in (code, code / "deep", code / "deep" / "er", code / "empty"):
        folder.chmod(0o555)
    return code


def processes_with(marker: str) -> list[int]:
    """Find this machine's processes (those in containers too) that have `marker` in their command line."""
    return [pid for pid, line in _command_lines() if marker in line]


def processes_running(command_line: str) -> list[int]:
    """Find this machine's processes (those in containers too) that have exactly this command line."""
    return [pid for pid, line in _command_lines() if line == command_line]


def _command_lines() -> Iterator[tuple[int, str]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                yield int(entry.name), b" ".join(words).decode(errors="replace")


async def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until `condition` holds; fail saying `what` did not happen."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(PATIENCE):
            while not condition():  # noqa: ASYNC110 (what is waited for happens in other processes)
                await asyncio.sleep(0.02)
            return
    raise AssertionError(f"this did not happen: {what}")


class Lab:
    """One engine at work. `events` is everything it reported so far."""

    def __init__(self, engine: Engine, image: str, node: str) -> None:
        self.engine, self.image, self.node = engine, image, node
        self.events: list[EngineEvent] = []
        self.gangs: list[Gang] = []
        self._news = asyncio.Condition()
        self._listener = asyncio.create_task(self._listen())

    @classmethod
    async def over(cls, engine: Engine, image: str) -> Lab:
        """Go to work on a started engine."""
        return cls(engine, image, (await engine.nodes())[0].name)

    def make(self, command: str, **fields: Any) -> Launch:
        """Make a task for this engine."""
        return make_launch(command, **{"node": self.node, "image": self.image, **fields})

    async def prepare(self, *launches: Launch, **options: Any) -> list[Launch]:
        """Make the tasks' network; return them with their addresses filled in."""
        gang = make_gang(*launches, **options)
        self.gangs.append(gang)
        addresses = await self.engine.prepare(gang)
        hosts = {task.hostname: address for task, address in addresses.items()}
        return [replace(launch, address=addresses[launch.task], hosts=hosts) for launch in launches]

    async def start(self, command: str, **fields: Any) -> TaskRef:
        """Launch a gang of one task."""
        (launch,) = await self.prepare(self.make(command, **fields))
        await self.engine.launch(launch)
        return launch.task

    async def start_gang(self, *tasks: str | Mapping[str, Any], **fields: Any) -> list[TaskRef]:
        """Launch one gang, all tasks at once: each is a command, or what else it has of its own."""
        job = new_job_id()
        own = [{"command": task} if isinstance(task, str) else task for task in tasks]
        launches = await self.prepare(
            *(
                self.make(task=make_task(index=index, job_id=job), **{"command": "true", **fields, **each})
                for index, each in enumerate(own)
            )
        )
        await asyncio.gather(*(self.engine.launch(launch) for launch in launches))
        return [launch.task for launch in launches]

    async def run_gang(self, *tasks: str | Mapping[str, Any], **fields: Any) -> list[tuple[TaskRef, Ended]]:
        """Launch one gang and wait for the ends of all its tasks; as `start_gang`."""
        return [(task, await self.ended(task)) for task in await self.start_gang(*tasks, **fields)]

    async def run(self, command: str, **fields: Any) -> tuple[TaskRef, Ended]:
        """Launch a gang of one task and wait for its end."""
        task = await self.start(command, **fields)
        return task, await self.ended(task)

    async def started(self, task: TaskRef) -> Started:
        """Wait for a task's start."""
        return await self._wait(task, Started)

    async def held(self, task: TaskRef) -> HeldAfterFailure:
        """Wait until a task is held after the failure of its command."""
        return await self._wait(task, HeldAfterFailure)

    async def ended(self, task: TaskRef) -> Ended:
        """Wait for a task's end."""
        return await self._wait(task, Ended)

    def told(self, task: TaskRef) -> list[EngineEvent]:
        """Return what the engine reported of a task's start, hold and end."""
        kinds = Started | HeldAfterFailure | Ended
        return [event for event in self.events if isinstance(event, kinds) and event.task == task]

    def noticed(self, task: TaskRef) -> list[Noticed]:
        """Return what the engine noticed of a task."""
        return [event for event in self.events if isinstance(event, Noticed) and event.task == task]

    def output(self, task: TaskRef, stream: str = "all") -> str:
        """Return what a task wrote so far."""
        return self.engine.log(task).read(stream).decode()

    async def printed(self, task: TaskRef, text: str) -> None:
        """Wait until a task has written `text`."""
        await eventually(lambda: text in self.output(task), f"{task.name} prints {text!r}")

    async def adopt(self, expected: Collection[TaskRef]) -> None:
        """Let the engine take up what runs."""
        await self.engine.adopt(dict.fromkeys(expected, self.node))

    async def stop_listening(self) -> None:
        """Leave the engine alone, as a killed service does."""
        self._listener.cancel()
        await asyncio.gather(self._listener, return_exceptions=True)

    async def clean(self) -> None:
        """End every task that this lab started and remove what they left."""
        for gang in self.gangs:
            for member in gang.members:
                await self.engine.kill(member.task, 0)
                await self.ended(member.task)
            await self.engine.release(gang)
        await self.stop_listening()

    async def _listen(self) -> None:
        async for event in self.engine.events():
            async with self._news:
                self.events.append(event)
                self._news.notify_all()

    async def _wait(self, task: TaskRef, kind: type[E]) -> E:
        def match() -> E | None:
            return next((event for event in self.told(task) if isinstance(event, kind)), None)

        async with self._news:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait_for(match)
            except TimeoutError:
                raise AssertionError(f"no {kind.__name__} of {task.name}; told: {self.told(task)}") from None
        event = match()
        assert event is not None
        return event
