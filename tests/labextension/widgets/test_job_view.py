"""A job's state, tasks and end as HTML."""

from __future__ import annotations

from pai_labextension.widgets import job_view
from pai_labextension.widgets.language import Language
from pai_scheduler.testing.scheduler import job_of

EN = Language("en")


def test_a_waiting_job_says_why() -> None:
    job = job_of("demo")
    job.waiting_reason = "2 × P100 wanted, 1 free on <node-a>."
    markup = job_view.head(EN, job.detail("alice"), job.attempts())
    assert "pai-state-WAITING" in markup
    assert ">Waiting<" in markup
    assert "1 free on &lt;node-a&gt;." in markup
    assert ">等待中<" in job_view.head(Language("zh_CN"), job.detail("alice"), job.attempts())


def test_a_waiting_job_says_when_it_starts_and_a_running_one_when_it_ends_at_the_latest() -> None:
    job = job_of("demo")
    job.starts_within, job.latest_end = 1140, 1_700_000_600_000
    markup = job_view.head(EN, job.detail("alice"), job.attempts())
    assert "It starts in about 19 minutes." in markup
    assert "Ends at the latest" not in markup
    assert "预计约 19 分钟后启动。" in job_view.head(Language("zh_CN"), job.detail("alice"), job.attempts())
    job.state = "RUNNING"
    markup = job_view.head(EN, job.detail("alice"), job.attempts())
    assert "It starts in" not in markup
    assert 'Ends at the latest: <time datetime="2023-11-14T22:23:20' in markup


def test_what_the_state_does_not_say_stands_beside_it() -> None:
    job = job_of("demo")
    detail = job.detail("alice")
    for sub_state, shown in (
        ("QUEUED", ">Waiting<"),
        ("RETRY_WAIT", ">Waiting: to be tried again<"),
        ("DEPENDENCY_WAIT", ">Waiting: for other jobs<"),
        ("NEW", ": NEW<"),
    ):
        detail["jobStatus"]["subState"] = sub_state
        assert shown in job_view.head(EN, detail, job.attempts())


def test_the_jobs_before_and_after_it_are_named_with_their_states() -> None:
    job = job_of("demo")
    job.dependencies = [
        {"job": "<old>", "on": "ended", "state": None, "holds": True},
        {"job": "fetch", "on": "succeeded", "state": "RUNNING", "holds": None},
    ]
    job.dependents = [{"job": "clean", "on": "failed", "state": "WAITING", "holds": None}]
    detail = job.detail("alice")
    detail["jobStatus"]["dependentCount"] = 3
    markup = job_view.head(EN, detail, job.attempts())
    assert "Starts after: &lt;old&gt; (however it ends): deleted, fetch (on success): Running<br>" in markup
    assert "Jobs that start after it: clean (on failure): Waiting, … and 2 more" in markup


def test_an_ended_job_says_how_long_it_ran_and_which_attempt_it_was() -> None:
    job = job_of("demo")
    job.state, job.exit_code, job.attempt = "SUCCEEDED", 0, 1
    markup = job_view.head(EN, job.detail("alice"), job.attempts())
    assert "Ran for 1 min 15 s" in markup
    assert "Attempt 2" in markup


def test_each_role_has_a_table_of_its_tasks_with_their_machines() -> None:
    job = job_of("demo", "worker", "ps")
    job.state = "RUNNING"
    markup = job_view.tasks(EN, job.attempts()[-1]["taskRoles"])
    assert markup.count("<table") == 2
    assert "<caption>worker: 2 × Running</caption>" in markup
    assert "<td>node-a</td><td>10.0.0.7</td><td>http: 8080</td>" in markup


def test_the_ports_of_running_tasks_are_links() -> None:
    job = job_of("demo", "worker")
    roles = job.attempts()[-1]["taskRoles"]
    first, second = roles["worker"]["taskStatuses"][:2]
    first |= {"taskState": "RUNNING", "containerPorts": {"web<": "8080", "ssh": "22"}}
    second |= {"taskState": "FAILED", "containerPorts": {"web": "8080"}}
    markup = job_view.tasks(EN, roles, lambda role, index, label: f"/at?{role}&{index}&{label}")
    link = '<a href="/at?worker&amp;0&amp;web&lt;" target="_blank" rel="noopener">web&lt;: 8080</a>'
    assert f"<td>{link}; ssh: 22</td>" in markup
    assert markup.count("<a ") == 1
    assert "<a " not in job_view.tasks(EN, roles, lambda *_task: None)


def test_a_role_of_many_tasks_shows_the_first_and_counts_the_rest() -> None:
    job = job_of("demo")
    job.config["taskRoles"][0]["taskNumber"] = 1000
    markup = job_view.tasks(EN, job.detail("alice")["taskRoles"])
    assert markup.count("<tr>") < 220
    assert "… and 800 more" in markup
    assert "1000 × Waiting" in markup


def test_a_failed_job_says_code_phrase_task_diagnostics_and_last_lines() -> None:
    job = job_of("demo")
    job.state, job.exit_code, job.trigger, job.diagnostics = "FAILED", 3, ("worker", 1), "It <failed>."
    markup = job_view.ending(EN, job.detail("alice"), "Traceback <x>")
    assert "Exit code 3 (CONTAINER_RUNTIME_UNKNOWN_FAILURE)" in markup
    assert markup.count("It &lt;failed&gt;.") == 1
    assert "<pre>Traceback &lt;x&gt;</pre>" in markup


def test_an_end_for_memory_is_not_blamed_on_docker() -> None:
    job = job_of("demo")
    job.state, job.exit_code, job.trigger, job.diagnostics = "FAILED", 137, ("worker", 1), "Too much memory."
    detail = job.detail("alice")
    assert detail["jobStatus"]["appExitSpec"] is not None
    detail["jobStatus"]["appExitSpec"]["phrase"] = "CONTAINER_OOM_KILLED_BY_DOCKER"
    assert "Exit code 137 (CONTAINER_OOM_KILLED)" in job_view.ending(EN, detail, "")


def test_what_the_diagnostics_say_already_is_not_said_twice() -> None:
    job = job_of("demo")
    job.state, job.exit_code, job.trigger = "FAILED", 3, ("worker", 1)
    job.diagnostics = "Task worker-1 ended with exit code 3. Its command failed: the end of its log says why."
    assert job_view.ending(EN, job.detail("alice"), "").lower().count("exit code 3") == 1


def test_a_number_that_is_not_the_exit_code_does_not_stand_for_it() -> None:
    job = job_of("demo")
    job.state, job.exit_code, job.trigger = "FAILED", 1, ("worker", 1)
    job.diagnostics = "Task worker-1 used more than its 100 MB."
    assert "Exit code 1 (" in job_view.ending(EN, job.detail("alice"), "")


def test_without_diagnostics_the_task_that_decided_is_named() -> None:
    job = job_of("demo")
    job.state, job.exit_code, job.trigger = "FAILED", 3, ("worker", 1)
    assert "Decided by task 1 of worker." in job_view.ending(EN, job.detail("alice"), "")


def test_a_job_that_has_not_ended_has_no_ending() -> None:
    assert job_view.ending(EN, job_of("demo").detail("alice"), "") == ""
