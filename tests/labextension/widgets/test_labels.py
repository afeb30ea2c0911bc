"""Labels of the form's inputs."""

from __future__ import annotations

import pytest

from pai_labextension.widgets.labels import job_label, place, port_label, role_label
from pai_labextension.widgets.language import Language

EN = Language("en")


def test_titles_help_limits_and_defaults_are_the_schemas() -> None:
    label = role_label(EN, "memoryMB")
    assert label.title == "Memory (MB)"
    assert label.help.endswith("At least 100.")
    assert label.default == "100"
    assert "At most 65535." in port_label(EN, "beginAt").help
    assert "At most" not in role_label(EN, "cpuNumber").help


def test_a_null_or_missing_default_is_blank() -> None:
    assert role_label(EN, "minSucceededTaskCount").default == ""
    assert role_label(EN, "storageGB").default == ""


def test_shared_definitions_are_followed() -> None:
    assert job_label(EN, "codeDir").title == "Code folder"
    assert job_label(Language("zh_CN"), "codeDir").title == "代码目录"


def test_an_input_is_named_within_a_sentence() -> None:
    english, chinese = Language("en"), Language("zh_CN")
    assert place(english, ("jobName",)) == "job name"
    assert place(english, ("taskRoles", 1, "command")) == "command of task role 2"
    assert place(chinese, ("taskRoles", 0, "portList", 2, "label")) == "任务角色 1 的端口段 3 的标签"
    with pytest.raises(ValueError, match=r"\$\.taskRoles\[0\]"):
        place(english, ("taskRoles", 0))
