from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from pai_labextension.runs.manager import (
    FileKind,
    RunDemand,
    RunError,
    defaults,
    kind_of,
    run_job,
    suggested_name,
    values,
)
from pai_scheduler.job.validation import validate

DEMAND = RunDemand(
    "lab/notebook:1", gpus=1, gpu_type="P100", cpus=2, memory_mb=4096, virtual_cluster="vision"
)


def test_the_job_of_a_notebook_is_valid_and_asks_for_what_was_chosen():
    demand = replace(DEMAND, parameters={"rate": "0.1"})
    job = run_job("train_1", "train.ipynb", demand, home="/home/jovyan", shared_folders=["data"])
    assert not validate(job)
    (role,) = job["taskRoles"]
    assert (role["gpuNumber"], role["cpuNumber"], role["memoryMB"], role["shmMB"]) == (1, 2, 4096, 1024)
    assert (job["gpuType"], job["virtualCluster"]) == ("P100", "vision")
    assert json.loads(job["jobEnvs"]["PAI_NOTEBOOK_PARAMETERS"]) == {"rate": 0.1}
    assert job["outputDir"] == "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/results/$PAI_JOB_NAME"
    assert job["extras"] == {
        "run": {"file": "train.ipynb", "kind": "notebook"},
        "home": "/home/jovyan",
        "sharedFolders": ["data"],
    }


def test_a_type_of_gpu_is_asked_for_only_with_a_gpu():
    assert run_job("a", "a.py", replace(DEMAND, gpus=0))["gpuType"] == ""


def test_results_go_into_a_folder_of_ones_own_or_where_a_path_says():
    def uri(results: str) -> object:
        return run_job("a", "a.py", replace(DEMAND, results=results))["outputDir"]

    assert uri("mine/") == "$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/mine"
    assert uri("/Shared/vision/out") == "$PAI_DEFAULT_FS_URI/Shared/vision/out"
    assert uri("  ") == uri("results/$PAI_JOB_NAME")
    with pytest.raises(RunError, match=r"“\.\.”"):
        uri("../bob")


@pytest.mark.parametrize("file", ["it's $(here).py", "-c.sh", "a;b.py", "项目.py"])
def test_the_shell_reads_a_files_name_and_arguments_as_words_and_nothing_else(file: str):
    typed = "--name 'a b' $(reboot) `x` ; done"
    command = run_job("a", file, replace(DEMAND, arguments=typed))["taskRoles"][0]["command"]
    last = command.strip().splitlines()[-1]
    words = shlex.split(last.replace('"$(command -v bash || echo sh)"', "sh"))
    assert words[-7:] == [f"./{file}", "--name", "a b", "$(reboot)", "`x`", ";", "done"]


def test_arguments_with_half_a_quotation_are_refused():
    with pytest.raises(RunError, match="quotation"):
        run_job("a", "a.py", replace(DEMAND, arguments="'a"))


def test_only_notebooks_and_scripts_run():
    assert [kind_of(name) for name in ("a.ipynb", "B.PY", "c.sh")] == list(FileKind)
    for name in ("a.txt", "Makefile", ".py"):
        with pytest.raises(RunError, match="cannot run"):
            kind_of(name)


def test_a_job_is_called_like_its_file_as_far_as_a_job_may_be():
    assert suggested_name("train model (1).ipynb") == "train-model-1"
    assert suggested_name("项目.py") == "run"
    assert len(suggested_name("x" * 300 + ".py")) == 200


def code(source: str | list[str], *tags: str) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}}


def test_the_parameters_are_what_the_tagged_cell_assigns_in_its_order():
    source = [
        "rate = 0.1  # of learning\n",
        "name: str = 'resnet'\n",
        "sizes = [1, 2]\n",
        "now = time()\n",
        "a.b = 1\n",
    ]
    notebook = {"cells": [code("other = 1"), code(source, "parameters"), code("late = 1", "parameters")]}
    assert list(defaults(notebook).items()) == [("rate", "0.1"), ("name", "'resnet'"), ("sizes", "[1, 2]")]


@pytest.mark.parametrize(
    "notebook",
    [
        {},
        {"cells": None},
        {"cells": [1, {"cell_type": "code", "metadata": None}]},
        {"cells": [{"cell_type": "markdown", "source": "a = 1", "metadata": {"tags": ["parameters"]}}]},
        {"cells": [code("%matplotlib inline\na = 1", "parameters")]},
    ],
)
def test_a_notebook_without_such_a_cell_has_none(notebook: dict[str, Any]):
    assert defaults(notebook) == {}


def test_values_are_what_they_look_like_and_else_the_text_itself():
    typed = {
        "a": "3",
        "b": " 1e-3 ",
        "c": "true",
        "d": "True",
        "e": "None",
        "f": "[1, 'x']",
        "g": "'quoted'",
        "h": "resnet 50",
        "i": "__import__('os')",
        "j": "{1, 2}",
    }
    assert values(typed) == {
        "a": 3,
        "b": 0.001,
        "c": True,
        "d": True,
        "e": None,
        "f": [1, "x"],
        "g": "quoted",
        "h": "resnet 50",
        "i": "__import__('os')",
        "j": "{1, 2}",
    }


@pytest.mark.parametrize("name", ["", "2nd", "a b", "x = 1; y", "import"])
def test_a_name_that_python_does_not_take_is_refused(name: str):
    with pytest.raises(RunError, match="cannot be called"):
        values({name: "1"})
