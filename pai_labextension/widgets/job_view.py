"""A job's state, tasks and end as HTML. Everything that comes from elsewhere is escaped."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from html import escape

from pai_scheduler.client.rest import starts_in
from pai_scheduler.job.exit_codes import shown_name
from pai_scheduler.rest.models import AttemptInfo, JobDetail, JobLink, TaskRoleStatus, TaskStatus

from .language import Language
from .times import PLACE, with_time

#: Gives the address of a port of a task, by role, index and label; None where there is none.
PortLink = Callable[[str, int, str], str | None]
#: The label of a task's own SSH server, which no browser speaks to.
_SSH = "ssh"
#: A browser shows more rows than this only slowly, and nobody reads them.
MOST_ROWS = 200


def state_word(say: Language, state: str) -> str:
    """Name a state."""
    words = {
        "WAITING": say("Waiting"),
        "RUNNING": say("Running"),
        "SUCCEEDED": say("Succeeded"),
        "FAILED": say("Failed"),
        "STOPPED": say("Stopped"),
    }
    return words.get(state, state)


def _sub_state(say: Language, sub_state: str) -> str:
    """Return what a job is doing exactly, where its state does not say it already."""
    words = {
        "DEPENDENCY_WAIT": say("for other jobs"),
        "STARTING": say("starting"),
        "RETRY_WAIT": say("to be tried again"),
        "ENDING": say("ending"),
        "DEBUG_HELD": say("failed, container kept for debugging"),
        "QUEUED": "",
        "RUNNING": "",
        "ENDED": "",
    }
    return words.get(sub_state, sub_state)


def head(say: Language, detail: JobDetail, attempts: list[AttemptInfo], held_until: int | None = None) -> str:
    """Return what the job is called, how it is, and why it waits.

    `held_until` (ms since the epoch): when the container of a failed task goes that is kept for debugging.
    """
    status = detail["jobStatus"]
    facts = [
        escape(say("Virtual cluster: {name}", name=status["virtualCluster"])),
        with_time(say("Submitted: {time}", time=PLACE), status["createdTime"]),
        escape(say("Priority: {priority}", priority=status["priority"])),
    ]
    if status["queuePlace"] is not None:
        facts.append(escape(say("Place {place} in the queue", place=status["queuePlace"])))
    launched, completed = status["appLaunchedTime"], status["appCompletedTime"]
    if launched is not None and completed is not None:
        facts.append(escape(say("Ran for {duration}", duration=duration(say, completed - launched))))
    if len(attempts) > 1:
        facts.append(escape(say("Attempt {number}", number=len(attempts))))
    sub_state = status["subState"]
    doing = escape(_sub_state(say, sub_state))
    if sub_state == "DEBUG_HELD" and held_until is not None:
        until = say("failed, container kept for debugging until {time}", time=PLACE)
        doing = with_time(until, held_until)
    word = ": ".join(filter(None, (escape(state_word(say, status["state"])), doing)))
    lines = [
        f'<span class="pai-name">{escape(detail["name"])}</span> '
        f'<span class="pai-state pai-state-{escape(status["state"])}">{word}</span>',
        f'<span class="pai-muted">{" · ".join(facts)}</span>',
    ]
    if status["waitingReason"]:
        lines.append(escape(status["waitingReason"]))
    lines += _links(say, say("Starts after:"), status["dependencies"], len(status["dependencies"]))
    lines += _links(say, say("Jobs that start after it:"), status["dependents"], status["dependentCount"])
    if status["startsWithin"] is not None:
        lines.append(escape(say.of(starts_in(status["startsWithin"]))))
    if status["latestEndTime"] is not None:
        lines.append(with_time(say("Ends at the latest: {time}", time=PLACE), status["latestEndTime"]))
    if status["endingUntil"] is not None:
        text = say("Its tasks have until {time} to end by themselves.", time=PLACE)
        lines.append(with_time(text, status["endingUntil"]))
    return "<br>".join(lines)


def _links(say: Language, title: str, links: Sequence[JobLink], count: int) -> Iterator[str]:
    """Name the jobs that a job waits for, or that wait for it; `count`: of so many the first."""
    ends = {
        "succeeded": say("on success"),
        "ended": say("however it ends"),
        "failed": say("on failure"),
    }
    named = [
        f"{link['job']} ({ends.get(link['on'], link['on'])}): "
        + (say("deleted") if link["state"] is None else state_word(say, link["state"]))
        for link in links
    ]
    if count > len(named):
        named.append(say("… and {count} more", count=count - len(named)))
    if named:
        yield escape(f"{title} {say(', ').join(named)}")


def tasks(say: Language, roles: dict[str, TaskRoleStatus], port_link: PortLink | None = None) -> str:
    """Show the tasks of each role; `port_link` gives the addresses of what listens in those that run."""
    return "".join(_role(say, name, role["taskStatuses"], port_link) for name, role in roles.items())


def ending(say: Language, detail: JobDetail, last_lines: str) -> str:
    """Explain how the job ends, as soon as that is decided; empty before."""
    status = detail["jobStatus"]
    if status["appExitCode"] is None:
        return ""
    parts: list[str] = []
    spec = status["appExitSpec"]
    number = status["appExitCode"]
    # the sentence has most often the number already, and in words what the table calls it
    said_already = re.search(rf"(?<![\w-]){number}(?!\d)", status["appExitDiagnostics"]) is not None
    if number is not None and status["state"] != "SUCCEEDED" and not said_already:
        code = say("Exit code {code}", code=number)
        parts.append(escape(f"{code} ({shown_name(spec['phrase'])})" if spec else code))
    if status["appExitTriggerTaskRoleName"] and not status["appExitDiagnostics"]:
        parts.append(
            escape(
                say(
                    "Decided by task {index} of {role}.",
                    index=status["appExitTriggerTaskIndex"],
                    role=status["appExitTriggerTaskRoleName"],
                )
            )
        )
    told = [
        status["appExitDiagnostics"],
        status["appExitMessages"]["container"],
        status["appExitMessages"]["runtime"],
    ]
    sentences = [*dict.fromkeys(text for text in told if text)]
    # what is said of the job names the task, and has in it what is said of the task
    parts += [
        escape(one) for one in sentences if not any(one in other for other in sentences if other != one)
    ]
    if last_lines and status["state"] == "FAILED":
        parts.append(f"{escape(say('The last lines of its output:'))}<pre>{escape(last_lines)}</pre>")
    kind = {"SUCCEEDED": "success", "FAILED": "error"}.get(status["state"], "plain")
    return f'<div class="pai-notice pai-{kind}" role="status">{"<br>".join(parts)}</div>' if parts else ""


def _role(say: Language, name: str, statuses: list[TaskStatus], port_link: PortLink | None) -> str:
    counts = Counter(status["taskState"] for status in statuses)
    summary = say(", ").join(f"{count} × {state_word(say, state)}" for state, count in counts.items())
    columns = [say("Task"), say("State"), say("Machine"), say("Address"), say("Ports"), say("Exit code")]
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    rows = "".join(_row(say, name, status, port_link) for status in statuses[:MOST_ROWS])
    more = len(statuses) - MOST_ROWS
    rest = (
        f'<tr><td colspan="6">{escape(say("… and {count} more", count=more))}</td></tr>' if more > 0 else ""
    )
    return (
        f'<table class="pai-tasks"><caption>{escape(name)}: {escape(summary)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}{rest}</tbody></table>"
    )


def _row(say: Language, role: str, status: TaskStatus, port_link: PortLink | None) -> str:
    code = status["containerExitCode"]
    ports = "; ".join(_port(role, status, label, port_link) for label in status["containerPorts"])
    cells = [
        status["taskIndex"],
        state_word(say, status["taskState"]),
        status.get("node", ""),
        status["containerIp"],
    ]
    shown = [*(escape(str(cell)) for cell in cells), ports, "" if code is None else str(code)]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in shown) + "</tr>"


def _port(role: str, status: TaskStatus, label: str, port_link: PortLink | None) -> str:
    words = escape(f"{label}: {status['containerPorts'][label]}")
    runs = status["taskState"] == "RUNNING" and label != _SSH
    address = port_link(role, status["taskIndex"], label) if runs and port_link is not None else None
    if address is None:
        return words
    return f'<a href="{escape(address, quote=True)}" target="_blank" rel="noopener">{words}</a>'


def duration(say: Language, milliseconds: int) -> str:
    """Return how long something took."""
    seconds = max(0, milliseconds) // 1000
    hours, minutes = seconds // 3600, seconds // 60 % 60
    if hours:
        return say("{hours} h {minutes} min", hours=hours, minutes=minutes)
    if minutes:
        return say("{minutes} min {seconds} s", minutes=minutes, seconds=seconds % 60)
    return say("{seconds} s", seconds=seconds)
