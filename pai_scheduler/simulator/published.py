"""Reads traces and lists of machines as they were published: Muri's (SIGCOMM 2022), Alibaba's of 2023.

Which one a file is, its columns say. GPUs are whole: a task that shares one takes it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from pai_scheduler.cluster.node import Gpu, Node

from .trace import TraceJob, TraceRole, read_rows, read_trace

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
