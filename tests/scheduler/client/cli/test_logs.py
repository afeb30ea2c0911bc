"""`pai logs`: with times, and across a restart of the scheduler in the middle of a line."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scheduler.client.cli.pai import PAI, environ_for
from tests.testbed.scheduler import RunningScheduler, hello_job

Pai = Callable[..., subprocess.CompletedProcess[str]]

STAMP = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", re.MULTILINE)


@pytest.mark.parametrize("follow", [[], ["-f"]])
def test_each_line_is_printed_with_its_time_where_that_is_asked_for(pai: Pai, follow: list[str]) -> None:
    name = f"cli-timed{len(follow)}"
    pai("submit", "-", "--watch", stdin=json.dumps(hello_job(name, "seq 3")))
    printed = pai("logs", "--timestamps", name, *follow)
    assert printed.returncode == 0
    assert len(STAMP.findall(printed.stdout)) == 3
    assert STAMP.sub("", printed.stdout) == "1\n2\n3\n"


def test_a_line_that_a_restart_cuts_in_two_is_printed_as_one_with_one_time(
    own_scheduler: Callable[..., RunningScheduler], tmp_path: Path
) -> None:
    own = own_scheduler()
    gate = tmp_path / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.05; done"
    job = hello_job("cut", f"echo first; printf 'second li'; {wait}; echo ne; echo third")
    environ = environ_for(own)
    subprocess.run([PAI, "submit", "-"], input=json.dumps(job).encode(), env=environ, check=True)
    with subprocess.Popen(
        [PAI, "logs", "-ft", "cut"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as following:
        assert following.stdout is not None
        assert following.stderr is not None
        seen = b""
        while b"second li" not in seen:
            seen += following.stdout.read(1)
        own.kill()
        assert b"Waiting for it to come back" in following.stderr.readline()
        own.start()
        gate.touch()
        seen += following.stdout.read()
        assert following.wait(30) == 0
    assert STAMP.sub("", seen.decode()) == "first\nsecond line\nthird\n"
    assert len(STAMP.findall(seen.decode())) == 3
