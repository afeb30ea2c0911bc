"""The inputs for what the scheduler reads of a job's extras."""

from __future__ import annotations

from typing import Any

from pai_labextension.widgets.form import FormView
from pai_labextension.widgets.model import JobModel, text_of
from tests.labextension.widgets.making import form_view

JOB: dict[str, Any] = {
    "jobName": "a",
    "image": "b",
    "taskRoles": [{"name": "worker", "command": "true"}],
}


def form_of(locale: str = "en", **fields: Any) -> tuple[JobModel, FormView]:
    model = JobModel(text_of({**JOB, **fields}))
    return model, form_view(model, locale)


async def test_a_job_that_says_nothing_has_no_extras_and_may_be_stopped_for_others() -> None:
    model, form = form_of()
    assert form.extras.field("priority").entry.value == ""
    assert form.extras.field("maxRunSeconds").entry.value == ""
    assert form.extras.field("preemptible").entry.value is True
    assert "extras" not in model.config


async def test_what_is_given_is_kept_beside_the_extras_that_the_form_does_not_know() -> None:
    model, form = form_of(extras={"team": "vision"})
    form.extras.field("priority").entry.value = "70"
    form.extras.field("maxRunSeconds").entry.value = "2"
    form.extras.field("preemptible").entry.value = False
    assert model.config["extras"] == {
        "team": "vision",
        "priority": 70,
        "maxRunSeconds": 7200,
        "preemptible": False,
    }
    assert model.sound
    for name, blank in (("priority", ""), ("maxRunSeconds", ""), ("preemptible", True)):
        form.extras.field(name).entry.value = blank
    assert model.config["extras"] == {"team": "vision"}


async def test_the_jobs_to_wait_for_are_a_line_of_names() -> None:
    model, form = form_of()
    entry = form.extras.field("after").entry
    entry.value = "prepare, fetch:ended,"
    assert model.config["extras"] == {"after": ["prepare", {"job": "fetch", "on": "ended"}]}
    assert entry.value == "prepare, fetch:ended,", "it stays as it is typed"
    model.set_text(
        text_of({**JOB, "extras": {"after": [{"job": "a"}, {"job": "b", "on": "failed"}, 3]}}), None
    )
    assert entry.value == "a, b:failed, 3"
    assert form.extras.field("after").problem == ""
    left = form.show_errors({"$.extras.after[0].job": ["There is no a."], "$.extras.after[2]": ["No 3."]})
    assert left == []
    assert "There is no a.<br>No 3." in form.extras.field("after").problem
    entry.value = ""
    assert model.config == JOB


async def test_the_time_to_end_is_a_number_in_the_form() -> None:
    model, form = form_of()
    form.extras.field("terminationGraceSeconds").entry.value = "300"
    assert model.config == {**JOB, "extras": {"terminationGraceSeconds": 300}}


async def test_nothing_is_left_of_extras_that_only_the_form_made() -> None:
    model, form = form_of()
    form.extras.field("priority").entry.value = "70"
    form.extras.field("priority").entry.value = ""
    assert model.config == JOB


async def test_the_text_changes_the_inputs() -> None:
    model, form = form_of()
    model.set_text(
        text_of({**JOB, "extras": {"priority": 3, "maxRunSeconds": 90, "preemptible": False}}), None
    )
    assert form.extras.field("priority").entry.value == "3"
    assert form.extras.field("maxRunSeconds").entry.value == "90"
    assert form.extras.field("preemptible").entry.value is False


async def test_a_mistake_stands_beside_its_input() -> None:
    numbers = {"priority": 101, "maxRunSeconds": 0, "terminationGraceSeconds": 3601}
    model, form = form_of(extras={**numbers, "preemptible": "no", "after": "a"})
    errors = {error.path: [str(error.message)] for error in model.errors}
    assert form.show_errors(errors) == []
    assert all(field.problem for _, field in form.extras.fields())


async def test_extras_that_are_no_object_are_left_to_the_text() -> None:
    _, form = form_of(extras=[1])
    assert "extras" in form.obstacle.value


async def test_the_inputs_speak_chinese() -> None:
    _, form = form_of("zh_CN")
    assert form.extras.field("maxRunSeconds").entry.description == "运行时限"
    assert "借用" in form.extras.field("preemptible").entry.description
