"""The table of a job's attempts."""

from __future__ import annotations

from pai_labextension.widgets.attempts_view import history
from pai_labextension.widgets.job_view import MOST_ROWS
from pai_labextension.widgets.language import Language
from pai_scheduler.testing.scheduler import job_of

EN = Language("en")


def test_one_attempt_is_no_history() -> None:
    job = job_of("demo")
    assert history(EN, job.attempts(), False) == ""
    job.attempt_facts[0] = {"completedTime": 1_700_000_090_000}
    assert history(EN, job.attempts(), True) == ""
    assert history(EN, [], False) == ""


def test_an_attempt_has_ended_while_its_job_waits_for_the_next_one() -> None:
    job = job_of("demo")
    job.attempt_facts[0] = {"completedTime": 1_700_000_090_000, "reason": "Preempted."}
    assert "Preempted." in history(EN, job.attempts(), False)


def test_a_preempted_attempt_says_so_and_the_newest_stands_first() -> None:
    job = job_of("demo")
    job.attempt = 1
    job.attempt_facts[0] = {
        "state": "STOPPED",
        "launchedTime": 1_700_000_000_000,
        "completedTime": 1_700_000_090_000,
        "exitCode": -7120,
        "exitSpec": {"code": -7120, "phrase": "PAI_RESOURCE_PREEMPTED"},
        "reason": "Preempted: <vision> needs it.",
    }
    markup = history(EN, job.attempts(), False)
    assert "Attempts: 2" in markup
    first, second = markup.split("<tbody>")[1].split("</tr>")[:2]
    assert first.startswith("<tr><td>2</td><td>Waiting</td>")
    assert second.startswith("<tr><td>1</td><td>Stopped</td>")
    assert "<td>1 min 30 s</td><td>-7120 (PAI_RESOURCE_PREEMPTED)</td>" in second
    assert "Preempted: &lt;vision&gt; needs it." in second


def test_a_commands_own_code_stands_for_itself() -> None:
    job = job_of("demo")
    job.attempt = 1
    job.attempt_facts[0] = {"exitCode": 3, "exitSpec": {"code": 255, "phrase": "UNKNOWN"}}
    assert "<td>3</td>" in history(EN, job.attempts(), False)


def test_of_very_many_attempts_the_newest_are_shown_and_the_others_counted() -> None:
    job = job_of("demo")
    job.attempt = MOST_ROWS + 9
    markup = history(EN, job.attempts(), False)
    assert markup.count("<tr><td>") == MOST_ROWS
    assert f"<td>{MOST_ROWS + 10}</td>" in markup
    assert "… and 10 more" in markup


def test_it_speaks_chinese() -> None:
    job = job_of("demo")
    job.attempt = 1
    assert "结束原因" in history(Language("zh_CN"), job.attempts(), False)
