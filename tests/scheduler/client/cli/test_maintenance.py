"""`pai maintenance` on a real scheduler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from typing import Any

from pai_scheduler.client.cli.show import nodes_table

from .test_show import NODE

Pai = Callable[..., subprocess.CompletedProcess[str]]
ROOT = {"PAI_TOKEN": "token-of-root"}
WANTED = ("node-a", "--begin", "2100-01-01T08:00", "--end", "2100-01-01T10:00+00:00", "--reason", "disk")


def test_maintenance_is_planned_listed_and_deleted(pai: Pai) -> None:
    refused = pai("maintenance", "set", "disks", *WANTED)
    assert (refused.returncode, refused.stderr) == (1, "Only an administrator may plan maintenance.\n")
    done = pai("maintenance", "set", "disks", *WANTED, **ROOT)
    assert (done.returncode, done.stdout.startswith("Maintenance disks is planned from 2100-01-01")) == (
        0,
        True,
    )
    listed = pai("maintenance", "list")
    assert ("disks" in listed.stdout, "node-a" in listed.stdout, "root" in listed.stdout) == (
        True,
        True,
        True,
    )
    assert [one["reason"] for one in json.loads(pai("--json", "maintenance", "list").stdout)] == ["disk"]
    gone = pai("maintenance", "delete", "disks", **ROOT)
    assert (gone.returncode, gone.stdout) == (0, "Maintenance disks is deleted.\n")
    assert pai("maintenance", "list").stdout == "No maintenance is planned.\n"


def test_a_time_that_is_none_is_refused(pai: Pai) -> None:
    wrong = pai("maintenance", "set", "disks", "a", "--begin", "soon", "--end", "later", "--reason", "disk")
    assert (wrong.returncode, "soon is no time" in wrong.stderr) == (2, True)


def test_what_is_planned_or_under_way_stands_in_the_list_of_machines() -> None:
    begin, end = 4_102_444_800_000, 4_102_448_400_000
    window = {"name": "w", "nodes": ["*"], "begin": begin, "end": end, "reason": "disk", "by": "root"}
    later: Any = {**NODE, "maintenance": [window]}
    assert "READY, maintenance from" in nodes_table([later], "en")
    under_way: Any = {**later, "closed": {"by": "root", "reason": "disk", "since": begin, "until": end}}
    assert "READY, in maintenance until" in nodes_table([under_way], "en")
