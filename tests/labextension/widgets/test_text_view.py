"""The job as text."""

from __future__ import annotations

from pai_labextension.widgets.language import Language
from pai_labextension.widgets.model import JobModel
from pai_labextension.widgets.text_view import TextView


async def test_what_is_typed_is_the_job() -> None:
    model = JobModel("{}")
    view = TextView(model, Language("en"))
    view.entry.value = '{"jobName": "a"} // mine'
    assert model.text == '{"jobName": "a"} // mine'
    assert model.config == {"jobName": "a"}


async def test_a_change_elsewhere_is_shown() -> None:
    model = JobModel('{"jobName": "a"}')
    view = TextView(model, Language("en"))
    model.edit(("jobName",), "b", "form")
    assert view.entry.value == '{"jobName": "b"}'


async def test_line_and_column_are_said_in_the_persons_language() -> None:
    model = JobModel("{\n  x}")
    view = TextView(model, Language("zh_CN"))
    view.show_errors([])
    assert "第 2 行，第 3 列" in view.problem.value


async def test_errors_of_the_job_are_listed_with_their_paths() -> None:
    view = TextView(JobModel("{}"), Language("en"))
    view.show_errors([("$.image", "no <image>")])
    assert "$.image: no &lt;image&gt;" in view.problem.value
    view.show_errors([])
    assert view.problem.value == ""
