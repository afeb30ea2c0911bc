"""Cells that run as jobs, in a real kernel against a real scheduler."""

from __future__ import annotations

import re

from pai_labextension.magics.cell import demand_of, make_parser
from tests.labextension.magics.conftest import Kernel


def test_a_cell_runs_as_a_job_with_its_variables_there_and_back(kernel: Kernel) -> None:
    kernel.run("x = 20\ndef double(n): return 2 * n")
    ran = kernel.run(
        "%%pai --name mine --memory 256 --send x,double --get y,double --env A=b\n"
        "import os\nprint('task', os.environ['PAI_TASK_INDEX'], os.environ['A'])\ny = double(x) + 2"
    )
    assert ran.error == "", ran.traceback
    assert ran.out == "task 0 b\n"
    assert ran.err == "", "a widget shows how far it is"
    assert re.match(r"mine_\w{8}: .* 0/1 ", ran.displays[0])
    assert kernel.run("y, double(4)").results == ["(42, 8)"]


def test_a_cell_may_ask_for_disk() -> None:
    assert demand_of(make_parser("en").parse_args(["--storage", "2"])).storage_gb == 2


def test_a_cell_may_wait_for_jobs() -> None:
    options = make_parser("en").parse_args(["--after", "prepare", "--after", "fetch:ended"])
    assert demand_of(options).after == ["prepare", {"job": "fetch", "on": "ended"}]


def test_of_several_tasks_each_line_says_whose_it_is_and_values_are_lists(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%pai --role worker=2 --get rank\nimport os\nrank = int(os.environ['PAI_TASK_INDEX'])\n"
        "print('one'); print('two', end='')"
    )
    assert ran.error == "", ran.traceback
    assert sorted(ran.out.splitlines()) == [
        f"worker-{index} | {word}" for index in range(2) for word in ("one", "two")
    ]
    assert kernel.run("rank").results == ["[0, 1]"]


def test_a_failure_is_the_exception_with_the_traceback_of_the_task(kernel: Kernel) -> None:
    ran = kernel.run("%%pai\nvalues = {}\nvalues['missing']")
    assert ran.error == "KeyError"
    assert 'File "<cell>", line 2' in ran.traceback
    assert "values['missing']" in ran.traceback
    assert ran.traceback.startswith("main-0\nTraceback"), "our own frames help nobody"
    assert "Traceback" not in ran.out + ran.err, "once is enough"
    gang = kernel.run(
        "%%pai --role worker=2\nimport os, time\n"
        "if os.environ['PAI_TASK_INDEX'] == '1': raise ValueError('rank 1')\ntime.sleep(3600)"
    )
    assert gang.error == "ValueError", "what failed itself, not what was ended for it"
    assert "worker-1" in gang.traceback
    assert "Traceback" not in gang.out + gang.err


def test_a_cell_that_exits_ends_itself_and_the_next_one_runs(kernel: Kernel) -> None:
    assert kernel.run("%%pai\nimport sys\nsys.exit(3)").error == "SystemExit"
    ran = kernel.run("%%pai --get y\ny = 1")
    assert ran.error == "", ran.traceback
    assert kernel.run("y").results == ["1"]


def test_a_traceback_that_is_not_raised_stands_in_the_output(kernel: Kernel) -> None:
    ran = kernel.run(
        "%%pai --role worker=2\nimport os\ntry:\n    {}['logged']\nexcept KeyError:\n"
        "    import traceback\n    traceback.print_exc()\n"
    )
    assert ran.error == "", ran.traceback
    assert sorted(line for line in ran.out.splitlines() if "Error" in line) == [
        "worker-0 | KeyError: 'logged'",
        "worker-1 | KeyError: 'logged'",
    ]


def test_a_job_that_dies_says_why_in_a_few_lines(kernel: Kernel) -> None:
    ran = kernel.run("%%pai\nimport os\nos._exit(9)")
    assert ran.error == "CommandError"
    assert "exit code 9" in ran.traceback
    assert "Traceback" not in ran.traceback


def test_what_is_wrong_with_the_line_is_said_before_anything_runs(kernel: Kernel) -> None:
    assert kernel.run("%%pai --send nothing\npass").traceback == "There is no variable nothing to send."
    assert "≠ NAME=N" in kernel.run("%%pai --role worker=x\npass").traceback
    assert "usage: %%pai" in kernel.run("%%pai --help\npass").out
    assert kernel.run("%%pai\n1 +").error == "SyntaxError"
    for command in ("!ls", "%time x", "files = !ls"):
        refused = kernel.run(f"%%pai\nx = 1\n{command}")
        assert refused.traceback.startswith("Line 2 of the cell is a command of IPython"), refused.traceback
        assert command in refused.traceback
    assert "Not submitted" in kernel.run("%%pai --gpus 1000\npass").traceback
    locked = kernel.run("import threading; lock = threading.Lock()")
    assert not locked.error
    assert kernel.run("%%pai --send lock\npass").traceback.startswith("lock cannot be sent to a job")


def test_an_interrupt_asks_whether_to_stop_the_job_or_only_to_stop_watching(kernel: Kernel) -> None:
    cell = "%%pai --name {name}\nimport time\nprint('begun')\ntime.sleep(3600)"

    def interrupt(text: str) -> None:
        if "begun" in text:
            kernel.manager.interrupt_kernel()

    left = kernel.run(cell.format(name="left"), on_output=interrupt, answer="w")
    assert re.match(r"Job left_\w+ runs on: %pai logs -f left_\w+ shows it", left.traceback)
    nobody = kernel.run(cell.format(name="nobody"), on_output=interrupt)
    assert "runs on" in nobody.traceback, "where nobody can be asked"
    ended = kernel.run(cell.format(name="ended"), on_output=interrupt, answer="s")
    assert re.match(r"Job ended_\w+ is stopped\.", ended.traceback)
    states = {
        line.split()[0].partition("_")[0]: line.split()[1]
        for line in kernel.run("%pai jobs").out.splitlines()
    }
    assert (states["left"], states["nobody"], states["ended"]) == ("RUNNING", "RUNNING", "STOPPED")
