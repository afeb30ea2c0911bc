"""Who is told of a job's end is decided with the end."""

from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.core.completion import announcements, stop_verdict
from pai_scheduler.core.model import Job, State, SubState, Verdict
from pai_scheduler.i18n import msg
from pai_scheduler.job.validation import build_spec
from tests.scheduler.making import make_config

FAILED = Verdict(State.FAILED, 3, 3, None, msg("Task main-0 has failed."))
SUCCEEDED = Verdict(State.SUCCEEDED, 0, 0, None, msg("All tasks have completed."))


def ended(verdict: Verdict, notify: Any, *, doomed: bool = False) -> Job:
    spec = build_spec(make_config(name="train", extras={"notify": notify} if notify else {}))
    return Job(
        "id1", "ada", spec, 1000, state=verdict.state, sub_state=SubState.ENDED, completed=2000,
        verdict=verdict, doomed=doomed,
    )  # fmt: skip


BOTH = {"webhook": "https://hooks.lab/", "mail": True}


@pytest.mark.parametrize(
    ("on", "told"),
    [
        (["end"], (True, True, True)),
        (["failure"], (True, False, False)),
        (["end", "failure"], (True, True, True)),
    ],
)
def test_of_failure_only_or_of_every_end(on: list[str], told: tuple[bool, ...]) -> None:
    verdicts = FAILED, SUCCEEDED, stop_verdict("ada")
    assert tuple(bool(announcements(ended(verdict, BOTH | {"on": on}))) for verdict in verdicts) == told


def test_each_way_has_an_announcement_of_its_own_with_what_is_known_of_the_job() -> None:
    webhook, mail = announcements(ended(FAILED, BOTH))
    assert (webhook.channel, webhook.target, webhook.time) == ("webhook", "https://hooks.lab/", 2000)
    assert (mail.channel, mail.target, mail.user) == ("mail", "", "ada")
    assert webhook.document["state"] == "FAILED"
    assert webhook.document["appExitCode"] == 3
    (other,) = announcements(ended(FAILED, {"mail": "bob@lab.example"}))
    assert other.target == "bob@lab.example"


def test_nobody_is_told_who_has_not_asked_or_deletes_the_job() -> None:
    assert announcements(ended(FAILED, None)) == []
    assert announcements(ended(stop_verdict("ada"), BOTH, doomed=True)) == []
