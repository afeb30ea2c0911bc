"""Traces: jobs with times of submission and run times, as a CSV or as they were published."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TextIO, TypeVar

from pai_scheduler.cluster.node import Gpu, Node
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import JobSpec, TaskRole

# A trace: jobs with their times of submission and how long they ran, as a CSV; read and written.
#
# One line is one task role; lines of the same `job` that follow one another are one job. Columns that are
# not there, and cells that are empty, have their default. Times are seconds outside, ms within.

#: What a trace may have, in the order in which one is written.
COLUMNS = (
    *("job", "user", "virtualCluster", "submitSeconds", "runSeconds", "tasks", "gpus", "gpuType"),
    *("cpus", "memoryMB", "storageGB", "priority", "maxRunSeconds", "preemptible", "program"),
    "terminationGraceSeconds",
)
NEEDED = ("submitSeconds", "runSeconds")
_Number = TypeVar("_Number", int, float)
_WORDS = {"": True, "true": True, "1": True, "false": False, "0": False}


class TraceError(Exception):
    """A trace cannot be used; `message` is a sentence about it."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


@dataclass(frozen=True, slots=True)
class TraceRole:
    """So many equal tasks, and what each of them asks for: memory in MB, storage in GB."""

    tasks: int = 1
    gpus: int = 0
    cpus: int = 0
    memory_mb: int = 0
    storage_gb: int = 0


@dataclass(frozen=True, slots=True)
class TraceJob:
    """A recorded job. `submitted`: ms since any moment, the same for all; `run_ms`: how long it runs."""

    name: str
    user: str
    virtual_cluster: str
    submitted: int
    run_ms: int
    roles: tuple[TraceRole, ...]
    gpu_type: str | None = None
    priority: int | None = None
    max_run_seconds: int | None = None
    preemptible: bool = True
    #: what it runs: jobs with the same image and commands have the same
    program: str = ""
    #: for how long it keeps its place when it is stopped; None: as the cluster has it
    grace_seconds: int | None = None

    @property
    def gpus(self) -> int:
        """Count the GPUs of all its tasks."""
        return sum(role.tasks * role.gpus for role in self.roles)

    @property
    def spec(self) -> JobSpec:
        """Return it as the scheduler takes a job."""
        extras = {
            "priority": self.priority,
            "maxRunSeconds": self.max_run_seconds,
            "terminationGraceSeconds": self.grace_seconds,
        }
        said: dict[str, object] = {key: value for key, value in extras.items() if value is not None}
        if not self.preemptible:
            said["preemptible"] = False
        roles = (
            TaskRole(
                f"role{number}",
                "",
                role.tasks,
                role.cpus,
                role.memory_mb,
                gpu_number=role.gpus,
                storage_gb=role.storage_gb,
            )
            for number, role in enumerate(self.roles)
        )
        return JobSpec(
            self.name,
            self.program,
            tuple(roles),
            virtual_cluster=self.virtual_cluster,
            gpu_type=self.gpu_type,
            extras=said,
        )


def read_trace(lines: Iterable[str]) -> list[TraceJob]:
    """Read a trace with the columns of `COLUMNS`; TraceError with the line where it is wrong."""
    rows = csv.DictReader(lines)
    header = rows.fieldnames or ()
    unknown = [name for name in header if name not in COLUMNS]
    missing = [name for name in NEEDED if name not in header]
    if missing or unknown:
        name = (missing or unknown)[0]
        text = (
            msg("it has no column {column}. Known are: {known}", column=name, known=", ".join(COLUMNS))
            if missing
            else msg(
                "column {column} is not known. Known are: {known}", column=name, known=", ".join(COLUMNS)
            )
        )
        raise TraceError(text)
    return list(_jobs(read_rows(rows)))


def read_rows(rows: csv.DictReader[str]) -> Iterator[Row]:
    """Return the rows of a CSV; TraceError where one has too few or too many cells."""
    try:
        for cells in rows:
            if None in cells or None in cells.values():
                raise TraceError(
                    msg("line {line}: it has not as many cells as the first line", line=rows.line_num)
                )
            yield Row(cells, rows.line_num)
    except csv.Error as error:
        raise TraceError(msg("line {line}: {why}", line=rows.line_num, why=error)) from error


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a trace; TraceError with the place where a cell is wrong."""

    cells: Mapping[str, str]
    line: int

    def text(self, column: str, default: str = "") -> str:
        """Return a cell's text."""
        return (self.cells.get(column) or "").strip() or default

    def whole(self, column: str, default: int | None = None, *, least: int = 0) -> int:
        """Read a whole number, `least` or more."""
        text = self.text(column)
        if not text and default is not None:
            return default
        return self._read(column, text, int, least, msg("a whole number, {least} or more", least=least))

    def number(self, column: str) -> float:
        """Read a number that is not negative."""
        return self._read(column, self.text(column), float, 0, msg("a number, 0 or more"))

    def milliseconds(self, column: str) -> int:
        """Read seconds; return ms."""
        return round(1000 * self.number(column))

    def wrong(self, column: str, text: str, expected: Message) -> TraceError:
        """Return the error that says what a cell should have been."""
        return TraceError(
            msg(
                "line {line}: {column} must be {expected}, not “{text}”",
                line=self.line,
                column=column,
                expected=expected,
                text=text,
            )
        )

    def _read(
        self, column: str, text: str, read: Callable[[str], _Number], least: int, expected: Message
    ) -> _Number:
        try:
            value = read(text)
        except ValueError:
            raise self.wrong(column, text, expected) from None
        if not math.isfinite(value) or value < least:
            raise self.wrong(column, text, expected)
        return value


def _jobs(rows: Iterable[Row]) -> Iterator[TraceJob]:
    first: Row | None = None
    roles: list[TraceRole] = []
    known: dict[TraceRole, TraceRole] = {}
    for row in rows:
        if first is not None and not (row.text("job") and row.text("job") == first.text("job")):
            yield _job(first, roles)
            first, roles = None, []
        if first is None:
            first = row
        role = TraceRole(
            row.whole("tasks", 1, least=1),
            row.whole("gpus", 0),
            row.whole("cpus", 0),
            row.whole("memoryMB", 0),
            row.whole("storageGB", 0),
        )
        # (a million jobs ask for few different things)
        roles.append(known.setdefault(role, role))
    if first is not None:
        yield _job(first, roles)


def _job(row: Row, roles: Sequence[TraceRole]) -> TraceJob:
    preemptible = row.text("preemptible").lower()
    if preemptible not in _WORDS:
        raise row.wrong("preemptible", preemptible, msg("true or false"))
    return TraceJob(
        row.text("job", str(row.line)),
        row.text("user", "somebody"),
        row.text("virtualCluster", "default"),
        row.milliseconds("submitSeconds"),
        row.milliseconds("runSeconds"),
        tuple(roles),
        row.text("gpuType") or None,
        row.whole("priority") if row.text("priority") else None,
        row.whole("maxRunSeconds", least=1) if row.text("maxRunSeconds") else None,
        _WORDS[preemptible],
        row.text("program"),
        row.whole("terminationGraceSeconds") if row.text("terminationGraceSeconds") else None,
    )


def write_trace(file: TextIO, jobs: Iterable[TraceJob]) -> int:
    """Write jobs so that `read_trace` gives the same; return how many they were."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    count = 0
    for job in jobs:
        count += 1
        for role in job.roles:
            writer.writerow(
                (
                    *(job.name, job.user, job.virtual_cluster, _seconds(job.submitted), _seconds(job.run_ms)),
                    *(role.tasks, role.gpus, job.gpu_type or "", role.cpus, role.memory_mb, role.storage_gb),
                    "" if job.priority is None else job.priority,
                    "" if job.max_run_seconds is None else job.max_run_seconds,
                    "true" if job.preemptible else "false",
                    job.program,
                    "" if job.grace_seconds is None else job.grace_seconds,
                )
            )
    return count


def _seconds(milliseconds: int) -> str:
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}".rstrip("0").rstrip(".")


# Reads traces and lists of machines as they were published: Muri's (SIGCOMM 2022), Alibaba's of 2023.
#
# Which one a file is, its columns say. GPUs are whole: a task that shares one takes it.

_MURI = {"num_gpu", "submit_time", "iterations", "iteration_time"}
_ALIBABA = {"name", "cpu_milli", "memory_mib", "num_gpu", "creation_time", "deletion_time"}
_ALIBABA_NODES = {"sn", "cpu_milli", "memory_mib", "gpu", "model"}
#: What Muri's own simulator multiplies the time of an iteration by.
_MURI_OVERHEAD = 1.015


def read_any_trace(lines: Iterable[str], nodes: Sequence[Node]) -> list[TraceJob]:
    """Read a trace in whichever known form; TraceError where it is none, or wrong.

    A job of more GPUs than a machine has is split into tasks of as many as the largest machine has.
    """
    header, lines = _peek(lines)
    largest = max((len(node.gpus) for node in nodes), default=0)
    if header >= _MURI:
        return list(_muri(lines, largest))
    if header >= _ALIBABA:
        return list(_alibaba(lines))
    return read_trace(lines)


def read_nodes(lines: Iterable[str]) -> list[Node] | None:
    """Read a published list of machines; None: the file is none. TraceError."""
    header, lines = _peek(lines)
    if not header >= _ALIBABA_NODES:
        return None
    return [
        Node(
            row.text("sn"),
            row.whole("cpu_milli") // 1000,
            row.whole("memory_mib"),
            0,
            tuple(Gpu(index, row.text("model"), simulated=True) for index in range(row.whole("gpu"))),
        )
        for row in read_rows(csv.DictReader(lines))
    ]


def _peek(lines: Iterable[str]) -> tuple[set[str], Iterable[str]]:
    rest = iter(lines)
    first = next(rest, "")
    return set(next(csv.reader([first]), ())), chain([first], rest)


def _muri(lines: Iterable[str], largest: int) -> Iterator[TraceJob]:
    for row in read_rows(csv.DictReader(lines)):
        gpus = row.whole("num_gpu", least=1)
        run_ms = round(row.whole("iterations") * row.number("iteration_time") * _MURI_OVERHEAD)
        yield TraceJob(
            row.text("job_id", str(row.line)),
            "somebody",
            "default",
            row.whole("submit_time"),
            run_ms,
            _tasks_of(gpus, largest),
            program=row.text("model_name"),
        )


def _tasks_of(gpus: int, largest: int) -> tuple[TraceRole, ...]:
    if gpus <= largest or not largest:
        return (TraceRole(1, gpus),)
    whole, rest = divmod(gpus, largest)
    roles = (TraceRole(whole, largest),)
    return (*roles, TraceRole(1, rest)) if rest else roles


def _alibaba(lines: Iterable[str]) -> Iterator[TraceJob]:
    for row in read_rows(csv.DictReader(lines)):
        created, deleted = row.whole("creation_time"), row.whole("deletion_time")
        begun = row.whole("scheduled_time", created)
        types = row.text("gpu_spec")
        yield TraceJob(
            row.text("name", str(row.line)),
            "somebody",
            "default",
            1000 * created,
            1000 * max(0, deleted - begun),
            (
                TraceRole(
                    gpus=row.whole("num_gpu"),
                    cpus=-(-row.whole("cpu_milli") // 1000),
                    memory_mb=row.whole("memory_mib"),
                ),
            ),
            # of several types that would do the scheduler cannot be told: any may be taken
            types if types and "|" not in types else None,
        )
