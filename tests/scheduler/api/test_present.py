"""What the JSON looks like in the corners that no ordinary job reaches."""

from __future__ import annotations

from pai_scheduler.api.presenter import Outlook, Presenter
from pai_scheduler.cluster.node import Gpu, Node, NodeState
from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.model import Attempt, Job, State, SubState, Task, Verdict
from pai_scheduler.core.queries import NodeUse
from pai_scheduler.i18n import msg
from pai_scheduler.job.exit_codes import exit_spec
from pai_scheduler.job.spec import JobSpec, TaskRole
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import Principal

PRESENTER = Presenter("en", "http://x/api/v1")
SPEC = JobSpec("j", "image", (TaskRole("a~b", "true", task_number=2), TaskRole("c", "true")))


def _job(**fields: object) -> Job:
    return Job("id", "al/ice", SPEC, 1000, **fields)  # type: ignore[arg-type]


def test_a_job_without_an_attempt_shows_all_its_tasks_waiting() -> None:
    detail = PRESENTER.detail(_job(), Outlook(msg("third in the queue"), 3, 600))
    assert detail["jobStatus"]["waitingReason"] == "third in the queue"
    assert (detail["jobStatus"]["queuePlace"], detail["jobStatus"]["startsWithin"]) == (3, 600)
    assert detail["jobStatus"]["appProgress"] == 0.0
    assert {role: len(tasks["taskStatuses"]) for role, tasks in detail["taskRoles"].items()} == {
        "a~b": 2,
        "c": 1,
    }
    task = detail["taskRoles"]["a~b"]["taskStatuses"][1]
    assert (task["taskIndex"], task["taskState"], task["containerGpus"]) == (1, "WAITING", 0)
    assert task["containerLog"] == "http://x/api/v1/user/al%2Fice/jobs/j/taskRoles/a~b/tasks/1/logs/all"


def test_a_job_has_a_page_where_there_is_a_console() -> None:
    detail = Presenter("en", "http://x/api/v1", "https://hub.lab/console/").detail(_job(), Outlook())
    assert detail["consoleUrl"] == "https://hub.lab/console/jobs/al%2Fice/j"
    assert "consoleUrl" not in PRESENTER.detail(_job(), Outlook())


def test_ports_are_lists_and_gpus_a_bit_map() -> None:
    assignment = Assignment("node-a", (0, 3), {"http": (8080,), "grpc": (9000, 9001)})
    task = Task(TaskRef("id", 2, "c", 0), assignment, State.RUNNING, address="10.0.0.2", container_id="abc")
    attempt = Attempt(2, 1000, launched=2000, tasks={("c", 0): task})
    info = PRESENTER.attempt(_job(), attempt)
    assert (info["attempt"], info["state"], info["exitCode"], info["trigger"]) == (2, "RUNNING", None, None)
    status = info["taskRoles"]["c"]["taskStatuses"][0]
    assert status["containerPorts"] == {"http": "8080", "grpc": "9000,9001"}
    assert status["containerGpus"] == 0b1001
    assert status["node"] == "node-a"
    assert status["containerLog"].endswith("?attempt=2")


def test_a_job_stopped_before_its_first_attempt_has_the_tables_row() -> None:
    verdict = Verdict(State.STOPPED, -7351, -7351, None, msg("Stopped by {user}.", user="root"))
    job = _job(state=State.STOPPED, sub_state=SubState.ENDED, verdict=verdict, completed=5000)
    status = PRESENTER.detail(job, Outlook())["jobStatus"]
    assert (status["state"], status["executionType"], status["appExitCode"]) == ("STOPPED", "STOP", -7351)
    assert status["appExitSpec"] is not None
    assert status["appExitSpec"] == {
        "code": -7351,
        "phrase": exit_spec(-7351).phrase,
        "issuer": exit_spec(-7351).issuer,
        "causer": exit_spec(-7351).causer,
        "type": exit_spec(-7351).type,
        "stage": exit_spec(-7351).stage,
        "behavior": exit_spec(-7351).behavior.value,
        "reaction": exit_spec(-7351).reaction,
    }
    assert status["appExitDiagnostics"] == status["appExitMessages"]["launcher"] == "Stopped by root."
    assert (status["appExitTriggerTaskRoleName"], status["appExitTriggerTaskIndex"]) == ("", None)
    assert PRESENTER.detail(job, Outlook())["taskRoles"]["c"]["taskStatuses"][0]["taskState"] == "STOPPED"


def test_a_lost_node_says_so_and_counts_its_gpus_by_type() -> None:
    node = Node("n", 8, 1000, 10, (Gpu(0, "P100"), Gpu(1, "P100"), Gpu(2, "V100")), state=NodeState.LOST)
    info = PRESENTER.node(NodeUse(node, 2, 100, 0, {1: _job()}), None, Principal("bob"), lambda _job: False)
    assert info["state"] == "LOST"
    assert info["total"]["gpus"] == {"P100": 2, "V100": 1}
    assert info["used"]["gpus"] == {"P100": 1, "V100": 0}
    assert [(gpu["job"], gpu["user"]) for gpu in info["gpus"]] == [(None, None), ("busy", None), (None, None)]
