"""Jobs, machines and virtual clusters as a terminal shows them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pai_scheduler.client.rest import about_so_long, start_in_words
from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.exit_codes import shown_name
from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo
from pai_scheduler.rest.models import JobDetail, JobLink, JobSummary, TaskStatus, Validation

from .session import duration, moment, pairs, table

#: So many jobs are named that wait for one, or that one waits for.
_SHOWN_LINKS = 10


def jobs_table(jobs: Sequence[JobSummary], locale: str) -> str:
    """Lay out a list of jobs; whose they are stands there when they are not all one user's."""
    return table(*jobs_rows(jobs, locale))


def jobs_rows(jobs: Sequence[JobSummary], locale: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a list of jobs."""
    several = len({job["username"] for job in jobs}) > 1
    header = [
        msg("NAME"),
        *([msg("USER")] if several else []),
        msg("STATE"),
        msg("VIRTUAL CLUSTER"),
        msg("TASKS"),
        msg("GPUS"),
        msg("CREATED"),
        msg("TOOK"),
        msg("EXIT"),
    ]
    rows = [
        [
            job["name"],
            *([job["username"]] if several else []),
            _state(job["state"], job["subState"]),
            job["virtualCluster"],
            str(job["totalTaskNumber"]),
            str(job["totalGpuNumber"]),
            moment(job["createdTime"]),
            _took(job["createdTime"], job["completedTime"]),
            _number(job["appExitCode"]),
        ]
        for job in jobs
    ]
    return _words(header, locale), rows


def show_job(detail: JobDetail, locale: str) -> str:
    """Lay out one job: its state and why, then its tasks."""
    status = detail["jobStatus"]
    spec, starts = status["appExitSpec"], status["startsWithin"]
    exit_code = _number(status["appExitCode"]) if status["appExitCode"] is not None else ""
    about = [
        (msg("Job"), f"{detail['name']} ({status['username']})"),
        (msg("State"), _state(status["state"], status["subState"])),
        (msg("Waiting"), status["waitingReason"]),
        (msg("Starts after"), _links(status["dependencies"], len(status["dependencies"]), locale)),
        (msg("Jobs after it"), _links(status["dependents"], status["dependentCount"], locale)),
        (msg("Starts in"), "" if starts is None else about_so_long(starts).in_locale(locale)),
        (msg("Virtual cluster"), status["virtualCluster"]),
        (msg("Created"), moment(status["createdTime"])),
        (msg("Started"), moment(status["appLaunchedTime"]) if status["appLaunchedTime"] else ""),
        (msg("Ends at the latest"), moment(status["latestEndTime"]) if status["latestEndTime"] else ""),
        (msg("Ends at the latest"), moment(status["endingUntil"]) if status["endingUntil"] else ""),
        (msg("Ended"), moment(status["completedTime"]) if status["completedTime"] else ""),
        (msg("Retries"), str(status["retries"]) if status["retries"] else ""),
        (msg("Exit code"), f"{exit_code} {shown_name(spec['phrase'])}" if exit_code and spec else exit_code),
        (msg("Why"), status["appExitDiagnostics"]),
        (msg("Page"), detail.get("consoleUrl", "")),
    ]
    tasks = [
        _task_row(f"{role}-{task['taskIndex']}", task)
        for role, tasks in detail["taskRoles"].items()
        for task in tasks["taskStatuses"]
    ]
    header = [
        msg("TASK"),
        msg("STATE"),
        msg("NODE"),
        msg("ADDRESS"),
        msg("PORTS"),
        msg("GPU NUMBERS"),
        msg("EXIT"),
    ]
    block = pairs([(name.in_locale(locale), value) for name, value in about])
    return f"{block}\n\n{table(_words(header, locale), tasks)}"


def _links(links: Sequence[JobLink], count: int, locale: str) -> str:
    """Name jobs that wait for others, or that are waited for, with their states: of so many the first."""
    shown = links[:_SHOWN_LINKS]
    named = [
        f"{link['job']} ({link['on']}): {link['state'] or msg('deleted').in_locale(locale)}" for link in shown
    ]
    if count > len(shown):
        named.append(msg("{count} more", count=count - len(shown)).in_locale(locale))
    return ", ".join(named)


def nodes_table(nodes: Sequence[NodeInfo], locale: str) -> str:
    """Lay out the machines: used of total."""
    return table(*nodes_rows(nodes, locale))


def nodes_rows(nodes: Sequence[NodeInfo], locale: str) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the machines."""
    header = [
        msg("NODE"),
        msg("RACK"),
        msg("STATE"),
        msg("CPUS (used/all)"),
        msg("MEMORY MB (used/all)"),
        msg("GPUS (used/all)"),
        msg("HELD BY"),
        msg("DISK GB (free/all)"),
    ]
    rows = [
        [
            node["name"],
            node["rack"] or "-",
            _node_state(node, locale),
            f"{node['used']['cpus']}/{node['total']['cpus']}",
            f"{node['used']['memoryMB']}/{node['total']['memoryMB']}",
            _gpus(node, locale),
            _holders(node),
            _disk(node),
        ]
        for node in nodes
    ]
    return _words(header, locale), rows


def _node_state(node: NodeInfo, locale: str) -> str:
    words = _closed_state(node, locale)
    planned = [one for one in node.get("maintenance", ()) if one["begin"] > (_since(node) or 0)]
    if not planned:
        return words
    first = planned[0]
    text = msg(
        "{state}, maintenance from {begin} to {end}: {reason}",
        state=words,
        begin=moment(first["begin"]),
        end=moment(first["end"]),
        reason=first["reason"],
    )
    return text.in_locale(locale)


def _since(node: NodeInfo) -> int | None:
    return None if node["closed"] is None else node["closed"]["since"]


def _closed_state(node: NodeInfo, locale: str) -> str:
    if (closed := node["closed"]) is None:
        return node["state"]
    if "until" in closed:
        text = msg(
            "{state}, in maintenance until {end}: {reason}",
            state=node["state"],
            end=moment(closed["until"]),
            reason=closed["reason"],
        )
        return text.in_locale(locale)
    words = msg(
        "{state}, closed by {user}: {reason}",
        state=node["state"],
        user=closed["by"],
        reason=closed["reason"],
    )
    return words.in_locale(locale)


def virtual_clusters_table(clusters: Mapping[str, VirtualClusterInfo], locale: str) -> str:
    """Lay out the virtual clusters; capacities in per cent."""
    header = [
        msg("VIRTUAL CLUSTER"),
        msg("GUARANTEED %"),
        msg("AT MOST %"),
        msg("USED %"),
        msg("GPUS (used/all)"),
        msg("RUNNING"),
        msg("WAITING"),
        msg("STATE"),
        msg("SHORTER FIRST"),
        msg("FAIR SHARE"),
        msg("PLACEMENT"),
        msg("YOUR GPU HOURS LATELY"),
        msg("LEVELS (GPU h)"),
        msg("SHORTEST REMAINING"),
    ]
    rows = [
        [
            name,
            f"{cluster['capacity']:g}",
            f"{cluster['maxCapacity']:g}",
            f"{cluster['usedCapacity']:.4g}",
            f"{cluster['resourcesUsed']['GPUs']}/{cluster['resourcesTotal']['GPUs']}",
            str(cluster["numActiveJobs"]),
            str(cluster["numPendingJobs"]),
            cluster["status"],
            str(cluster["shorterFirst"] or "-"),
            f"{hours} h" if (hours := cluster["fairShareHours"]) else "-",
            cluster["placement"],
            f"{used['gpuHours']:.1f} ({used['percent']:g} %)" if (used := cluster.get("usedLately")) else "-",
            ", ".join(f"{one:g}" for one in cluster["levelGpuHours"]) or "-",
            _words([msg("yes")], locale)[0] if cluster["shortestRemaining"] else "-",
        ]
        for name, cluster in clusters.items()
    ]
    return table(_words(header, locale), rows)


def _task_row(name: str, task: TaskStatus) -> list[str]:
    gpus = [
        str(index)
        for index in range(task["containerGpus"].bit_length())
        if task["containerGpus"] >> index & 1
    ]
    ports = [f"{label}:{numbers}" for label, numbers in task["containerPorts"].items()]
    return [
        name,
        task["taskState"],
        task["node"] or "-",
        task["containerIp"] or "-",
        " ".join(ports) or "-",
        ",".join(gpus) or "-",
        _number(task["containerExitCode"]),
    ]


def _disk(node: NodeInfo) -> str:
    disk = node["disk"]
    return "-" if disk is None else f"{disk['freeMB'] / 1024:.1f}/{disk['totalMB'] / 1024:.1f}"


def _gpus(node: NodeInfo, locale: str) -> str:
    simulated = {gpu["type"] for gpu in node["gpus"] if gpu["simulated"]}
    note = msg("simulated").in_locale(locale)
    return (
        ", ".join(
            f"{kind} {node['used']['gpus'].get(kind, 0)}/{count}"
            + (f" ({note})" if kind in simulated else "")
            for kind, count in node["total"]["gpus"].items()
        )
        or "-"
    )


def _holders(node: NodeInfo) -> str:
    users = Counter(gpu["user"] for gpu in node["gpus"] if gpu["user"])
    return ", ".join(f"{user} {count}" for user, count in users.most_common()) or "-"


def _state(state: str, sub_state: str) -> str:
    return state if sub_state in ("", "ENDED", state) else f"{state} ({sub_state})"


def _took(created: int, completed: int | None) -> str:
    return duration((completed if completed is not None else int(time.time() * 1000)) - created)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _words(header: Sequence[Message], locale: str) -> list[str]:
    return [title.in_locale(locale) for title in header]


def limits_in_words(validation: Validation) -> Iterator[Message]:
    """Return when a job would start, its order and its limits: its order only where it would have to wait."""
    yield from start_in_words(validation)
    limits = validation["limits"]
    if limits is None:
        return
    if validation["fits"] == "later":
        yield msg(
            "Its priority is {priority}, its place in the queue would be {place}.",
            priority=limits["priority"],
            place=limits["queuePlace"],
        )
    if limits["maxRunSeconds"] is not None:
        yield msg("It may run for {seconds} s.", seconds=limits["maxRunSeconds"])
    if limits["gpusPerUser"] is not None:
        yield counted(
            "You hold {held} of the {count} GPU that one user may hold there.",
            "You hold {held} of the {count} GPUs that one user may hold there.",
            held=limits["gpusHeld"],
            count=limits["gpusPerUser"],
        )
