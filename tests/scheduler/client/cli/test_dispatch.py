"""Which function is behind each command of `pai`, and what is loaded for it."""

from __future__ import annotations

import json
import subprocess
import sys
from inspect import iscoroutinefunction

import pytest

from pai_scheduler.client.cli.program import COMMANDS, load_command


@pytest.mark.parametrize("name", COMMANDS)
def test_behind_every_command_is_a_function(name: str) -> None:
    assert iscoroutinefunction(load_command(name))


def _loaded(code: str) -> set[str]:
    """The packages that are loaded when this has run."""
    program = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stderr))


def test_help_waits_for_neither_http_nor_ssh() -> None:
    loaded = _loaded(
        """
from pai_scheduler.client.cli import main
try:
    main(["--help"])
except SystemExit:
    pass
"""
    )
    assert loaded & {"httpx", "asyncssh", "tqdm", "wcmatch", "wcwidth"} == set()


def test_a_list_of_jobs_waits_for_no_ssh() -> None:
    loaded = _loaded(
        """
import asyncio
from pai_scheduler.client.cli import main, program

async def list_nothing(session, **options):
    return 0

# all but the answer: here is no scheduler
load = program.load_command
program.load_command = lambda name: load(name) and list_nothing
assert main(["jobs"]) == 0
"""
    )
    assert "httpx" in loaded
    assert loaded & {"asyncssh", "tqdm", "wcmatch"} == set()


def test_a_remote_function_that_nobody_watches_draws_nothing() -> None:
    loaded = _loaded("from pai_scheduler.client import remote\nremote(len).options(gpus=1)")
    assert loaded & {"tqdm", "IPython"} == set()
