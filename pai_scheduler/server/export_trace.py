"""`pai-scheduler export-trace`: writes the jobs in the database so that `simulate` can replay them."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pai_scheduler.cluster.definition import Definition
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.simulator.traces import TraceJob, TraceRole, write_trace
from pai_scheduler.store.database import open_database
from pai_scheduler.store.migrate import refuse_outdated, revision
from pai_scheduler.store.records import RecordedJob
from pai_scheduler.store.store import Store, StoreError
from pai_scheduler.store.tables import HEAD

from .backup import database_in
from .components import database_url, no_database, read_cluster
from .data_folder import POSTGRESQL, SQLITE, refuse_other_kind
from .simulate import writing


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Write the trace; return the exit code. StartError: why it cannot be done."""
    folder: Path = options.data_dir.expanduser().absolute()
    definition = read_cluster(options.cluster) if options.cluster else Definition()
    url = database_url(options.database, environ)
    try:
        store = _open(folder, url)
        try:
            now = round(1000 * time.time())
            recorded = store.recorded_jobs(options.begin, options.end)
            counted = Export(recorded, now, definition.storage_request_gb, anonymous=options.anonymous)
            with writing(options.file) as file:
                written = write_trace(file, counted)
        finally:
            store.close()
    except StoreError as error:
        raise no_database(url or folder, error) from error
    print(f"{written} jobs are written to {options.file}.")
    if counted.running:
        print(f"{counted.running} of them had not ended: they run for as long as they had until now.")
    if counted.never_ran:
        print(f"{counted.never_ran} others are left out, as they never ran.")
    return 0


class Export:
    """Makes trace jobs of recorded ones, and counts those of which not all is known.

    `now`: until when those ran that still do; `anonymous`: numbers in place of names of jobs and users.
    """

    def __init__(
        self, recorded: Iterable[RecordedJob], now: int, storage_request_gb: int, *, anonymous: bool
    ) -> None:
        self._recorded = recorded
        self._now = now
        self._storage_request_gb = storage_request_gb
        self._anonymous = anonymous
        self._users: dict[str, str] = {}
        self._programs: dict[tuple[str, tuple[str, ...]], str] = {}
        self.running = self.never_ran = 0

    def __iter__(self) -> Iterator[TraceJob]:
        for number, one in enumerate(self._recorded, 1):
            if one.placed is None:
                self.never_ran += 1
                continue
            self.running += one.ended is None
            user = self._users.setdefault(one.user, f"user-{len(self._users) + 1}")
            ended = self._now if one.ended is None else one.ended
            spec = one.spec
            yield TraceJob(
                # (the same name may have been another user's, too)
                f"job-{number}" if self._anonymous else f"{one.user}/{one.name}",
                user if self._anonymous else one.user,
                spec.virtual_cluster,
                one.created,
                max(0, ended - one.placed),
                tuple(
                    TraceRole(
                        role.task_number,
                        role.gpu_number,
                        role.cpu_number,
                        role.memory_mb,
                        self._storage_request_gb if role.storage_gb is None else role.storage_gb,
                    )
                    for role in spec.task_roles
                ),
                spec.gpu_type,
                one.priority,
                spec.max_run_seconds,
                spec.preemptible,
                self._program(spec),
                spec.termination_grace_seconds,
            )

    def _program(self, spec: JobSpec) -> str:
        """Return a number for image and commands: commands may have secrets in them."""
        what = spec.image, tuple(role.command for role in spec.task_roles)
        return self._programs.setdefault(what, f"program-{len(self._programs) + 1}")


def _open(folder: Path, url: str | None) -> Store:
    """Open the database as it is: nothing of it is changed. StartError, StoreError."""
    refuse_other_kind(folder, SQLITE if url is None else POSTGRESQL)
    address = url if url is not None else f"sqlite:///{database_in(folder)}"
    engine = open_database(address, client="pai-scheduler export-trace")
    try:
        found = revision(engine)
    finally:
        engine.dispose()
    if found is not None:
        refuse_outdated(found, engine.dialect.name)
    if found != HEAD:
        raise StartError(
            msg(
                "The database is of another version of the scheduler. Use pai-scheduler of that version, or "
                "start the scheduler of this one first, which brings the database up to date."
            )
        )
    return Store(address)
