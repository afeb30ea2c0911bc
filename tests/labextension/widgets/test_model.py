"""The one job behind form and text."""

from __future__ import annotations

import json
from typing import Any

from pai_labextension.widgets.json_edit import ABSENT
from pai_labextension.widgets.model import JobModel, text_of
from pai_scheduler.i18n import Message

JOB: dict[str, Any] = {
    "jobName": "a",
    "image": "b",
    "taskRoles": [{"name": "worker", "command": "true"}],
    "extras": {"mine": [1, None]},
    "tmp": {"vgInfo": {"名称": "test"}},
}


def _model(text: str | None = None) -> tuple[JobModel, list[object]]:
    model = JobModel(text_of(JOB) if text is None else text)
    sources: list[object] = []
    model.listen(sources.append)
    return model, sources


def test_a_valid_job_is_sound() -> None:
    model, _ = _model()
    assert model.sound
    assert model.config == JOB
    assert model.obstacle is None


def test_an_edit_in_the_form_appears_in_the_text_and_leaves_unknown_parts_alone() -> None:
    model, sources = _model()
    model.edit(("taskRoles", 0, "memoryMB"), 4096, "form")
    expected = {**JOB, "taskRoles": [{"name": "worker", "command": "true", "memoryMB": 4096}]}
    assert json.loads(model.text) == model.config == expected
    assert sources == ["form"]


def test_comments_survive_an_edit_in_the_form() -> None:
    model, _ = _model('{\n  // which one\n  "image": "b", /* and\n  more */ "jobName": "a"\n}')
    model.edit(("image",), "c", "form")
    assert "// which one" in model.text
    assert "/* and\n  more */" in model.text
    assert model.config == {"image": "c", "jobName": "a"}


def test_a_text_that_does_not_parse_is_kept_and_says_where() -> None:
    model, sources = _model()
    model.set_text('{\n  "jobName": a\n}', "text")
    assert model.text == '{\n  "jobName": a\n}'
    assert model.text_error is not None
    assert (model.text_error.line, model.text_error.column) == (2, 14)
    assert not model.sound
    assert "line 2, column 14" in str(model.obstacle)
    assert sources == ["text"]


def test_one_can_go_back_to_the_text_that_parsed_last() -> None:
    model, _ = _model()
    good = model.text
    model.set_text("{", "text")
    model.set_text("{{", "text")
    model.go_back("form")
    assert model.text == good
    assert model.sound


def test_an_absent_value_is_not_null() -> None:
    model, _ = _model()
    model.edit(("taskRoles", 0, "minFailedTaskCount"), None, "form")
    assert model.config["taskRoles"][0]["minFailedTaskCount"] is None
    model.edit(("taskRoles", 0, "minFailedTaskCount"), ABSENT, "form")
    assert "minFailedTaskCount" not in model.config["taskRoles"][0]


def test_errors_come_with_the_validations_paths() -> None:
    model, _ = _model()
    model.edit(("taskRoles", 0, "memoryMB"), 5, "form")
    assert [error.path for error in model.errors] == ["$.taskRoles[0].memoryMB"]
    assert not model.sound


def test_what_only_the_form_finds_wrong_keeps_the_job_from_being_sound() -> None:
    model, sources = _model()
    model.set_form_errors({"$.jobEnvs": Message("twice")}, "form")
    assert not model.sound
    assert [error.path for error in model.mistakes] == ["$.jobEnvs"]
    model.set_form_errors({"$.jobEnvs": Message("twice")}, "form")
    assert len(sources) == 1
    model.set_form_errors({}, "form")
    assert model.sound


def test_shapes_the_form_has_no_fields_for_are_an_obstacle_but_keep_their_text() -> None:
    for text, word in (
        ("[]", "object"),
        ('{"taskRoles": 3}', "taskRoles"),
        ('{"taskRoles": ["x"]}', "taskRoles"),
        ('{"taskRoles": [{"portList": {}}]}', "portList"),
        ('{"jobEnvs": null}', "jobEnvs"),
    ):
        model, _ = _model(text)
        assert word in str(model.obstacle)
        assert model.text == text


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    model, _ = _model()
    model.set_text("\ufeff{}", "text")
    assert model.text == "{}"
    assert model.text_error is None
