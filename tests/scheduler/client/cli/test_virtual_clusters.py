"""`pai vc` on a real scheduler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

Pai = Callable[..., subprocess.CompletedProcess[str]]
ROOT = {"PAI_TOKEN": "token-of-root"}


def _clusters(pai: Pai) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(pai("--json", "vc", "list").stdout)
    return found


def test_an_administrator_makes_stops_starts_and_deletes_a_virtual_cluster(pai: Pai) -> None:
    before = _clusters(pai)
    made = pai("vc", "set", "cli-vc", "7.5", "--max", "30", "--user", "bob", "--group", "vision", **ROOT)
    assert (made.returncode, made.stdout) == (0, "Virtual cluster cli-vc is guaranteed 7.5 %.\n")
    now = _clusters(pai)["cli-vc"]
    assert (now["capacity"], now["maxCapacity"], now["status"]) == (7.5, 30, "RUNNING")
    assert pai("vc", "set", "cli-vc", "8", "--everybody", **ROOT).returncode == 0
    assert _clusters(pai)["cli-vc"]["maxCapacity"] == 30
    assert "nothing else starts" in pai("vc", "stop", "cli-vc", **ROOT).stdout
    assert _clusters(pai)["cli-vc"]["status"] == "STOPPED"
    assert pai("vc", "start", "cli-vc", **ROOT).stdout == "Virtual cluster cli-vc runs.\n"
    assert _clusters(pai)["cli-vc"]["status"] == "RUNNING"
    deleted = pai("--json", "vc", "delete", "cli-vc", **ROOT)
    assert json.loads(deleted.stdout) == {"name": "cli-vc"}
    shares = {name: cluster["capacity"] for name, cluster in before.items()}
    assert {name: cluster["capacity"] for name, cluster in _clusters(pai).items()} == shares


def test_only_administrators_change_virtual_clusters(pai: Pai) -> None:
    refused = pai("vc", "set", "cli-vc", "7.5")
    assert (refused.returncode, refused.stderr) == (
        1,
        "Only an administrator may change virtual clusters.\n",
    )


def test_the_list_is_that_of_vcs(pai: Pai) -> None:
    assert pai("vc", "list").stdout == pai("vcs").stdout
    assert pai("vc").returncode == 2
