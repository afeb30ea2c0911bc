"""What job events say of those who were in the tasks, and how much of it."""

from __future__ import annotations

import pytest

from pai_scheduler.core.events import Accessed
from pai_scheduler.job.task import TaskRef
from pai_scheduler.service.ssh_access import Audit
from pai_scheduler.ssh.login import SessionToken

WHO = SessionToken("alice+one", "alice", "token", 1)
TASK = TaskRef("abc", 0, "worker", 1)
HOUR = 3_600_000


@pytest.fixture
def told() -> list[Accessed]:
    return []


@pytest.fixture
def audit(told: list[Accessed]) -> Audit:
    async def tell(event: Accessed) -> None:
        told.append(event)

    return Audit(tell)


@pytest.mark.parametrize(
    ("kinds", "detail", "said"),
    [
        (["shell"], "", "a terminal"),
        (["exec", "sftp"], "", "a command, files (SFTP)"),
        (["forward"], "localhost:80", "a way to localhost:80"),
        (["remote-forward"], "localhost:80", "a way back from localhost:80"),
        (["agent"], "", "the SSH agent"),
        ([], "", "nothing"),
    ],
)
async def test_what_was_opened_is_said(
    audit: Audit, told: list[Accessed], kinds: list[str], detail: str, said: str
) -> None:
    await audit.opened(WHO, TASK, "10.0.0.3", kinds, detail, 5)
    (event,) = told
    assert (event.task, event.time) == (TASK, 5)
    assert str(event.message) == f"alice opened {said} in worker-1 from 10.0.0.3 (token)."
    assert event.data == {
        "event": "opened",
        "what": kinds,
        "from": "10.0.0.3",
        "user": "alice",
        "by": "token",
    }
    assert event.message.in_locale("zh_CN").startswith("alice 从 10.0.0.3 在 worker-1 中打开了")


async def test_how_long_it_took_is_said(audit: Audit, told: list[Accessed]) -> None:
    await audit.closed(WHO, TASK, "::1", ["shell", "remote-forward"], 7.26, 5)
    assert str(told[0].message) == "alice left worker-1 after 7 s: a terminal, ports back, from ::1."
    assert told[0].data["seconds"] == 7.3


async def test_what_a_client_names_is_noted_short_and_without_control_characters(
    audit: Audit, told: list[Accessed]
) -> None:
    await audit.opened(WHO, TASK, "\x1b[2J\n\ud800", ["forward"], "x" * 10_000, 5)
    text = str(told[0].message)
    assert text.isprintable()
    assert "?[2J??" in text
    assert len(text) < 300


async def test_a_job_that_is_entered_all_the_time_has_few_events_that_say_so(
    audit: Audit, told: list[Accessed], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    for second in range(3600):
        await audit.opened(WHO, TASK, "10.0.0.3", ["exec"], "", 1000 * second)
    assert 300 < len(told) < 300 + 60 + 62
    assert any("More is opened here" in str(event.message) for event in told)
    # and the log has each
    assert len(caplog.records) == 3600
    # another job's is as long as ever
    other = TASK._replace(job_id="def")
    await audit.opened(WHO, other, "10.0.0.3", ["exec"], "", HOUR)
    assert told[-1].task == other
    # after a while there is room again
    await audit.opened(WHO, TASK, "10.0.0.3", ["exec"], "", 10 * HOUR)
    assert "opened a command" in str(told[-1].message)


async def test_the_number_of_audited_jobs_in_memory_is_bounded(audit: Audit) -> None:
    for number in range(10_050):
        await audit.opened(WHO, TASK._replace(job_id=str(number)), "10.0.0.3", ["exec"], "", 5)
    assert len(audit._rooms) == 10_000
