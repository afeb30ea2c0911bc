"""`pai metrics`: what a task uses, as text and as it comes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.client.cli.logs import sparkline, usage_table
from pai_scheduler.client.rest import Client
from pai_scheduler.monitoring.series import SERIES
from tests.testbed.scheduler import RunningScheduler, clean_environ, hello_job
from tests.testbed.warm import run_pai_text

PAI = Path(sys.executable).parent / "pai"


def make_metrics(**series: list[tuple[int, float]]) -> Any:
    return {
        "interval": 10.0,
        "gpuMemoryTotalMB": None,
        "series": {name: series.get(name, []) for name in SERIES},
    }


def test_a_line_per_series_that_is_known() -> None:
    metrics = make_metrics(
        cpuPercent=[(1000, 0.0), (2000, 50.0), (3000, 100.0)],
        gpuMemoryMB=[(1000, 12345.6)],
        netRxBytes=[(1000, 0), (2000, 5_000_000), (4000, 6_000_000)],
    )
    header, cpu, gpu, received = usage_table(metrics, "en").splitlines()
    assert header.split() == ["MEASURED", "LAST", "MEAN", "HIGHEST", "COURSE"]
    assert cpu.startswith("CPU, per cent of one core")
    assert cpu.split()[-4:] == ["100", "50.0", "100", "▁▅█"]
    assert gpu.split()[-4:] == ["12346", "12346", "12346", "█"]
    assert received.split()[-4:] == ["0.50", "2.8", "5.0", "█▂"]


def test_gpu_memory_stands_beside_what_there_is_of_it() -> None:
    metrics = make_metrics(gpuMemoryMB=[(1000, 12_345.6)])
    metrics["gpuMemoryTotalMB"] = 81_920
    assert "GPU memory, MB of 81920" in usage_table(metrics, "en")


def test_before_the_first_measurement_it_says_so() -> None:
    assert usage_table(make_metrics(), "en").startswith("Nothing is measured yet")


def test_it_speaks_chinese() -> None:
    table = usage_table(make_metrics(memoryMB=[(1000, 1.0)]), "zh_CN")
    assert "内存（MB）" in table


@pytest.mark.parametrize(
    ("values", "bars"),
    [([5], "█"), ([0, 0], "▁▁"), ([0, 1], "▁█"), ([8, 4, 0, 8], "█▅▁█")],
)
def test_a_sparkline_goes_from_zero_to_the_highest_value(values: list[float], bars: str) -> None:
    assert sparkline([(1000 * number, value) for number, value in enumerate(values)]) == bars


def test_a_sparkline_is_drawn_over_time_not_over_points() -> None:
    # a point a minute for an hour, then one a second for as long again: each hour is half of the line
    coarse = [(60_000 * minute, 1.0) for minute in range(60)]
    fine = [(3_600_000 + 1000 * second, 8.0) for second in range(3600)]
    bars = sparkline([*coarse, *fine], columns=40)
    assert len(bars) == 40
    assert set(bars[:19]) == {"▂"}
    assert set(bars[21:]) == {"█"}


def test_where_nothing_was_measured_the_line_goes_on() -> None:
    bars = sparkline([(0, 8.0), (1000, 8.0), (99_000, 0.0), (100_000, 0.0)], columns=4)
    assert bars == "██" + "█" + "▁"


Pai = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def pai(scheduler: RunningScheduler) -> Pai:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environ = clean_environ({"PAI_API_URL": scheduler.url, "PAI_TOKEN": "token-of-alice"})
        return run_pai_text(words, environ)

    return run


async def test_a_task_is_followed_until_it_has_ended(pai: Pai, alice: Client) -> None:
    await alice.submit(hello_job("cli-usage", "sleep 2"))
    followed = pai("metrics", "cli-usage", "main-0", "-f")
    assert followed.returncode == 0, followed.stderr
    assert "Memory, MB" in followed.stdout
    assert (await alice.job("alice", "cli-usage"))["jobStatus"]["state"] == "SUCCEEDED"
    for words in (("metrics", "cli-usage"), ("metrics", "cli-usage", "main-0", "--attempt", "0")):
        shown = pai(*words)
        assert (shown.returncode, shown.stdout.splitlines()[0].split()[0]) == (0, "MEASURED")
    series = json.loads(pai("metrics", "cli-usage", "--json").stdout)["series"]
    assert len(series["cpuPercent"]) >= 1


async def test_a_task_that_there_is_not_is_named(pai: Pai, alice: Client) -> None:
    await alice.submit(hello_job("cli-no-usage"))
    refused = pai("metrics", "cli-no-usage", "worker-3")
    assert refused.returncode == 1
    assert "has no task worker-3. There are: main-0." in refused.stderr
