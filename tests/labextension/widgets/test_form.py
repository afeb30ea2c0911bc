"""The form as a view of the job."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pai_labextension.widgets.form import FormView, unique_name
from pai_labextension.widgets.json_edit import ABSENT
from pai_labextension.widgets.model import JobModel, text_of
from pai_scheduler.job.json_text import loads_jsonc
from pai_scheduler.testing.scheduler import NODE
from tests.labextension.widgets.making import form_view

DOCUMENTS = sorted((Path(__file__).parents[2] / "fixtures" / "jobs").glob("*.json*"))
JOB: dict[str, Any] = {
    "jobName": "a",
    "image": "b",
    "taskRoles": [{"name": "worker", "command": "true", "portList": [{"label": "tb"}]}],
    "jobEnvs": {"lr": 1},
}


def form_of(config: Any = JOB, locale: str = "en") -> tuple[JobModel, FormView]:
    model = JobModel(config if isinstance(config, str) else text_of(config))
    return model, form_view(model, locale)


def visible(widget: Any) -> bool:
    return widget.layout.display != "none"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
async def test_the_documents_jobs_are_shown_and_not_changed_by_that(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    model, form = form_of(text)
    form.offer({}, [NODE])
    assert model.sound
    assert model.text == text
    assert form.field("jobName").entry.value == loads_jsonc(text)["jobName"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.stem)
async def test_an_edit_changes_nothing_else_of_the_documents_jobs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    model, form = form_of(text)
    form.roles.boxes[0].field("memoryMB").entry.value = "9999"
    expected = loads_jsonc(text)
    expected["taskRoles"][0]["memoryMB"] = 9999
    assert loads_jsonc(model.text) == expected
    assert re.findall(r"// .*", model.text) == re.findall(r"// .*", text)


async def test_the_text_changes_the_form() -> None:
    model, form = form_of()
    changed = {**JOB, "jobName": "other", "retryCount": 3, "jobEnvs": {"isDebug": True}}
    changed["taskRoles"] = [{**JOB["taskRoles"][0], "cpuNumber": 7, "minFailedTaskCount": None}] * 2
    model.set_text(json.dumps(changed), "text")
    assert form.field("jobName").entry.value == "other"
    assert form.field("retryCount").entry.value == "3"
    assert form.debug.entry.value is True
    assert [box.field("cpuNumber").entry.value for box in form.roles.boxes] == ["7", "7"]
    assert form.roles.boxes[1].field("minFailedTaskCount").entry.value == "null"
    assert form.envs.rows == []


async def test_every_input_writes_its_field() -> None:
    model, form = form_of()
    form.field("image").entry.value = "c"
    form.field("virtualCluster").offer([("vision", "vision")])
    form.field("virtualCluster").entry.value = "vision"
    form.offer({}, [NODE])
    form.field("gpuType").entry.value = "P100"
    form.field("codeDir").entry.value = "/code"
    form.field("retryCount").entry.value = "-1"
    form.debug.entry.value = True
    form.envs.rows[0].text.value = "2"
    box = form.roles.boxes[0]
    box.field("taskNumber").entry.value = "4"
    box.field("command").entry.value = "one\ntwo"
    box.field("minSucceededTaskCount").entry.value = "number"
    box.field("minSucceededTaskCount").number.value = "2"
    box.ports.rows[0].fields["portNumber"].entry.value = "3"
    assert model.config == {
        "jobName": "a",
        "image": "c",
        "virtualCluster": "vision",
        "gpuType": "P100",
        "codeDir": "/code",
        "retryCount": -1,
        "jobEnvs": {"lr": 2, "isDebug": True},
        "taskRoles": [
            {
                "name": "worker",
                "command": "one\ntwo",
                "taskNumber": 4,
                "minSucceededTaskCount": 2,
                "portList": [{"label": "tb", "portNumber": 3}],
            }
        ],
    }
    assert model.sound
    form.field("codeDir").entry.value = ""
    form.debug.entry.value = False
    assert "codeDir" not in model.config
    assert model.config["jobEnvs"] == {"lr": 2}


async def test_task_roles_are_added_duplicated_and_removed() -> None:
    model, form = form_of()
    assert form.roles.boxes[0].remove.disabled
    form.roles.boxes[0].duplicate.click()
    form.roles.add.click()
    assert [role["name"] for role in model.config["taskRoles"]] == ["worker", "worker_2", "task_3"]
    assert model.config["taskRoles"][1]["portList"] == [{"label": "tb"}]
    form.roles.boxes[0].remove.click()
    assert [role["name"] for role in model.config["taskRoles"]] == ["worker_2", "task_3"]
    assert [box.field("name").entry.value for box in form.roles.boxes] == ["worker_2", "task_3"]


async def test_ports_are_added_and_removed() -> None:
    model, form = form_of()
    ports = form.roles.boxes[0].ports
    ports.add.click()
    ports.rows[1].fields["label"].entry.value = "rpc"
    ports.rows[0].remove.click()
    assert model.config["taskRoles"][0]["portList"] == [{"label": "rpc", "beginAt": 0, "portNumber": 1}]
    assert len(ports.rows) == 1


async def test_the_first_port_variable_and_debug_switch_need_nothing_to_be_there() -> None:
    bare = {"jobName": "a", "image": "b", "taskRoles": [{"name": "worker", "command": "true"}]}
    model, form = form_of(bare)
    form.roles.boxes[0].ports.add.click()
    form.roles.boxes[0].ports.rows[0].fields["label"].entry.value = "tb"
    form.debug.entry.value = True
    form.envs.add.click()
    form.envs.rows[0].name.value = "lr"
    assert model.sound
    assert model.config["taskRoles"][0]["portList"] == [{"label": "tb", "beginAt": 0, "portNumber": 1}]
    assert model.config["jobEnvs"] == {"isDebug": True, "lr": ""}


async def test_errors_stand_beside_their_inputs_and_the_others_are_given_back() -> None:
    _, form = form_of()
    left = form.show_errors(
        {
            "$.image": ["no image"],
            "$.taskRoles[0].memoryMB": ["too small"],
            "$.taskRoles[0].portList[0].label": ["no label"],
            "$.jobEnvs.lr": ["no value"],
            "$.codeDir": ["no folder"],
            "$.extras": ["no object"],
        }
    )
    box = form.roles.boxes[0]
    assert "no image" in form.field("image").problem
    assert "too small" in box.field("memoryMB").problem
    assert "no label" in box.ports.rows[0].fields["label"].problem
    assert "no value" in form.envs.problem
    assert "no folder" in form.field("codeDir").problem
    assert form.more.selected_index == 0
    assert left == [("$.extras", "no object")]
    form.show_errors({})
    assert box.field("memoryMB").problem == form.envs.problem == ""


async def test_a_text_that_does_not_parse_hides_the_form_and_says_why() -> None:
    model, form = form_of()
    model.set_text("{", "text")
    assert not visible(form.inner)
    assert "line 1" in form.obstacle.value
    assert model.text == "{"
    form.back.click()
    assert model.config == JOB
    assert visible(form.inner)
    assert not visible(form.obstacle)


async def test_a_wrong_value_in_the_text_is_shown_as_it_is() -> None:
    model, form = form_of({**JOB, "jobName": 3, "retryCount": "often"})
    assert form.field("jobName").entry.value == "3"
    assert form.field("retryCount").entry.value == "often"
    assert model.config["jobName"] == 3


async def test_gpu_types_are_offered_with_what_is_free() -> None:
    _, form = form_of()
    form.offer({}, [NODE])
    assert form.field("gpuType").entry.options == (
        ("any type", ""),
        ("P100: 1 of 1 free", "P100"),
        ("TITANX: 1 of 2 free (simulated)", "TITANX"),
    )


async def test_a_name_becomes_unique_and_stays_short() -> None:
    model, form = form_of()
    form.unique.click()
    first = model.config["jobName"]
    assert re.fullmatch(r"a_[0-9a-f]{8}", first)
    form.unique.click()
    assert re.fullmatch(r"a_[0-9a-f]{8}", model.config["jobName"])
    assert model.config["jobName"] != first
    assert unique_name("").startswith("job_")


async def test_inputs_have_labels_and_help_in_the_persons_language() -> None:
    _, form = form_of(locale="zh_CN")
    field = form.roles.boxes[0].field("memoryMB")
    assert field.entry.description == "内存（MB）"
    assert "100" in field.entry.tooltip
    field.load(ABSENT)
    assert field.entry.placeholder == "100"
