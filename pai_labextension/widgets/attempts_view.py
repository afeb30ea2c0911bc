"""A job's attempts as an HTML table: when each began, how long it ran, and why it ended."""

from __future__ import annotations

from html import escape

from pai_scheduler.job.exit_codes import shown_name
from pai_scheduler.rest.models import AttemptInfo

from .job_view import MOST_ROWS, duration, state_word
from .language import Language
from .times import when


def history(say: Language, attempts: list[AttemptInfo], job_ended: bool) -> str:
    """Show the attempts, the newest first; empty where there is but one, of which the job itself tells all.

    A job that waits for its second attempt does not: the first one has ended for a reason of its own.
    """
    told = job_ended or not attempts or attempts[0]["completedTime"] is None
    if len(attempts) < 2 and told:
        return ""
    columns = [
        say("Attempt"),
        say("State"),
        say("Began"),
        say("Ran for"),
        say("Exit code"),
        say("Why it ended"),
    ]
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    rows = "".join(_row(say, attempt) for attempt in attempts[: -MOST_ROWS - 1 : -1])
    more = len(attempts) - MOST_ROWS
    rest = (
        f'<tr><td colspan="6">{escape(say("… and {count} more", count=more))}</td></tr>' if more > 0 else ""
    )
    caption = say("Attempts: {count}", count=len(attempts))
    return (
        f'<table class="pai-tasks pai-attempts"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}{rest}</tbody></table>"
    )


def _row(say: Language, attempt: AttemptInfo) -> str:
    code, spec = attempt["exitCode"], attempt["exitSpec"]
    launched, completed = attempt["launchedTime"], attempt["completedTime"]
    ran = "" if launched is None or completed is None else duration(say, completed - launched)
    # the table's word stands beside the platform's own findings, which nobody knows by number
    named = (
        f"{code} ({shown_name(spec['phrase'])})"
        if spec is not None and spec["code"] == code and code
        else code
    )
    before = [attempt["attempt"] + 1, state_word(say, attempt["state"])]
    after = [ran, "" if named is None else named, attempt["reason"]]
    cells = [*map(_escaped, before), when(attempt["createdTime"]), *map(_escaped, after)]
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _escaped(value: object) -> str:
    return escape(str(value))
