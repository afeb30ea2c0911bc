"""The whole form, against a peer that refuses and breaks on demand."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from pai_labextension.widgets import JobForm, NotSubmittedError
from pai_labextension.widgets.background import NoEventLoopError
from pai_scheduler.testing.scheduler import FakeScheduler, validation
from tests.labextension.widgets.waiting import turns, until

JOB: dict[str, Any] = {
    "jobName": "demo",
    "image": "b",
    "taskRoles": [{"name": "worker", "command": "true"}],
    "extras": {"mine": 1},
}
Make = Callable[..., JobForm]


@pytest.fixture
async def make(peer: FakeScheduler) -> Any:
    made: list[JobForm] = []

    def make(config: Any = JOB, locale: str = "en") -> JobForm:
        made.append(JobForm(config, peer.client(), locale, quiet=0))
        return made[-1]

    yield make
    for form in made:
        form.close()
        await form.client.close()


async def test_form_and_text_are_two_views_of_one_job(make: Make) -> None:
    form = make()
    form.form.field("image").entry.value = "c"
    assert '"image": "c"' in form.text.entry.value
    form.text.entry.value = form.text.entry.value.replace('"c"', '"d"')
    assert form.form.field("image").entry.value == "d"
    assert form.job == {**JOB, "image": "d"}


async def test_an_empty_form_asks_for_an_image_and_a_command_without_calling_anything_wrong(
    make: Make,
) -> None:
    form = make(None)
    image, command = form.form.field("image"), form.form.roles.boxes[0].field("command")
    assert form.submit_button.disabled
    assert form.needed.value == "Still needed: image, command of task role 1"
    assert image.problem == command.problem == form.problems.value == form.text.problem.value == ""
    image.entry.value = "b"
    assert form.needed.value == "Still needed: command of task role 1"
    command.entry.value = "true"
    assert form.needed.value == form.problems.value == ""
    assert not form.submit_button.disabled


async def test_what_was_typed_and_taken_away_again_is_wrong(make: Make) -> None:
    form = make(None)
    image = form.form.field("image")
    image.entry.value = "b"
    image.entry.value = ""
    assert "must not be empty" in image.problem
    assert form.needed.value == "Still needed: command of task role 1"
    assert "To put right before the job can be submitted: 1" in form.problems.value


@pytest.mark.parametrize("begin", ["given", "pasted"])
async def test_errors_of_a_job_that_came_from_elsewhere_are_shown_at_once(make: Make, begin: str) -> None:
    blank = {"jobName": "a", "image": "", "taskRoles": [{"name": "worker", "command": ""}]}
    form = make(blank if begin == "given" else None)
    if begin == "pasted":
        form.text.entry.value = json.dumps(blank)
    assert "must not be empty" in form.form.field("image").problem
    assert "$.image" in form.text.problem.value
    assert form.needed.value == ""


async def test_what_is_added_is_asked_for_too_and_keeps_its_place(make: Make) -> None:
    form = make()
    form.form.roles.add.click()
    form.form.roles.add.click()
    form.form.roles.boxes[2].ports.add.click()
    assert form.needed.value == (
        "Still needed: command of task role 2, command of task role 3, label of port range 1 of task role 3"
    )
    form.form.roles.boxes[1].remove.click()
    assert form.needed.value == ("Still needed: command of task role 2, label of port range 1 of task role 2")
    assert form.problems.value == ""


async def test_images_used_before_are_offered(peer: FakeScheduler, make: Make) -> None:
    peer.add("before").config["image"] = "pytorch:2"
    form = make(None)
    await until(lambda: form.form.image.entry.options == ("pytorch:2",))
    assert form.form.image.entry.value == form.form.image.hint == ""


async def test_where_images_are_not_used_an_empty_form_says_so_and_has_one(
    peer: FakeScheduler, make: Make
) -> None:
    peer.engine = "process"
    form = make(None)
    await until(lambda: form.form.image.hint)
    assert "Not used here" in form.form.image.hint
    assert form.job["image"] == "local/python"
    assert form.needed.value == "Still needed: command of task role 1"


async def test_an_image_that_somebody_has_given_stays(peer: FakeScheduler, make: Make) -> None:
    peer.engine = "process"
    form = make()
    await until(lambda: form.form.image.hint)
    assert form.job == JOB


async def test_a_text_with_comments_is_a_job_too_and_one_that_does_not_parse_is_kept(make: Make) -> None:
    assert make('{"jobName": "a" /* mine */}').job == {"jobName": "a"}
    form = make("{")
    assert form.tabs.selected_index == 1
    assert form.text.entry.value == "{"
    with pytest.raises(ValueError, match="line 1"):
        assert form.job


async def test_it_says_what_is_free_and_whether_the_job_fits(peer: FakeScheduler, make: Make) -> None:
    peer.validation = validation("later", "2 × P100 <wanted>.", borrows=True)
    form = make()
    await until(lambda: form.fit.value)
    assert "30 of 32 CPUs" in form.free.value
    assert "2 × P100 &lt;wanted&gt;." in form.fit.value
    assert "borrow" in form.fit.value
    peer.validation = validation("never", "No machine is that large.")
    form.form.roles.boxes[0].field("cpuNumber").entry.value = "999"
    await until(lambda: "No machine is that large." in form.fit.value)
    assert not form.submit_button.disabled  # a machine may come
    peer.validation = validation("now")
    form.form.roles.boxes[0].field("cpuNumber").entry.value = "1"
    await until(lambda: "fits now" in form.fit.value)
    peer.validation = validation("now", "It may be stopped for others.", borrows=True)
    form.form.extras.field("priority").entry.value = "70"
    await until(lambda: "This job fits now. It may be stopped for others.</div>" in form.fit.value)
    assert peer.asked[-1]["extras"] == {"mine": 1, "priority": 70}


async def test_it_says_when_the_job_would_start_and_where_at_once(peer: FakeScheduler, make: Make) -> None:
    peer.validation = validation("later", "None is free.", starts_within=1201, starts_now_in=["a&b", "c"])
    form = make()
    await until(lambda: form.fit.value)
    assert "None is free. It starts in about 21 minutes." in form.fit.value
    assert "It would start now in virtual cluster a&amp;b, c." in form.fit.value


async def test_an_unreachable_scheduler_is_said_and_writing_goes_on(peer: FakeScheduler, make: Make) -> None:
    await peer.stop()
    form = make()
    await until(lambda: "does not answer" in form.fit.value)
    form.form.field("image").entry.value = "c"
    assert form.job["image"] == "c"
    await peer.start()
    form.form.field("image").entry.value = "d"
    await until(lambda: "fits now" in form.fit.value)


async def test_what_only_the_scheduler_finds_wrong_stands_beside_its_field_until_the_next_edit(
    peer: FakeScheduler, make: Make
) -> None:
    peer.validation["errors"] = [
        {"path": "$.image", "message": "There is no such image."},
        {"path": "$.extras.mine", "message": "That is not yours."},
    ]
    form = make()
    await until(lambda: "There is no such image." in form.form.field("image").problem)
    assert "$.extras.mine: That is not yours." in form.problems.value
    assert form.submit_button.disabled
    peer.validation["errors"] = []
    form.form.field("image").entry.value = "c"
    assert form.form.field("image").problem == ""
    assert not form.submit_button.disabled


async def test_a_submitted_job_is_watched_beneath(peer: FakeScheduler, make: Make) -> None:
    form = make()
    monitor = await form.submit()
    assert peer.submitted == [JOB]
    assert "demo" in form.outcome.value
    assert form.fit.value == ""  # whether it fits is no question any more
    await until(lambda: monitor.state == "WAITING")
    peer.jobs["demo"].happen("done", state="SUCCEEDED", exit_code=0)
    assert await asyncio.wait_for(monitor.wait(), 10) == "SUCCEEDED"


async def test_two_clicks_submit_once(peer: FakeScheduler, make: Make) -> None:
    peer.submit_gate.clear()
    form = make()
    form.submit_button.click()
    form.submit_button.click()
    await until(lambda: peer.submitted)
    assert form.submit_button.disabled
    form.submit_button.click()
    peer.submit_gate.set()
    await until(lambda: form.monitor)
    form.submit_button.click()
    await turns()
    assert peer.submitted == [JOB]
    assert form.submit_button.disabled
    form.form.field("jobName").entry.value = "another"
    assert not form.submit_button.disabled


async def test_a_refusal_stands_beside_the_field_and_loses_nothing(peer: FakeScheduler, make: Make) -> None:
    peer.refusal = (409, "ConflictJobError", "You have a job demo already.", [])
    form = make()
    with pytest.raises(NotSubmittedError):
        await form.submit()
    assert "You have a job demo already." in form.form.field("jobName").problem
    assert "Not submitted" in form.outcome.value
    assert form.job == JOB
    peer.refusal = None
    form.form.unique.click()
    assert form.form.field("jobName").problem == ""
    await form.submit()


async def test_a_form_that_is_not_filled_in_raises_what_is_missing(peer: FakeScheduler, make: Make) -> None:
    empty = make(None)
    with pytest.raises(NotSubmittedError, match=r"Still needed: .*[Cc]ommand"):
        await empty.submit()
    wrong = make({**JOB, "jobName": "a/b", "retryCount": -7})
    with pytest.raises(NotSubmittedError, match=r"(?s)\$\.jobName: .*\$\.retryCount: "):
        await wrong.submit()
    torn = make("{")
    with pytest.raises(NotSubmittedError, match="The text does not parse at present"):
        await torn.submit()
    assert peer.submitted == []


async def test_a_job_that_was_submitted_is_not_submitted_again(peer: FakeScheduler, make: Make) -> None:
    form = make()
    await form.submit()
    with pytest.raises(NotSubmittedError, match="demo is submitted already"):
        await form.submit()
    assert peer.submitted == [JOB]


async def test_every_error_of_a_refusal_stands_beside_its_field(peer: FakeScheduler, make: Make) -> None:
    errors: Any = [
        {"path": "$.image", "message": "No such image."},
        {"path": "$.taskRoles[0].command", "message": "Too long."},
    ]
    peer.refusal = (400, "InvalidParametersError", "The job is wrong.", errors)
    form = make()
    with pytest.raises(NotSubmittedError, match="The job is wrong"):
        await form.submit()
    assert "No such image." in form.form.field("image").problem
    assert "Too long." in form.form.roles.boxes[0].field("command").problem


async def test_when_nobody_answers_the_same_job_can_be_submitted_again(
    peer: FakeScheduler, make: Make
) -> None:
    form = make()
    await peer.stop()
    with pytest.raises(NotSubmittedError):
        await form.submit()
    assert "not known whether" in form.outcome.value
    assert not form.submit_button.disabled
    await peer.start()
    await form.submit()


async def test_an_imported_file_opens_where_it_can_be_put_right(make: Make) -> None:
    form = make()
    form.tabs.selected_index = 2
    form.model.set_text('{"jobName": "a"}', form.files)
    form.open_imported()
    assert form.tabs.selected_index == 0
    form.model.set_text("{", form.files)
    form.open_imported()
    assert form.tabs.selected_index == 1


async def test_two_variables_of_one_name_keep_the_job_from_being_submitted(make: Make) -> None:
    form = make({**JOB, "jobEnvs": {"a": "1"}})
    form.form.envs.add.click()
    form.form.envs.rows[1].name.value = "a"
    assert form.submit_button.disabled
    assert "twice" in form.form.envs.problem
    form.form.envs.rows[1].name.value = "b"
    assert not form.submit_button.disabled


async def test_closing_ends_everything_in_the_background(peer: FakeScheduler, make: Make) -> None:
    form = make()
    monitor = await form.submit()
    await until(lambda: monitor.state)
    form.close()
    await until(lambda: not [task for task in asyncio.all_tasks() if task.get_name().startswith("pai-")])
    assert peer.jobs["demo"].state == "WAITING"  # the job runs on


async def test_it_speaks_chinese(make: Make) -> None:
    form = make(None, "zh_CN")
    assert form.submit_button.description == "提交作业"
    assert form.tabs.titles == ("填写表单", "粘贴文本", "导入文件")
    await until(lambda: "空闲" in form.free.value)


def test_without_a_loop_it_says_what_to_do() -> None:
    with pytest.raises(NoEventLoopError):
        JobForm()


async def test_the_job_is_a_value_that_may_be_set(make: Make) -> None:
    form = make()
    job = form.job
    job["taskRoles"][0]["gpuNumber"] = 2
    assert form.job == JOB, "what was read is a copy"
    form.job = job
    assert form.job == job
    assert json.loads(form.text.entry.value) == job
    assert repr(form) == f"JobForm(jobName={JOB['jobName']!r})"
    assert "style" not in form._repr_mimebundle_()["text/plain"]
