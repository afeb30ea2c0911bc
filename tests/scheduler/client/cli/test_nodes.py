"""`pai nodes` on a real scheduler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

from pai_scheduler.client.cli.show import nodes_table

from .test_show import NODE

Pai = Callable[..., subprocess.CompletedProcess[str]]
ROOT = {"PAI_TOKEN": "token-of-root"}


def test_who_closed_a_machine_and_why_stands_in_the_list() -> None:
    closed = {**NODE, "closed": {"by": "root", "reason": "disk is replaced", "since": 1}}
    assert "READY, closed by root: disk is replaced" in nodes_table([closed], "en")  # type: ignore[list-item]


def test_machines_are_closed_and_opened_by_administrators_alone(pai: Pai) -> None:
    refused = pai("nodes", "cordon", "node-a", "--reason", "disk")
    assert (refused.returncode, refused.stderr) == (1, "Only an administrator may close and open nodes.\n")
    unknown = pai("nodes", "cordon", "no-such", "--reason", "disk", **ROOT)
    assert (unknown.returncode, unknown.stderr.startswith("Node no-such is not found.")) == (1, True)
    assert pai("nodes", "cordon", "node-a", **ROOT).returncode == 2
    opened = pai("nodes", "uncordon", "node-a", **ROOT)
    assert (opened.returncode, opened.stdout) == (0, "Node node-a is open.\n")
    assert json.loads(pai("--json", "nodes").stdout)[0]["closed"] is None
