"""The Grafana board and the documented scrape configuration, with a real Prometheus and a real scheduler."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.testbed.fixtures import provide
from tests.testbed.prometheus import Prometheus
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler

ROOT = Path(__file__).parents[2]
BOARD = json.loads((ROOT / "hub_config/grafana/pai-for-jupyter.json").read_text(encoding="utf-8"))
PAGE = (ROOT / "docs/administrators/monitoring.md").read_text(encoding="utf-8")
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
#: expressions of alerts in the documentation
ALERTS = re.findall(r"^\|[^|]+\| `([^`]+)` \|$", PAGE.partition("worth an alert")[2], re.MULTILINE)
#: What Grafana puts in, by what a person chooses.
VALUES = {"$virtual_cluster": ".*", "$job": "pai", "$__rate_interval": "1m"}
#: There are no GPUs but simulated ones here, which do nothing.
NOTHING_HERE = "pai_gpus_busy"

_METRIC = re.compile(r"\b((?:pai|process)_[a-z_]+)\b")


def filled_in(expression: str) -> str:
    for name, value in VALUES.items():
        expression = expression.replace(name, value)
    return expression


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run a scheduler with the token for metrics, in which a few jobs have run and one still does."""
    folder = tmp_path_factory.mktemp("scheduler")
    (folder / "token").write_text("a-token-for-prometheus-only")
    running = WarmScheduler(folder, "--metrics-token-file", str(folder / "token"))
    try:
        yield running
    finally:
        running.close()


@pytest.fixture(scope="module")
def prometheus(scheduler: RunningScheduler, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run Prometheus with the documented configuration, but for the address, the token and the patience."""
    (block,) = re.findall(r"```yaml\n(scrape_configs:.*?)```", PAGE, re.DOTALL)
    config = yaml.safe_load(block)
    (job,) = config["scrape_configs"]
    assert job["static_configs"] == [{"targets": ["127.0.0.1:9186"]}]
    job["static_configs"] = [{"targets": [scheduler.url.removeprefix("http://")]}]
    job["authorization"]["credentials_file"] = str(scheduler.folder / "token")
    job["scrape_interval"] = "1s"
    folder = tmp_path_factory.mktemp("prometheus")
    started: list[Prometheus] = []

    def start() -> str:
        started.append(Prometheus(folder, config))
        return started[0].url

    provide(start)
    try:
        _until(lambda: started[0].query("up{job='pai'} == 1"), "Prometheus reads the scheduler")
        _run_jobs(scheduler)
        _until(
            lambda: (
                started[0].query("pai_jobs_ended_total{state='SUCCEEDED'} >= 1")
                and started[0].query("pai_task_ends_total{cause='exited'} >= 3")
                and started[0].query("pai_gpus_used{gpu_type='P100'} == 2")
                and started[0].query("pai_cpus_busy")
                # two points at least, or there is no rate
                and started[0].query("count_over_time(pai_jobs_ended_total{state='SUCCEEDED'}[1m]) >= 3")
                and started[0].query("count_over_time(pai_open_streams[1m]) >= 3")
            ),
            "Prometheus has seen the jobs",
        )
        yield started[0]
    finally:
        started[0].close()


def _until(condition: Any, what: str) -> None:
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail(f"never: {what}")


def _run_jobs(scheduler: RunningScheduler) -> None:
    gpus = hello_job("holds-gpus", "sleep 600", gpuType="P100")
    gpus["taskRoles"][0]["gpuNumber"] = 2
    headers = {"Authorization": "Bearer token-of-alice"}
    with httpx.Client(base_url=f"{scheduler.url}/api/v1", headers=headers, trust_env=False) as alice:
        for job in (hello_job("good"), hello_job("bad", "exit 3", retryCount=1), gpus):
            alice.post("/jobs", json=job).raise_for_status()
        for name in ("good", "bad"):
            alice.get(f"/user/alice/jobs/{name}/events?follow=1", timeout=60)
            alice.get(f"/user/alice/jobs/{name}/taskRoles/main/tasks/0/logs/all")


@pytest.mark.parametrize("expression", EXPRESSIONS + ALERTS)
def test_every_expression_is_right(prometheus: Prometheus, expression: str) -> None:
    result = prometheus.query(filled_in(expression))
    # an alert is silent where all is well
    assert result or NOTHING_HERE in expression or expression in ALERTS


def test_every_metric_of_the_board_is_exported(prometheus: Prometheus) -> None:
    known = set(prometheus.ask("/label/__name__/values")["data"])
    described = set(prometheus.ask("/metadata")["data"])
    for expression in EXPRESSIONS + ALERTS:
        for name in _METRIC.findall(re.sub(r"\{[^}]*\}|\([a-z_, ]*\) \(", "(", expression)):
            assert name in known | described, expression


def test_the_boards_own_questions_have_answers(prometheus: Prometheus) -> None:
    for variable in BOARD["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"])
            assert match is not None
            series = prometheus.ask("/series", **{"match[]": match[1]})["data"]
            assert {one.get(match[2]) for one in series} - {None}


def test_an_expression_that_is_wrong_would_be_noticed(prometheus: Prometheus) -> None:
    with pytest.raises(AssertionError, match="parse error"):
        prometheus.query("rate(pai_jobs")


def test_panels_have_an_id_and_a_place_of_their_own() -> None:
    ids = [panel["id"] for panel in BOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_every_panel_says_what_it_shows_and_where_from() -> None:
    for panel in PANELS:
        assert panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["targets"]
    assert ALERTS
