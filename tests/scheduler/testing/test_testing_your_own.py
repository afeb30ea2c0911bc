"""An outside author proves an engine, a storage and a client as the page says, in a folder of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pai_scheduler.testing.engine import EngineConformance
from pai_scheduler.testing.storage import StorageConformance

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "contributors" / "testing-your-own.md"
FILE = re.compile(r"Save this as\s+`([\w.]+)`[^\n]*:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the files of the page."""
    for name, text in re.findall(FILE, PAGE.read_text(encoding="utf-8")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run_pytest(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout


@pytest.mark.daemon
def test_what_the_page_says_proves_an_engine_a_storage_and_a_client(folder: Path) -> None:
    # a few tests of a suite stand for all, which our own engines and storages pass
    some = [
        EngineConformance.test_the_log_of_a_task_that_never_ran_is_empty,
        EngineConformance.test_what_has_ended_before_a_restart_or_meanwhile_is_told_and_not_run_again,
        StorageConformance.test_what_was_written_in_pieces_is_read_as_one,
    ]
    chosen = " or ".join(["my_client", *(test.__name__ for test in some)])
    status, said = run_pytest(folder, "-k", chosen)
    assert (status, re.findall(r"\d+ passed", said)) == (0, ["4 passed"]), said


@pytest.mark.daemon
def test_a_storage_that_breaks_a_promise_is_found_with_what_it_did(folder: Path) -> None:
    file = folder / "test_my_storage.py"
    text = file.read_text(encoding="utf-8")
    forgetful = "class Forgetful(FolderStorage):\n    async def append(self, *_, **__):\n        pass\n\n\n"
    text = text.replace("class Test", f"{forgetful}class Test").replace("= FolderStorage(", "= Forgetful(")
    file.write_text(text, encoding="utf-8")
    status, said = run_pytest(
        folder,
        "test_my_storage.py",
        "-k",
        StorageConformance.test_what_is_appended_comes_after_what_is_there.__name__,
    )
    assert status == 1
    # pytest says both sides of what the suite asserts
    assert re.search(r"assert b'one ' == b'one two three four'", said), said
