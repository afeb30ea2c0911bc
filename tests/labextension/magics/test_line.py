"""The command `pai` in a cell of a real kernel."""

from __future__ import annotations

from tests.labextension.magics.conftest import Kernel
from tests.testbed.scheduler import hello_job


def test_jobs_are_listed_shown_read_and_stopped_in_cells(kernel: Kernel) -> None:
    kernel.run(f"job = {hello_job('by-magic', 'echo grüß; sleep 3600')!r}")
    kernel.run("from pai_scheduler.client import Client\nasync with Client() as pai: await pai.submit(job)")
    listed = kernel.run("%pai jobs")
    assert listed.out.splitlines()[0].split()[:2] == ["NAME", "STATE"]
    assert "by-magic" in listed.out
    assert "main-0" in kernel.run("name = 'by-magic'\n%pai show {name}").out

    followed = kernel.run("%pai logs -f by-magic", on_output=lambda _text: kernel.manager.interrupt_kernel())
    assert followed.out == "grüß\n"
    assert (followed.error, followed.traceback) == (
        "CommandError",
        "Interrupted. What runs in the cluster runs on.",
    )
    assert "Job by-magic is stopped." in kernel.run("%pai stop by-magic").out
    assert kernel.run("%pai jobs --json").out.startswith("[\n")


def test_a_refusal_ends_the_cell_with_the_commands_words_and_no_traceback_of_ours(kernel: Kernel) -> None:
    refused = kernel.run("%pai show nothing-of-this-name")
    assert "nothing-of-this-name" in refused.err
    assert refused.traceback == "pai show: exit code 1"
    wrong = kernel.run("%pai shwo x")
    assert "invalid choice: 'shwo'" in wrong.traceback
    assert "usage: pai" in wrong.traceback
    assert "Traceback" not in wrong.traceback


def test_what_needs_a_terminal_is_sent_to_one_and_help_is_printed(kernel: Kernel) -> None:
    assert "in a terminal" in kernel.run("%pai ssh a main-0").traceback
    assert "usage: pai" in kernel.run("%pai").out
    assert kernel.run("%pai jobs --help").error == ""
    assert "cannot be read" in kernel.run("%pai show 'x").traceback
