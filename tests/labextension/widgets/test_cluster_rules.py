"""What a virtual cluster does with its jobs, and what maintenance there is, as ClusterView says it."""

from __future__ import annotations

from typing import Any

from pai_labextension.widgets.cluster_rules import maintenance, rules
from pai_labextension.widgets.language import Language
from pai_labextension.widgets.times import when
from pai_scheduler.testing.scheduler import NODE

EN, ZH = Language("en"), Language("zh_CN")
PLAIN: Any = {
    "shortestRemaining": False,
    "levelGpuHours": [],
    "fairShareHours": 0,
    "shorterFirst": 0,
    "placement": "pack",
}
WINDOW = {"name": "disks", "nodes": ["*"], "begin": 1000, "end": 9000, "reason": "<new> disks", "by": "root"}


def with_rules(**rules: Any) -> Any:
    return {**PLAIN, **rules}


def test_a_plain_virtual_cluster_only_says_where_what_starts_is_put() -> None:
    assert rules(EN, PLAIN) == ["What starts fills machines."]
    assert rules(ZH, with_rules(placement="spread")) == ["新任务放到最空闲的机器。"]


def test_levels_are_said_with_their_gpu_hours() -> None:
    said = rules(EN, with_rules(levelGpuHours=[1.0, 10.5]))
    assert said[0] == (
        "A job goes to the next level when it has had so many GPU hours: 1 · 10.5. "
        "Lower levels come first and stop others."
    )


def test_fair_share_is_said_with_what_one_has_used() -> None:
    used = {"gpuHours": 12.54, "percent": 30.2}
    assert rules(EN, with_rules(fairShareHours=168, usedLately=used))[:2] == [
        "Who has used less comes first; half counts after 168 hours.",
        "You have used 12.5 GPU hours lately: 30 % of all.",
    ]


def test_that_jobs_that_need_less_come_first_is_said() -> None:
    said = rules(EN, with_rules(shortestRemaining=True, shorterFirst=10))
    assert said[0] == "Jobs that need least GPU time to their end come first and stop others."
    assert said[1] == "Shorter jobs come first."


def test_planned_maintenance_is_told_once_with_its_machines() -> None:
    nodes: Any = [{**NODE, "name": name, "maintenance": [WINDOW]} for name in ("a", "b")]
    assert f"Maintenance from {when(1000)} to {when(9000)}: a, b (&lt;new&gt; disks)" in maintenance(
        EN, nodes
    )
    assert maintenance(EN, [NODE]) == ""


def test_maintenance_under_way_says_until_when() -> None:
    closed = {"by": "root", "reason": "disks", "since": 1000, "until": 9000}
    node: Any = {**NODE, "closed": closed, "maintenance": [WINDOW]}
    assert f"In maintenance until {when(9000)}: node-a" in maintenance(EN, [node])
