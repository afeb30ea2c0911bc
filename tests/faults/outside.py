"""What can be seen of each engine past the scheduler: what really ran, and what is left on the machine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiodocker

from pai_scheduler.job.task import TaskRef
from tests.testbed.docker import networks_of_jobs

from .drill import Ran

#: what a task's supervisor calls itself
_SUPERVISOR = "pai-task"


@dataclass(frozen=True)
class Processes:
    """The process engine's tasks, which write who they are into the file `ran_file` when they begin."""

    data_dir: Path
    ran_file: Path

    def watch(self) -> contextlib.nullcontext[None]:
        """Look on: there is no need to, tasks write down themselves that they run."""
        return contextlib.nullcontext()

    def ran(self) -> Counter[Ran]:
        """Count how often the command of each task was started."""
        counted = Counter[Ran]()
        for line in self.ran_file.read_text().splitlines():
            job, name = line.split()
            task = TaskRef.parse(name)
            assert task is not None
            counted[job, task.attempt, task.role, task.index] += 1
        return counted

    async def leftovers(self, alive: bool) -> list[str]:
        """List what is left on the machine although all jobs have ended; `alive`: the scheduler runs."""
        return await asyncio.to_thread(lambda: list(self._leftovers(alive)))

    def _leftovers(self, alive: bool) -> Iterator[str]:
        mark = os.fsencode(self.data_dir)
        for process in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if process.name.isdigit() and mark in _told_at_start(process):
                    name = (process / "comm").read_text().strip()
                    # (the scheduler's own helper is no task)
                    if name == _SUPERVISOR or not alive or mark in (process / "environ").read_bytes():
                        yield f"process {process.name} ({name})"
        tasks = self.data_dir / "tasks"
        yield from map(str, tasks.glob("*/work"))
        yield from map(str, orphans(self.data_dir))
        yield from map(str, kept_for_jobs(self.data_dir))
        ours = {path.name for path in self.data_dir.glob("*/*") if TaskRef.parse(path.name)}
        for path, _, _ in os.walk("/sys/fs/cgroup"):
            if Path(path).name in ours:
                yield path


@dataclass
class Containers:
    """The Docker engine's tasks, as Docker itself tells of them (`watch`)."""

    data_dir: Path
    host: str
    started: Counter[Ran] = field(default_factory=Counter)
    #: containers that were started and not yet removed
    there: set[str] = field(default_factory=set)
    _docker: aiodocker.Docker = field(init=False)

    def ran(self) -> Counter[Ran]:
        """Count how often the command of each task was started."""
        return self.started

    async def leftovers(self, alive: bool) -> list[str]:
        """List what is left on the machine although all jobs have ended."""
        label = {"label": [f"pai.instance={(self.data_dir / 'docker-instance').read_text()}"]}
        containers = await self._docker.containers.list(all=1, filters=json.dumps(label))
        networks = await self._docker.networks.list(filters=label)
        killed, given = self.data_dir / "killed", self.data_dir / "networks"
        return [
            *(str(container._container["Names"]) for container in containers),
            *networks_of_jobs((str(network["Name"]) for network in networks), in_advance=alive),
            *(f"{gang.name} still has a network" for gang in (given.iterdir() if given.is_dir() else ())),
            *map(str, orphans(self.data_dir)),
            *map(str, kept_for_jobs(self.data_dir)),
            *(map(str, killed.iterdir()) if killed.exists() else ()),
            # (news of its removal comes a moment later)
            *(f"{name} was not removed" for name in self.there),
        ]

    @asynccontextmanager
    async def watch(self) -> AsyncIterator[None]:
        """Listen to Docker meanwhile."""
        async with aiodocker.Docker(url=self.host) as self._docker:
            hearing = asyncio.create_task(self._hear(self._docker.events.subscribe()))
            yield
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)

    async def _hear(self, news: aiodocker.channel.ChannelSubscriber) -> None:
        while (event := await news.get()) is not None:
            if event["Type"] != "container":
                continue
            attributes = event["Actor"]["Attributes"]
            task = TaskRef.parse(attributes["name"])
            if task is None or attributes.get("pai.instance") != self._instance():
                continue
            if event["Action"] == "start":
                self.started[attributes["pai.job-name"], task.attempt, task.role, task.index] += 1
                self.there.add(task.name)
            elif event["Action"] == "destroy":
                self.there.discard(task.name)

    def _instance(self) -> str:
        try:
            return (self.data_dir / "docker-instance").read_text()
        except FileNotFoundError:
            return ""


def orphans(data_dir: Path) -> list[Path]:
    """List what is kept of tasks whose job is no longer known."""
    with contextlib.closing(sqlite3.connect(f"file:{data_dir}/scheduler.sqlite?mode=ro", uri=True)) as store:
        known = {job_id for (job_id,) in store.execute("SELECT id FROM jobs")}
    entries = data_dir.glob("*/*")
    return [path for path in entries if (task := TaskRef.parse(path.name)) and task.job_id not in known]


def kept_for_jobs(data_dir: Path) -> Iterator[Path]:
    """List what was fetched for jobs, and the small files of tasks."""
    for places in ("code/[!.]*", "code/.parts/*", "mounts/[!.]*", "private/*", "tasks/*/private"):
        yield from data_dir.glob(places)


def _told_at_start(process: Path) -> bytes:
    return (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
