"""`pai-scheduler simulate`: what the scheduler makes of recorded jobs on the machines of a cluster file."""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from io import TextIOWrapper
from math import ceil
from pathlib import Path
from typing import Any, TextIO

import yaml

from pai_scheduler.cluster.config_fields import DefinitionError, read_mapping
from pai_scheduler.cluster.definition import (
    ORDERS,
    Definition,
    Order,
    VirtualCluster,
    merge_nodes,
    read_order,
)
from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.cluster.queue_index import NEVER
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.data_folder.start_error import StartError
from pai_scheduler.i18n import msg
from pai_scheduler.simulator import simulation
from pai_scheduler.simulator.report import (
    Fared,
    Measures,
    Times,
    allocations,
    document,
    draw,
    measure,
    span_text,
)
from pai_scheduler.simulator.simulation import Replay, replay
from pai_scheduler.simulator.traces import TraceError, TraceJob, read_any_trace, read_nodes

from .components import read_cluster

# Policies that `pai-scheduler simulate` tries one after the other, in place of the cluster file's orders.

#: Who came first is first.
FIFO = "fifo"
#: What a policy is that is only named, and cannot do without a number.
_USUAL = {"shorterFirst": 10, "fairShare": {"halfLifeHours": 168}}


@dataclass(frozen=True, slots=True)
class SimulatedPolicy:
    """An order for all virtual clusters. `name`: as it was written; `order` None: as the file has them."""

    name: str
    order: Order | None = None

    def applied(self, clusters: Iterable[VirtualCluster]) -> list[VirtualCluster]:
        """Return the virtual clusters with this order."""
        if self.order is None:
            return list(clusters)
        return [replace(cluster, **self.order._asdict()) for cluster in clusters]


def read_policy(text: str) -> SimulatedPolicy:
    """Read a policy: `fifo`, a field of the cluster file by its name, or with a value; StartError.

    A value is YAML as in the cluster file: `leastAttained: {gpuHours: [1, 10]}`.
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        document = None
    if document == FIFO:
        return SimulatedPolicy(text, Order())
    if isinstance(document, str) and document in ORDERS:
        document = {document: _USUAL.get(document, {})}
    try:
        fields = read_mapping(document, "", ORDERS)
        order = read_order(fields, "")
        if order == Order():
            raise DefinitionError("", msg("It says nothing."))
    except DefinitionError as error:
        raise StartError(
            msg(
                "{policy} is no policy: {reason} Say fifo or one of {known}, also with a value as in the "
                "cluster file.",
                policy=text,
                reason=f"{error.path.lstrip('.')}: {error.message}" if error.path else error.message,
                known=", ".join(ORDERS),
            )
        ) from error
    return SimulatedPolicy(text, order)


# `pai-scheduler simulate`: what the scheduler makes of recorded jobs on the machines of a cluster file.

_GZIP = b"\x1f\x8b"
#: What a declared node may leave to the engine, and what a task asks of it.
_RESOURCES = (
    ("cpus", "cpus"),
    ("memoryMB", "memory_mb"),
    ("storageGB", "storage_gb"),
)


@dataclass(frozen=True, slots=True)
class _Cluster:
    definition: Definition
    nodes: Sequence[Node]


def run(options: argparse.Namespace) -> int:
    """Replay a trace and tell what came out; return the exit code. StartError: why it cannot be done."""
    if options.cluster is None:
        raise StartError(msg("Say on which machines: --cluster FILE, with nodes."))
    cluster = _read_cluster(options.cluster)
    jobs = _read_jobs(options.trace, cluster)
    first = min(job.submitted for job in jobs)
    jobs = [replace(job, submitted=first + round((job.submitted - first) / options.load)) for job in jobs]
    if options.known_times is not None:
        jobs = [
            replace(job, max_run_seconds=max(1, ceil(options.known_times * job.run_ms / 1000)))
            for job in jobs
        ]
    if options.plot is not None and find_spec("matplotlib") is None:
        raise StartError(msg("--plot draws with matplotlib, which is missing: pip install matplotlib."))
    policies = [read_policy(text) for text in options.policy] or [SimulatedPolicy("")]
    if len(policies) > 1:
        return _compare(policies, jobs, cluster, options)
    began = time.monotonic()
    replayed = _replay(policies[0], jobs, cluster, options)
    seconds = time.monotonic() - began
    if options.plot is not None:
        title = f"{options.trace.name} on {options.cluster.name}"
        with writing(options.plot) as file:
            file.write(draw(replayed, title))
    if options.jobs is not None:
        with writing(options.jobs) as file:
            _write_jobs(file, replayed)
    if options.json:
        print(json.dumps(_document(replayed, options), indent=2, ensure_ascii=False))
    elif options.without_ends:
        _print_allocations(replayed)
    else:
        _print(measure(replayed), seconds)
        if options.estimates:
            _print_accuracy(simulation.Accuracy.of(replayed.jobs))
    return 0


def _compare(
    policies: Sequence[SimulatedPolicy],
    jobs: Sequence[TraceJob],
    cluster: _Cluster,
    options: argparse.Namespace,
) -> int:
    """Replay the trace under one policy after the other, and tell what came out side by side."""
    if options.plot is not None or options.jobs is not None:
        raise StartError(msg("--plot and --jobs are for one policy: give one."))
    found: dict[str, Replay] = {}
    for policy in policies:
        print(f"{policy.name} …", file=sys.stderr, flush=True)
        found[policy.name] = _replay(policy, jobs, cluster, options)
    if options.json:
        documents = {name: _document(replayed, options) for name, replayed in found.items()}
        print(json.dumps({"policies": documents}, indent=2, ensure_ascii=False))
    elif options.without_ends:
        for name, replayed in found.items():
            print(f"{name}:")
            _print_allocations(replayed)
    else:
        width = max(map(len, found))
        for name, replayed in found.items():
            measures = measure(replayed)
            if name == policies[0].name:
                _print_heads(width, "  GPUs in use  stopped for others")
            ends = f"  {measures.gpu_use:>9.1f} %  {measures.all.preemptions:>18,}"
            _print_row(name, measures.all, width, ends)
    return 0


def _replay(
    policy: SimulatedPolicy, jobs: Sequence[TraceJob], cluster: _Cluster, options: argparse.Namespace
) -> Replay:
    definition = cluster.definition
    grace_seconds = definition.grace_seconds if options.grace is None else options.grace
    settings = CoreSettings(
        grace_seconds=grace_seconds,
        max_grace_seconds=max(definition.max_grace_seconds, grace_seconds),
        storage_request_gb=definition.storage_request_gb,
        overtake_limit=NEVER if options.without_ends else definition.overtake_limit,
    )
    return replay(
        jobs,
        cluster.nodes,
        policy.applied(definition.virtual_clusters.values()),
        settings,
        ends=not options.without_ends,
        estimate=options.estimates,
        checkpoints=options.checkpoints,
        tell=_tell,
    )


def _document(replayed: Replay, options: argparse.Namespace) -> dict[str, Any]:
    found = document(measure(replayed))
    if options.without_ends:
        allocated = allocations(replayed).items()
        found["allocatedPercent"] = {str(asked): round(taken, 3) for asked, taken in allocated}
    if options.estimates:
        found["estimates"] = simulation.document(simulation.Accuracy.of(replayed.jobs))
    return found


def _read_cluster(path: Path) -> _Cluster:
    """Read a cluster file, or a published list of machines."""
    try:
        with _open(path) as file:
            nodes = read_nodes(file)
    except TraceError as error:
        raise _unusable(path, error) from error
    if nodes is not None:
        return _Cluster(Definition(), nodes)
    definition = read_cluster(path)
    if not definition.nodes:
        raise StartError(
            msg(
                "The cluster file {file} names no machines: list them under nodes, with GPUs.",
                file=path,
            )
        )
    merged = merge_nodes(definition, (), one_machine=True)
    # (what is not there is as good as there)
    return _Cluster(definition, [replace(node, state=NodeState.READY) for node in merged])


def _read_jobs(path: Path, cluster: _Cluster) -> list[TraceJob]:
    try:
        with _open(path) as file:
            jobs = read_any_trace(file, cluster.nodes)
        _check(jobs, cluster)
    except TraceError as error:
        raise _unusable(path, error) from error
    return jobs


def _check(jobs: Sequence[TraceJob], cluster: _Cluster) -> None:
    """Refuse a trace that the cluster cannot be asked about; TraceError."""
    if not jobs:
        raise TraceError(msg("there is no job in it"))
    known = cluster.definition.virtual_clusters
    for job in jobs:
        if job.virtual_cluster not in known:
            raise TraceError(
                msg(
                    "job {job} is of the virtual cluster {vc}, which the cluster file does not have",
                    job=job.name,
                    vc=job.virtual_cluster,
                )
            )
    roles = {role for job in jobs for role in job.roles}
    for field, attribute in _RESOURCES:
        missing = [node.name for node in cluster.definition.nodes if getattr(node, attribute) is None]
        if missing and any(getattr(role, attribute) for role in roles):
            raise TraceError(
                msg(
                    "its jobs ask for {field}, and the cluster file does not say how much node {node} has",
                    field=field,
                    node=missing[0],
                )
            )


def _unusable(path: Path, error: TraceError) -> StartError:
    return StartError(msg("The file {file} cannot be used: {reason}", file=path, reason=error.message))


@contextmanager
def _open(path: Path) -> Iterator[TextIO]:
    """Open a file to read, also one that gzip made; StartError where that fails, or it is not UTF-8."""
    try:
        with open(path.expanduser(), "rb") as raw:
            packed = raw.read(2) == _GZIP
            raw.seek(0)
            if packed:
                with gzip.open(raw, "rt", encoding="utf-8-sig", newline="") as text:
                    yield text
            else:
                with TextIOWrapper(raw, encoding="utf-8-sig", newline="") as text:
                    yield text
    except (OSError, EOFError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StartError(msg("The file {file} cannot be read: {reason}", file=path, reason=reason)) from error


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Open a file to write text into; StartError where that fails."""
    try:
        with open(path.expanduser(), "w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(
            msg("The file {file} cannot be written: {reason}", file=path, reason=reason)
        ) from error


def _tell(count: int) -> None:
    print(f"{count:,} jobs submitted …", file=sys.stderr, flush=True)


def _write_jobs(file: TextIO, replayed: Replay) -> None:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("job", "virtualCluster", "submitSeconds", "startSeconds", "endSeconds", "preemptions"))
    for one in replayed.jobs:
        times = (one.job.submitted, one.started, one.ended)
        shown = ("" if time is None else f"{time / 1000:.3f}" for time in times)
        writer.writerow((one.job.name, one.job.virtual_cluster, *shown, one.preemptions))


def _print(found: Measures, seconds: float) -> None:
    jobs = found.all
    print(f"{jobs.jobs:,} jobs on {found.gpus:,} GPUs, replayed in {seconds:.1f} s")
    print(f"from first to last    {span_text(found.makespan)}")
    print(f"GPUs in use           {found.gpu_use:.1f} %")
    print(
        f"free as jobs waited   {found.idle_while_waiting:.1f} % (of all; it would do for a job that waits)"
    )
    print(f"fragmentation         {found.fragmentation:.1f} % (of the free ones; on machines partly in use)")
    print(f"waiting, on average   {found.waiting:.1f} jobs")
    if jobs.preemptions:
        print(
            f"stopped for others    {jobs.preemptions:,} times, {jobs.lost_gpu_hours:,.1f} GPU hours in vain"
        )
    if jobs.at_time_limit:
        print(f"ended by time limit   {jobs.at_time_limit:,}")
    if found.never_started_count:
        names = ", ".join(found.never_started)
        more = " …" if found.never_started_count > len(found.never_started) else ""
        print(f"never started         {found.never_started_count:,}: {names}{more}")
    print()
    _print_heads()
    _print_row("all", jobs)
    if len(found.virtual_clusters) > 1:
        for name, fared in found.virtual_clusters.items():
            _print_row(name, fared)


def _print_heads(width: int = 22, more: str = "") -> None:
    times = f"{'completion: mean':>18} {'99 %':>10}  {'queueing: mean':>16} {'99 %':>10}"
    print(f"{'':<{width}}{'jobs':>9}  {times}{more}")


def _print_row(name: str, fared: Fared, width: int = 22, more: str = "") -> None:
    def pair(times: Times, width: int) -> str:
        return f"{times.mean:>{width},.0f} s {times.p99:>8,.0f} s"

    times = f"{pair(fared.completion, 16)}  {pair(fared.queueing, 14)}"
    print(f"{name:<{width}}{fared.jobs:>9,}  {times}{more}")


def _print_accuracy(found: simulation.Accuracy) -> None:
    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole if whole else 0:.1f} %"

    print()
    print(f"{found.waited:,} jobs did not start at once; {share(found.told, found.waited)} were told when.")
    if found.ratio is not None:
        print(f"within half and twice {share(found.true, found.told)}")
        print(f"started sooner        {share(found.sooner, found.told)} (in less than half the time)")
        print(f"started later         {share(found.later, found.told)} (in more than twice the time)")
        print(f"real wait             {found.ratio:.2f} of what was told (median)")


def _print_allocations(replayed: Replay) -> None:
    started = sum(one.started is not None for one in replayed.jobs)
    print(
        f"{started:,} of {len(replayed.jobs):,} jobs found room on {replayed.curve.gpus:,} GPUs; none ended."
    )
    for asked, taken in allocations(replayed).items():
        print(f"{asked:>4} % asked for: {taken:.2f} % taken")
