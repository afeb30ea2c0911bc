"""`pai-singleuser` is JupyterHub's server, without what it would load and never use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pai_labextension import singleuser

PROGRAM = Path(sys.executable).parent / "pai-singleuser"


@pytest.mark.daemon
def test_it_takes_the_options_of_jupyterhubs_own() -> None:
    said = [
        subprocess.check_output([program, "--help-all"], text=True, env={**os.environ, "COLUMNS": "100"})
        for program in (PROGRAM, PROGRAM.with_name("jupyterhub-singleuser"))
    ]
    assert said[0].replace("pai-singleuser", "jupyterhub-singleuser") == said[1]


def test_when_it_serves_memory_is_searched_again_and_the_grammar_is_not_loaded() -> None:
    code = """
import gc, sys
from pai_labextension import singleuser
from pai_scheduler.job.lazy_grammar import put_off_grammar
put_off_grammar()
import jupyterhub.singleuser
jupyterhub.singleuser.main = lambda: print(gc.isenabled(), gc.get_freeze_count() > 10_000)
print(singleuser.main(), "jupyter_server.serverapp" in sys.modules, "lark" in sys.modules)
"""
    said = subprocess.check_output([sys.executable, "-c", code], text=True)
    assert said.split() == ["True", "True", "0", "True", "False"]


def test_without_jupyterhub_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "jupyterhub", None)
    monkeypatch.delitem(sys.modules, "jupyterhub.singleuser", raising=False)
    assert singleuser.main() == 1
    assert "pip install jupyterhub jupyterlab" in capsys.readouterr().err
