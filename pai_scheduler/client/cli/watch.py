"""Follows a job to its end: prints its events as they happen, then how it came out and what it wrote."""

from __future__ import annotations

import json
import sys

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.i18n import msg

from .logs import Patience, pick_task
from .session import OK
from .tables import moment, printable, printable_lines

JOB_FAILED = 4
#: Bytes of the log shown after a job that failed.
LAST_BYTES = 4000


async def watch(client: Client, user: str, name: str, locale: str, *, as_json: bool) -> int:
    """Return what happens until the job has ended; return the exit code for its outcome."""
    await _report_events(client, user, name, locale, quiet=as_json)
    detail = await client.job(user, name)
    status = detail["jobStatus"]
    if as_json:
        print(json.dumps(detail, ensure_ascii=False, indent=2))
    else:
        await _print_log(client, user, name, locale)
        outcome = msg(
            "Job {name}: {state}. {reason}",
            name=name,
            state=status["state"],
            reason=status["appExitDiagnostics"],
        )
        print(printable_lines(outcome.in_locale(locale).rstrip()), file=sys.stderr)
    return OK if status["state"] == "SUCCEEDED" else JOB_FAILED


async def _report_events(client: Client, user: str, name: str, locale: str, *, quiet: bool) -> None:
    seen = 0
    patience = Patience(locale)
    while True:
        try:
            async for event in client.events(user, name, after=seen):
                patience.renew()
                seen = event["id"]
                if quiet:
                    continue
                _tell(event["time"], event["message"])
                if event["type"] == "submitted":
                    reason = (await client.job(user, name))["jobStatus"]["waitingReason"]
                    if reason:
                        _tell(event["time"], reason)
            return
        except UnreachableError as error:
            await patience.wait(error)


def _tell(time: int, text: str) -> None:
    print(f"{moment(time)}  {printable(text)}", file=sys.stderr, flush=True)


async def _print_log(client: Client, user: str, name: str, locale: str) -> None:
    role, index = await pick_task(client, user, name, None, locale)
    sys.stdout.buffer.write(await client.log(user, name, role, index, offset=-LAST_BYTES))
    sys.stdout.flush()
