"""Who outside is to be told of a job's end: decided when it ends, and written down with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pai_scheduler.job.message_documents import message_document
from pai_scheduler.job.notify import END, FAILURE

from .model import Job, State

WEBHOOK, MAIL = "webhook", "mail"


@dataclass(frozen=True, slots=True)
class Announcement:
    """One message about one job's end. `target`: a URL or a mail address; empty: the user's own address.

    `document` is what is known of the job then, as JSON has it: the job itself may be deleted before it is
    told. `time` (ms since the epoch): when it ended.
    """

    job_id: str
    channel: str
    user: str
    target: str
    time: int
    document: Mapping[str, Any]


def announcements(job: Job) -> list[Announcement]:
    """Decide who is told that a job has ended. Nobody of one that its user deletes."""
    wanted = job.spec.notify
    if wanted is None or job.verdict is None or job.completed is None or job.doomed:
        return []
    if END not in wanted.on and not (FAILURE in wanted.on and job.state is State.FAILED):
        return []
    document = {
        "name": job.name,
        "username": job.user,
        "virtualCluster": job.spec.virtual_cluster,
        "state": str(job.state),
        "appExitCode": job.verdict.exit_code,
        "retries": job.retries.total,
        "createdTime": job.created,
        "completedTime": job.completed,
        "reason": message_document(job.verdict.reason),
    }
    targets = [(WEBHOOK, wanted.webhook)] if wanted.webhook else []
    if wanted.mail:
        targets.append((MAIL, wanted.mail if isinstance(wanted.mail, str) else ""))
    return [
        Announcement(job.id, channel, job.user, target, job.completed, document)
        for channel, target in targets
    ]
