"""An outside author proves an engine, a storage and a client as the page says, in a folder of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_what_the_page_says_proves_an_engine_a_storage_and_a_client(folder: Path) -> None:
    # one test of a suite stands for all, which our own engines and storages pass
    some = "known_by_its_exit_code or told_and_not_run_again or read_as_one or my_client"
    status, said = run_pytest(folder, "-k", some)
    assert (status, re.findall(r"\d+ passed", said)) == (0, ["4 passed"]), said


def test_a_storage_that_breaks_a_promise_is_found_with_what_it_did(folder: Path) -> None:
    test = folder / "test_my_storage.py"
    text = test.read_text(encoding="utf-8")
    forgetful = "class Forgetful(FolderStorage):\n    async def append(self, *_, **__):\n        pass\n\n\n"
    text = text.replace("class Test", f"{forgetful}class Test").replace("= FolderStorage(", "= Forgetful(")
    test.write_text(text, encoding="utf-8")
    status, said = run_pytest(folder, "test_my_storage.py", "-k", "appended_comes_after")
    assert status == 1
    # pytest says both sides of what the suite asserts
    assert re.search(r"assert b'one ' == b'one two three four'", said), said
